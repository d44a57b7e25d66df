"""Records of the page of results in HTML, of pages in markdown, and of the answers behind them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.shown import entries
from tests.shown.arrays import plain

_VOID = {"meta", "img", "input", "br", "link", "hr", "path", "use", "rect", "circle", "line"}
_BLOCKS = {
    "p", "li", "h1", "h2", "h3", "h4", "td", "th", "tr", "table", "figure", "figcaption", "div", "section",
    "details", "summary", "ul", "ol", "dl", "dt", "dd", "pre", "label", "select", "option", "nav", "header",
    "footer", "main", "svg", "text", "caption", "title", "output", "button", "aside", "blockquote", "br",
}  # fmt: skip
_SILENT = {"script", "style"}
_START = "start"  # part of a page before its first id


@dataclass
class Part:
    """Part of a page: what is in the innermost section around it."""

    texts: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    pictures: list[dict[str, str]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)


class Page(HTMLParser):
    """Page read without a browser: the texts, tables, links and data of its sections."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: dict[str, Part] = {}
        self.data: list[Any] = []  # of scripts that are JSON
        self._sections, self._open, self._rows = [_START], [], []
        self._words, self._script, self._cell = "", "", ""
        self.feed(html)
        self.close()
        self._end_block()

    @property
    def _part(self) -> Part:
        return self.parts.setdefault(self._sections[-1], Part())

    def _end_block(self) -> None:
        if words := " ".join(self._words.split()):
            self._part.texts.append(words)
        self._words = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attributes}
        if tag in _BLOCKS:
            self._end_block()
        if tag not in _VOID:
            self._open.append((tag, of))
        if tag == "section":
            self._sections.append(of.get("id") or f"section {len(self.parts)}")
        elif tag == "table":
            self._rows.append((of.get("id", ""), []))
        elif tag == "tr" and self._rows:
            self._rows[-1][1].append([])
        elif tag in ("td", "th"):
            self._cell = ""
        elif tag == "option" and "selected" in of:
            self._words += "(chosen) "
        elif tag == "img":
            source = of.get("src", "")
            if source.startswith("data:"):
                source = f"bytes {hashlib.sha256(source.encode()).hexdigest()[:16]}"
            self._part.pictures.append({"source": source, "says": of.get("alt", "")})
        if "href" in of:
            self._part.links.append(of["href"])
        if "aria-label" in of:
            self._part.texts.append(f"label: {' '.join(of['aria-label'].split())}")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag in ("td", "th") and self._rows and self._rows[-1][1]:
            self._rows[-1][1][-1].append(" ".join(self._cell.split()))
            self._words = ""
        elif tag == "table" and self._rows:
            name, rows = self._rows.pop()
            self._part.tables[name or f"table {len(self._part.tables) + 1}"] = rows
        elif tag == "script":
            self._end_script()
        if tag in _BLOCKS:
            self._end_block()
        if tag == "section" and len(self._sections) > 1:
            self._sections.pop()

    def _end_script(self) -> None:
        try:
            self.data.append(json.loads(self._script))
        except ValueError:
            pass  # a program
        self._script = ""

    def handle_data(self, data: str) -> None:
        inside = {tag for tag, _ in self._open}
        if "script" in inside:
            self._script += data
        elif not inside & _SILENT:
            self._words += data
            self._cell += data


def page(own: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the record of the page of results: its charts, with their points, and its parts.

    Args:
        own: kept runs, `<experiment>/<name>`, that the page also shows as those of a reader.
    """
    with tempfile.TemporaryDirectory() as folder:
        module, *arguments = entries.PAGE
        for name in own:
            copy = Path(folder) / f"{name}_own"
            shutil.copytree(entries.REFERENCE / name, copy)
            arguments += ["--run", str(copy)]
        entries.output_of(module, *arguments, "--results", folder)
        html = (Path(folder) / entries.PAGE_FILE).read_text(encoding="utf-8")
    read = Page(html.replace(folder, "").replace(_commit(), "(commit)"))
    charts = dict(chart for data in read.data for chart in _charts(data, "data"))
    if not charts:
        raise ValueError(f"no chart in the data of {entries.PAGE_FILE}; adapt _charts in {__name__}")
    parts = {name: vars(part) for name, part in read.parts.items()}
    others = [_without_charts(data) for data in read.data]
    return {"charts": charts, "parts": parts, "data": others}


def _commit() -> str:
    """Return the first digits of the commit of this checkout, which a page names."""
    command = ["git", "-C", str(entries.ROOT), "rev-parse", "--short=7", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return commit or "unknown commit"


def _charts(data: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and record of each chart of Vega-Lite in data of a page.

    A chart is a specification with `layer` or `mark`; its rows are beside it or in it.
    """
    if isinstance(data, list):
        for number, part in enumerate(data):
            yield from _charts(part, f"{name} {number}")
    if not isinstance(data, dict):
        return
    spec = data.get("spec", data)
    if isinstance(spec, dict) and ("layer" in spec or "mark" in spec) and "encoding" in json.dumps(spec):
        rows = list(_rows(data))
        without = {key: value for key, value in spec.items() if key not in ("data", "datasets")}
        series = [{k: row[k] for k in sorted(row)} for row in rows]
        ordered = sorted(series, key=lambda row: json.dumps(row, sort_keys=True))
        yield name, {"spec": without, "rows": ordered, "drawn": _drawn(ordered)}
        return
    for key, part in data.items():
        yield from _charts(part, str(key))


def _without_charts(data: Any) -> Any:
    """Return data of a page without the parts that are charts."""
    if isinstance(data, dict):
        return {key: _without_charts(part) for key, part in data.items() if not dict(_charts(part, key))}
    return data


def _rows(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a chart: of `fields` and `rows`, of `datasets`, or of `data.values`."""
    if "rows" in data:
        for row in data["rows"]:
            yield row if isinstance(row, dict) else dict(zip(data["fields"], row, strict=True))
    spec = data.get("spec", data)
    for values in spec.get("datasets", {}).values():
        yield from values
    if isinstance(spec.get("data"), dict):
        yield from spec["data"].get("values", [])


def _drawn(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the different points of a chart: place, value and interval."""
    texts = {json.dumps([row.get(name) for name in ("at", "value", "low", "high")]) for row in rows}
    return [json.loads(row) for row in sorted(texts)]


def verdicts() -> dict[str, Any]:
    """Return the record of the verdicts: the list, each claim in full, and all answers in full precision."""
    module, *arguments = entries.VERDICTS
    answers = {name: plain(of) for name, of in entries.answers()}
    ids = [name.split()[1] for name in answers if re.fullmatch(r"claim \S+", name)]
    listed = entries.output_of(module, *arguments, allowed=(0, 1)).splitlines()
    in_full = entries.output_of(module, *arguments, *ids, allowed=(0, 1)).splitlines()
    claims: dict[str, list[str]] = {}
    for line in in_full:
        if not line.startswith(" "):
            claims[line.partition(":")[0]] = []
        claims[next(reversed(claims))].append(line)
    return {"list": listed, "claims": claims, "answers": answers}


def results() -> dict[str, Any]:
    """Return the record of the pages in `results/`, as their generators write them in a copy of the tree."""
    pages = sorted(
        path for path in (*entries.ROOT.glob("*.md"), *(entries.ROOT / "results").glob("*.md"),
                          *(entries.ROOT / "results").glob("[!r]*/**/*.md"))
    )  # fmt: skip
    names = [path.relative_to(entries.ROOT).as_posix() for path in pages]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("sfc", "md", "experiments"):
            shutil.copytree(entries.ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "results").mkdir()
        for path in (entries.ROOT / "results").iterdir():
            if path == entries.REFERENCE:
                (copy / "results" / path.name).symlink_to(path)
            elif path.is_dir():
                shutil.copytree(path, copy / "results" / path.name)
            else:
                shutil.copy(path, copy / "results" / path.name)
        for name in names:
            shutil.copy(entries.ROOT / name, copy / name)
        for module, *arguments in entries.WRITERS:
            command = [sys.executable, "-m", module, *arguments]
            made = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
            if made.returncode not in (0, 1):
                raise entries.ProgramFailedError(f"{' '.join(command)}: {made.stderr}")
        written = {name: (copy / name).read_text(encoding="utf-8") for name in names}
    kept = {name: (entries.ROOT / name).read_text(encoding="utf-8") for name in names}
    stale = [name for name in names if written[name] != kept[name]]
    return {"stale": stale, "pages": {name: by_heading(text) for name, text in written.items()}}


def by_heading(text: str) -> dict[str, list[str]]:
    """Return the lines of a page in markdown by the heading above them."""
    lines_of: dict[str, list[str]] = {_START: []}
    for line in text.splitlines():
        if line.startswith("#"):
            lines_of.setdefault(line, [])
        lines_of[line if line.startswith("#") else next(reversed(lines_of))].append(line)
    return lines_of
