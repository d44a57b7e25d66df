"""The claims of the sources: their fields are checked, and every claim is there."""

import ast
import re
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from experiments.core.record import read_provenance
from experiments.drawing.style.origin import origin_of
from experiments.results.claims import claim as claims
from experiments.results.claims.claim import SOURCES, by_subject, collected, every
from experiments.results.claims.origins import origin, origins
from experiments.results.kept import listing
from experiments.results.kept.listing import read_about
from experiments.results.kept.queries import REFERENCE
from experiments.results.page.sections import SECTIONS
from tests.experiments.results.claims.judged import IDS

pytestmark = pytest.mark.quick

RESULTS = REFERENCE.parent


def test_every_claim_is_there_in_the_order_of_the_sources():
    assert IDS == (*(f"T{k}" for k in range(1, 17)), *(f"L{k}" for k in range(1, 9)), "B1", "F1", "F2", "F3")
    assert len(collected()["L8"].parts) == 5
    assert len(list(every(collected()))) == 32


def test_a_claim_that_is_added_to_a_subject_is_collected(monkeypatch):
    new = replace(collected()["F1"], id="F4")
    monkeypatch.setattr(
        claims, "by_subject", lambda: by_subject() | {"cavity": (*by_subject()["cavity"], new)}
    )
    assert list(collected.__wrapped__()) == [*IDS, "F4"]
    monkeypatch.setattr(claims, "by_subject", lambda: by_subject() | {"more": (collected()["F1"],)})
    with pytest.raises(ValueError, match=r"id = 'F1'; allowed: one that no other claim has; see more\.py"):
        collected.__wrapped__()


def test_each_subject_has_a_section_of_the_page():
    assert set(by_subject()) <= {section.id for section in SECTIONS}


def test_the_sources_are_listed():
    text = (RESULTS / "SOURCES.md").read_text(encoding="utf-8")
    assert set(SOURCES.values()) <= set(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"claim": "word " * 13}, "claim T1: claim = .*; allowed: at most 12 words; leave out 1"),
        ({"short": "word " * 13}, "claim T1: short = .*; allowed: at most 8 words; leave out 5"),
        ({"sentence": "word " * 39}, "claim T1: sentence = .*; allowed: at most 30 words"),
        ({"id": "X1"}, "claim X1: unknown letter of the id 'X'; allowed: one of T, L, B, F; add the source"),
        ({"verdict": "true"}, "claim T1: unknown verdict 'true'; allowed: one of confirmed, refuted, dep"),
        ({"verdict": "not measured"}, "claim T1: verdict = 'not measured'; allowed: .* without rules"),
        ({"there": ""}, r"claim T1: fields without a text = \['there'\]"),
        ({"quote": " "}, r"claim T1: fields without a text = \['quote'\]"),
        ({"here": "{loss}"}, r"claim T1: here = '\{loss\}'; allowed: ordered, threads"),
        ({"here": "{ordered.width}"}, r"claim T1: here = '\{ordered.width\}'; allowed: .*\.low, \.high"),
        ({"here": "{ordered} " * 4}, "claim T1: numbers of sentence and here = .*; allowed: at most 3"),
        ({"here": ""}, "claim T1: here = ''; allowed: a text beside queries, else none"),
        ({"figure": "none.png"}, r"claim T1: figure = 'none\.png'; allowed: a file below reference"),
        ({"confirmed_if": ""}, r"claim T1: rules = \['refuted_if'\]; allowed: confirmed_if and refuted_if"),
        ({"confirmed_if": "loss.low > 1"}, r"claim T1: rules = \['loss'\]; allowed: queries ordered"),
        ({"confirmed_if": "loss.low >"}, "claim T1: rule = 'loss.low >'; allowed: a Python expression"),
        ({"parts": (collected()["L6"],)}, "claim T1: rules = .*; allowed: none in a claim with parts"),
    ],
)
def test_a_wrong_field_is_refused_by_claim_and_name(fields, message):
    with pytest.raises(ValueError, match=message):
        replace(collected()["T1"], **fields)


@pytest.mark.parametrize("claim", every(collected()), ids=lambda claim: claim.id)
def test_alternatives_of_a_rule_are_counted(claim):
    """A rule that holds if one of several conditions does widens the intervals of times."""
    for rule in claim.rules.values():
        for node in ast.walk(ast.parse(rule)):
            joined = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else []
            for part in joined:
                for call in (one for one in ast.walk(part) if isinstance(one, ast.Call)):
                    (of,) = [keyword.value.value for keyword in call.keywords]
                    assert of == len(joined)


def test_line_breaks_in_texts_are_spaces():
    claim = replace(
        collected()["T1"],
        sentence="""Two
        lines.""",
        sentence_if="",
    )
    assert claim.sentence == "Two lines."


MEASURED = [claim for claim in every(collected()) if claim.queries]
RUNS = sorted({run for claim in MEASURED for run in claim.runs})


def commit_of(code: str) -> str:
    """The commit that a text names first."""
    return re.findall(r"\b[0-9a-f]{7}\b", code)[0]


@cache
def listed(run: str) -> str:
    """The commit of a run in `results/RUNS.md`."""
    cells = listing.row(REFERENCE / run, read_about(REFERENCE / run))
    return commit_of(dict(zip(listing.COLUMNS, cells, strict=True))["code"])


@pytest.mark.parametrize("run", RUNS)
def test_commit_device_and_sizes_of_a_claim_are_those_of_the_list_of_runs(run):
    cells = dict(zip(listing.COLUMNS, listing.row(REFERENCE / run, read_about(REFERENCE / run)), strict=True))
    assert origin(run).commit == listed(run)
    assert (origin(run).device, origin(run).n) == (cells["where"], cells["n"])
    named = read_provenance(REFERENCE / run)["backend"]["device"].split()[1]
    assert named in origin(run).device or read_provenance(REFERENCE / run)["backend"]["name"] == "cpu"


def test_a_claim_has_the_origins_of_the_runs_that_it_reads():
    assert [one.run for one in origins(collected()["T12"])] == [
        "timing/h100_box", "timing/h200_box", "speed_up/h200_1024", "speed_up/h100_contacts"
    ]  # fmt: skip
    assert origins(collected()["L8"]) == []


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_one_commit_everywhere(run):
    """In the list, in the footers of its figures, and in its provenance, as far as that was clean."""
    origin = read_provenance(REFERENCE / run)
    table = pd.DataFrame({"n": [1]})
    assert commit_of(origin_of(REFERENCE / run, origin, table).code) == listed(run)
    if kept := origin.get("reference", {}).get("commit"):
        assert kept[:7] == listed(run)
    elif not origin["code"]["dirty"]:
        assert origin["code"]["commit"][:7] == listed(run)


def test_pages_name_runs_that_are_kept():
    pages = [RESULTS.parent / "README.md", *RESULTS.glob("*.md"), *RESULTS.glob("details/*.md")]
    names = {path.name for path in REFERENCE.glob("*/*")}
    experiments = {path.name for path in REFERENCE.iterdir()}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        full = {name for name in re.findall(r"`(\w+/\w+)`", text) if name.split("/")[0] in experiments}
        short = set(re.findall(r"`((?:cpu|h100|h200)(?:_\w+)?)`", text))
        assert sorted(name for name in full if not (REFERENCE / name).is_dir()) == [], page
        assert short - names == set(), page


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_a_rule_compares_times_of_one_commit_alone(claim):
    """Times of chips or orders that are compared were measured by the same code."""
    for rule in claim.rules.values():
        for node in ast.walk(ast.parse(rule)):
            names = {part.value.id for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            queries = [claim.queries[name] for name in names if isinstance(node, ast.Compare)]
            timed = [query for query in queries if query.value == "time_ms"]
            assert len({listed(run) for query in timed for run in query.run}) <= 1
    for query in claim.queries.values():
        assert query.value != "time_ms" or not query.over or len({*map(listed, query.run)}) == 1


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_windows_of_the_shaken_box_are_summed(claim):
    """They are phases of a shake: a median over them would drop the phases of the largest and least gain."""
    for query in claim.queries.values():
        if any(run.startswith("speed_up/") for run in query.run) and query.value == "time_ms":
            assert "sums" in query.statistic
