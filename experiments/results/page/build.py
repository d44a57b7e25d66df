"""Build the page: sections filled with verdicts, numbers, charts, pictures and the list of runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from experiments.core.provenance import code_of
from experiments.processes.output import readable
from experiments.results.charts import Chart
from experiments.results.claims.claim import NOT_MEASURED, REFUTED, WORDS
from experiments.results.claims.judgement import Judgement
from experiments.results.claims.table import counted
from experiments.results.kept.queries import REFERENCE
from experiments.results.page import charts as points
from experiments.results.page import numbers, own_runs, specs
from experiments.results.page.chart_list import CHARTS
from experiments.results.page.claim_rows import ClaimRows
from experiments.results.page.pictures import embed
from experiments.results.page.runs import Run
from experiments.results.page.sections import OWN, SECTIONS
from experiments.results.reliability import SMALL
from sfc import checks

HERE = Path(__file__).parent
README = REFERENCE.parent / "README.md"
LARGEST = 8_000_000  # bytes of the page
_STOPPED = re.compile(r"\b(interrupted|stopped)\b")
_COMMIT = re.compile(r"[0-9a-f]{7,}")


def html(judgements: Sequence[Judgement], kept: Sequence[Run], own: Sequence[Run] = ()) -> str:
    """Return the page.

    Args:
        judgements: of all claims.
        kept: runs of `results/reference`.
        own: runs of a reader.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, a picture or a part of `results/README.md` that is
            missing, or a page above 8 MB.
    """
    runs = {run.name: run for run in (*kept, *own)}
    drawn = {chart.name: drawing(chart, runs, own) for chart in CHARTS.values()}
    data = {
        "charts": {id: one.pop("data") for id, one in drawn.items()},
        "runs": {
            name: {"anchor": run.anchor, "where": run.where, "code": run.code, "command": run.command}
            for name, run in runs.items()
            if any(name in one["runs"] for one in drawn.values())
        },
    }
    script, bundle = (HERE / "page.js").read_text(encoding="utf-8"), specs.bundle()
    claims = ClaimRows(judgements, runs)
    sections = (*SECTIONS[:-1], *([OWN] if own else []), SECTIONS[-1])
    context = {
        "policy": policy(bundle, script),
        "style": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "bundle": Markup(bundle),
        "script": Markup(script),
        "data": Markup(_json(data)),
        "sections": sections,
        "pictures": {path: embed(REFERENCE, path) for one in sections for path in one.pictures},
        "claims": claims.by_id,
        "words": [word for word in WORDS if any(one.word == word for one in judgements)],
        "counted": counted(judgements),
        "refuted": [one for one in claims.by_id.values() if one["word"] == REFUTED],
        "charts": drawn,
        "runs": kept,
        "own": own,
        "commit": f"{code_of(REFERENCE.parents[1]).get('commit') or 'unknown'!s:.7}",
    }
    context |= numbers.of_claims(judgements) | {"n": numbers.of_page()} | _open_questions(claims, kept)
    context |= own_runs.context(own, judgements, drawn, runs) if own else {}
    made = _environment(runs).get_template("page.html").render(context)
    made = readable(made)
    if (size := len(made.encode())) > LARGEST:
        raise checks.refuse_value("size of the page", size, f"at most {LARGEST:,} bytes", "give fewer runs")
    return made


def drawing(chart: Chart, runs: Mapping[str, Run], own: Sequence[Run]) -> dict[str, Any]:
    """Evaluate and draw a chart.

    Args:
        chart: which.
        runs: name -> run.
        own: those of a reader.

    Returns:
        What the template needs, and `data`, what the script needs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, or first choices that show nothing.
    """
    rows = points.rows(chart, runs, own)
    first = points.chosen(chart, rows)
    if not first:
        choices = {select.column: select.initial for select in chart.selects}
        raise checks.refuse_value(f"first choices of chart {chart.name}", choices, "choices that have points")
    specification = specs.specification(chart, rows)
    fields = list(dict.fromkeys(("at", "value", "low", "high", "text", "of", "run", *chart.columns)))
    selects = [vars(one) | {"texts": _in_order({row[one.column] for row in rows})} for one in chart.selects]
    return {
        "id": chart.name,
        "title": chart.title,
        "caption": chart.caption,
        "axes": f"{chart.values.title}, by {chart.names.title}",
        "svg": Markup(specs.picture(specification, first)),
        "selects": [select for select in selects if len(select["texts"]) > 1],
        "runs": {row["run"] for row in rows},
        "data": {
            "spec": specification,
            "fields": fields,
            "columns": chart.columns,
            "rows": [[row[name] for name in fields] for row in rows],
        },
    }


def policy(*scripts: str) -> str:
    """Return a Content-Security-Policy: no request, no script but these, no `eval`.

    Args:
        scripts: texts of the page's scripts.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; connect-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def part_of(page: Path, heading: str) -> Markup:
    """Return the text below a heading of a page in markdown as HTML, without links.

    Args:
        page: in markdown.
        heading: of the second level.

    Raises:
        ValueError: a page that cannot be read, or has no such heading.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{page} cannot be read: {error}; allowed: a page in markdown") from error
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"{page} has no heading '## {heading}'; allowed: one; add it, or change page.py")
    unlinked = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", found[1])
    return Markup(MarkdownIt().enable("table").render(unlinked))


def _open_questions(claims: ClaimRows, kept: Sequence[Run]) -> dict[str, Any]:
    """Return what the section on open questions needs."""
    return {
        "baselines": part_of(README, "Baselines"),
        "not_done": part_of(README, "Not done"),
        "how_sure": part_of(README, "How sure"),
        "one_run": [one for one in claims.leaves if any("one " in q["interval"] for q in one["queries"])],
        "small": [one for one in claims.leaves if any(SMALL in q["warnings"] for q in one["queries"])],
        "not_measured": [one for one in claims.leaves if one["word"] == NOT_MEASURED],
        "interrupted": [run for run in kept if _STOPPED.search(run.what)],
        "old_code": [run for run in kept if not _COMMIT.fullmatch(run.code)],
    }


def _environment(runs: Mapping[str, Run]) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["device"] = lambda name: runs[name].where
    made.globals["parts"] = made.get_template("parts.html").module
    return made


def _in_order(texts: set[str]) -> list[str]:
    """Sort texts by their numbers, so that 5 % comes before 20 %."""
    return sorted(
        texts, key=lambda text: [(float(x), "") if x[:1].isdigit() else (0.0, x) for x in _parts(text)]
    )


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"(\d+(?:\.\d+)?)", text.replace(",", "")) if part]


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
