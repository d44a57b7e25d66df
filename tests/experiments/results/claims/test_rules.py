"""Rules: comparisons of answers, and nothing else."""

from types import SimpleNamespace

import pytest

from experiments.results.claims.rules import CONFIRMED, DEPENDS, REFUTED, Rule, word

pytestmark = pytest.mark.quick

ANSWERS = {
    "gain": SimpleNamespace(value=2.0, low=1.5, high=2.5, runs=3),
    "share": SimpleNamespace(value=-0.5, low=-0.6, high=-0.4, runs=1),
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("gain.low > 1", True),
        ("gain.low > 1.5", False),
        ("gain.low >= 1.5", True),
        ("1 < gain.value < 2", False),
        ("1 < gain.value <= 2", True),
        ("gain.runs >= 3 and share.runs < 2", True),
        ("gain.high < 1 or share.high < 0", True),
        ("gain.high < 1 or share.high > 0", False),
        ("not gain.high < 1", True),
        ("share.value > -1", True),
        ("share.high < gain.low", True),
    ],
)
def test_a_rule_compares_answers(text, holds):
    assert Rule(text).holds(ANSWERS) is holds


@pytest.mark.parametrize(
    "text",
    [
        "gain.low",
        "True",
        "1 < 2",
        "gain.low > 1 > 0",
        "gain.low + 1 > 2",
        "gain.low == 1",
        "gain.low is 1",
        "gain.low > True",
        "gain.low > '1'",
        "gain > 1",
        "gain.width > 1",
        "gain.low.real > 1",
        "abs(gain.low) > 1",
        "__import__('os').system('true') > 1",
        "[gain.low][0] > 1",
        "gain.low > 1 if gain.high > 1 else gain.low < 1",
        "(x := gain.low) > 1",
        "(lambda: 1)() > gain.low",
        "gain.low > 1 and 5",
        "-(gain.low > 1) > 0",
        "gain.low >",
        "gain.low > 1; gain.low < 2",
        "(" * 1000 + "gain.low > 1" + ")" * 1000,
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"rule = .*; allowed: comparisons of <query>\.value"):
        Rule(text)


def test_a_rule_is_text():
    with pytest.raises(TypeError, match="rule = 1 of class int"):
        Rule(1)


def test_a_rule_names_its_queries_and_numbers():
    rule = Rule("gain.low > 1 and (share.high < -0.5 or gain.value < 3)")
    assert rule.names == ("gain", "share")
    assert set(rule.fields) == {("gain", "low"), ("share", "high"), ("gain", "value")}
    assert set(rule.numbers) == {1, 0.5, 3}


def test_a_query_without_an_answer_is_named():
    with pytest.raises(ValueError, match="allowed: queries gain, share; add loss"):
        Rule("loss.low > 1").holds(ANSWERS)


@pytest.mark.parametrize(
    ("confirmed_if", "refuted_if", "expected"),
    [
        ("gain.low > 1", "gain.high < 1", CONFIRMED),
        ("gain.low > 3", "gain.high < 3", REFUTED),
        ("gain.low > 2", "gain.high < 2", DEPENDS),
    ],
)
def test_two_rules_give_a_word(confirmed_if, refuted_if, expected):
    assert word(Rule(confirmed_if), Rule(refuted_if), ANSWERS) == expected


def test_rules_that_both_hold_are_an_error():
    with pytest.raises(
        ValueError, match=r"both rules hold: confirmed_if = 'gain.low > 1'.*exclude each other"
    ):
        word(Rule("gain.low > 1"), Rule("gain.high > 1"), ANSWERS)
