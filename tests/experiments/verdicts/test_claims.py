"""The file of claims: its fields are checked, and every claim of the sources is there."""

import re

import pytest

from experiments.core.record import read_provenance
from experiments.verdicts import claims
from experiments.verdicts.claims import FILE, IDS, every, read, words
from experiments.verdicts.queries import REFERENCE

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


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_device_and_commit_are_those_of_the_runs(claim):
    commits = re.findall(r"\b[0-9a-f]{7}\b", claim.commit)
    assert commits
    for run in {run for query in claim.queries.values() for run in query.run}:
        origin = read_provenance(REFERENCE / run)
        device = origin["backend"]["device"]
        cpu = origin["machine"]["cpu"].replace("(R)", "").split()[0]
        named = device.split()[1] if device.startswith("NVIDIA") else cpu
        assert named in claim.device or "any machine" in claim.device
        if not origin["code"]["dirty"]:  # else its tree is that of the commit
            assert any(origin["code"]["commit"].startswith(commit) for commit in commits)
