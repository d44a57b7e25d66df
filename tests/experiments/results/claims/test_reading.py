"""The file of claims: its fields are checked, and every claim of the sources is there."""

import ast
import re
from functools import cache

import pandas as pd
import pytest

from experiments.core.record import read_provenance
from experiments.drawing.style.origin import origin_of
from experiments.results.claims import reading as claims
from experiments.results.claims.reading import FILE, IDS, RESULTS, every, read, words
from experiments.results.kept import listing
from experiments.results.kept.keep import read_about
from experiments.results.kept.queries import REFERENCE

pytestmark = pytest.mark.quick

TEXT = FILE.read_text(encoding="utf-8")


def test_every_claim_is_there():
    found = read()
    assert tuple(found) == IDS
    assert len(IDS) == 28
    assert len(found["L8"].parts) == 5
    assert len(list(every(found))) == 32


def test_texts_are_short():
    for claim in (*read().values(), *every(read())):
        assert words(claim.claim) <= 12
        assert words(claim.short) <= 8
        assert words(claim.sentence) <= 30


LONG = "word " * 13


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"claim = .*", f'claim = "{LONG}"', "claim T1: claim = .*; allowed: at most 12 words; leave out 1"),
        (r"short = .*", f'short = "{LONG}"', "claim T1: short = .*; allowed: at most 8 words; leave out 5"),
        (r"sentence = .*", f'sentence = "{LONG * 3}"', "claim T1: sentence = .*; allowed: at most 30 words"),
        (r"source = .*", 'source = "book"', "claim T1: unknown source 'book'; allowed: one of cavity"),
        (
            r"verdict = .*",
            'verdict = "true"',
            "claim T1: unknown verdict 'true'; allowed: one of confirmed, refuted",
        ),
        (
            r"verdict = .*",
            'verdict = "not measured"',
            "claim T1: verdict = 'not measured'; allowed: .* without rules",
        ),
        (r"there = .*", "", "claim T1: fields unknown: none; missing: there"),
        (r"there = .*", "there = 2", "claim T1: there = 2 of class int; allowed: a str"),
        (r"there = .*", 'there = "2"\nhow = "so"', "claim T1: fields unknown: how"),
        (
            r"\nhere = .*",
            '\nhere = "{loss}"',
            r"claim T1: here = '\{loss\}'; allowed: placeholders ordered, threads",
        ),
        (r"\nhere = .*", '\nhere = "{ordered.width}"', r"claim T1: here = '\{ordered.width\}'"),
        (r"\nhere = .*", "", r"claim T1: fields = \['here'\]; allowed: .* beside queries"),
        (
            r"confirmed_if = .*\n",
            "",
            r"claim T1: rules = \['refuted_if'\]; allowed: confirmed_if and refuted_if",
        ),
        (r"confirmed_if = .*", 'confirmed_if = "1 < 2"', "claim T1: rule = '1 < 2'; allowed: comparisons"),
        (
            r"confirmed_if = .*",
            'confirmed_if = "loss.low > 1"',
            r"claim T1: rules = \['loss'\]; allowed: queries",
        ),
        (
            r"figure = .*",
            'figure = "none.png"',
            "claim T1: figure = 'none.png'; allowed: a file below reference",
        ),
        (
            r'command = "python -m experiments',
            'command = "rm',
            "claim T1: command = 'rm.*; allowed: a command line",
        ),
        (r'statistic = "gain"', 'statistic = "best"', "claim T1: query ordered: unknown statistic 'best'"),
        (
            r'statistic = "gain"',
            'static = "gain"',
            "claim T1: query ordered: fields unknown: static; missing: stat",
        ),
        (
            r"\[T1.queries.ordered\]",
            "[T1.queries.a-b]",
            "claim T1: query a-b: name = 'a-b'; allowed: letters",
        ),
        (r"\[T1.queries.threads_small\]", "[T1.queries.idle]", "claim T1: .*threads_small"),
        (r"\[T1\]", "[T99]\na = 1\n[T1]", "differs in T99; allowed: tables T1, T2"),
        (r"\[T1\]", "[T1", "cannot be read: .*; allowed: TOML with a table for each claim"),
    ],
)
def test_a_wrong_field_is_refused_by_claim_and_name(tmp_path, old, new, message):
    (tmp_path / "verdicts.toml").write_text(re.sub(old, lambda _: new, TEXT, count=1), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "verdicts.toml")


def test_a_query_without_a_use_is_refused(tmp_path):
    text = re.sub(r"\{threads_small\}", "little", TEXT, count=1)
    text = re.sub(r"sentence_if = .*\n", "", text, count=1).replace(" and threads_small.low > 1", "")
    (tmp_path / "verdicts.toml").write_text(text, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"claim T1: queries = \['threads_small'\]; allowed: queries in a rule"
    ):
        read(tmp_path / "verdicts.toml")


def test_a_claim_with_parts_has_their_common_verdict_or_depends():
    assert claims.common(("refuted", "refuted")) == "refuted"
    assert claims.common(("refuted", "confirmed", "refuted")) == "depends"


MEASURED = [claim for claim in every(read()) if claim.queries]
RUNS = sorted({run for claim in MEASURED for query in claim.queries.values() for run in query.run})


def commit_of(code: str) -> str:
    """The commit that a text names first."""
    return re.findall(r"\b[0-9a-f]{7}\b", code)[0]


@cache
def listed(run: str) -> str:
    """The commit of a run in `results/RUNS.md`."""
    cells = listing.row(REFERENCE / run, read_about(REFERENCE / run))
    return commit_of(dict(zip(listing.COLUMNS, cells, strict=True))["code"])


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_device_and_commit_are_those_of_the_runs(claim):
    runs = {run for query in claim.queries.values() for run in query.run}
    assert set(re.findall(r"\b[0-9a-f]{7}\b", claim.commit)) == {listed(run) for run in runs}
    for run in runs:
        origin = read_provenance(REFERENCE / run)
        device = origin["backend"]["device"]
        cpu = origin["machine"]["cpu"].replace("(R)", "").split()[0]
        named = device.split()[1] if device.startswith("NVIDIA") else cpu
        assert named in claim.device or "any machine" in claim.device


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


def test_every_command_names_its_backend():
    lines = [line for claim in every(read()) for line in claim.command]
    assert [line for line in lines if "--backend cpu" not in line and "--backend cuda" not in line] == []


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_a_rule_compares_times_of_one_commit_alone(claim):
    """Times of chips or orders that are compared were measured by the same code."""
    for rule in filter(None, (claim.confirmed_if, claim.refuted_if, claim.sentence_if)):
        for node in ast.walk(ast.parse(rule.text)):
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
