"""No number of rows that warn, or of one run, is shown without its words."""

from dataclasses import replace

import pytest

from experiments.results import reliability
from experiments.results.claims import table as page
from experiments.results.claims.claim import placeholders
from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.estimate import Estimate
from tests.experiments.results.claims.caveats import SHORT, missing, words_of
from tests.experiments.results.claims.judged import CLAIMS, IDS, judged

MADE = Estimate(2.0, 1.5, 2.5, runs=3, unit="run", rounds=5, is_range=False)


def shown_by(judgement: Judgement) -> list[Estimate]:
    """The answers whose numbers a cell has."""
    texts = placeholders(f"{judgement.claim.sentence} {judgement.claim.here}")
    return [judgement.answers[name.partition(".")[0]] for name in texts]


def test_every_warning_has_a_word_and_a_number_has_those_of_its_rows():
    assert {*reliability.CHECKS, reliability.SERIAL} == set(reliability.SHORT) == set(SHORT)
    warned = replace(MADE, warnings=(reliability.PHASES, reliability.SMALL))
    assert str(Shown(MADE)) == "2.00 (1.50 to 2.50)"
    assert str(Shown(warned)) == "2.00 (1.50 to 2.50; phases disagree; does not carry over)"
    assert Shown(warned).value == "2.00 (phases disagree; does not carry over)"
    assert str(Shown(replace(MADE, runs=1))) == "2.00 (1.50 to 2.50; one run)"
    assert str(Shown(replace(warned, low=2.0, high=2.0))) == Shown(warned).value


@pytest.mark.parametrize("name", IDS)
def test_the_table_has_the_words_of_each_number(name):
    row = page.markdown([judged(name)]).splitlines()[-1]
    assert missing(row, shown_by(judged(name))) == []


def test_a_word_that_is_removed_is_found():
    row = page.markdown([judged("L3")]).splitlines()[-1]
    words = [word for answer in shown_by(judged("L3")) for word in words_of(answer)]
    assert words == ["does not carry over", "one run"]
    for word in words:
        assert missing(row.replace(word, ""), shown_by(judged("L3"))) != []


def test_a_terminal_has_the_words_of_each_number():
    lines = page.lines([judged(name) for name in IDS])
    for line, name in zip(lines, IDS, strict=False):
        assert missing(line, shown_by(judged(name))[:1]) == []


@pytest.mark.parametrize("name", CLAIMS)
def test_all_of_a_claim_has_the_words_of_each_number(name):
    text = "\n".join(page.details(judged(name)))
    for key, answer in judged(name).answers.items():
        (line,) = [one for one in text.splitlines() if one.startswith(f"  {key} = ")]
        assert missing(line, [answer]) == []


def test_ages_of_memory_have_no_words():
    assert judged("T12").answers["age"].warnings == ()
    assert judged("T12").answers["lattice_5"].warnings == (reliability.SMALL,)


@pytest.mark.parametrize("name", CLAIMS)
def test_ends_of_an_interval_stand_beside_its_value(name):
    """They have no words of their own."""
    shown = placeholders(f"{CLAIMS[name].sentence} {CLAIMS[name].here}")
    for one in shown:
        query, _, number = one.partition(".")
        assert number not in ("low", "high") or {query, f"{query}.value"} & set(shown)
