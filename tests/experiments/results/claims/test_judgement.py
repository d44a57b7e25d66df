"""Every verdict follows from the committed tables, and would be another if they contradicted the claim."""

import ast
import math
import random
from dataclasses import replace

import pytest

from experiments.results.claims.claim import CONFIRMED, DEPENDS, NOT_MEASURED, REFUTED, Claim, names
from experiments.results.claims.judgement import filled, holds, judge, number, verdict_by_rules
from experiments.results.gains import Estimate
from experiments.results.selection import RUN
from tests.experiments.results.claims.judged import CLAIMS, judged
from tests.tiers import first

JUDGED = [claim.id for claim in CLAIMS.values() if claim.confirmed_if]
TRIALS = 700


@pytest.mark.parametrize("name", CLAIMS)
def test_the_verdict_and_the_sentence_follow_from_the_tables(name):
    assert judged(name).faults == []
    assert judged(name).word == CLAIMS[name].verdict


@pytest.mark.parametrize("name", CLAIMS)
def test_numbers_of_one_run_say_so(name):
    found = judged(name)
    shown = [a for key, a in found.answers.items() if f"{{{key}" in found.claim.here]
    for answer in shown:
        assert answer.support in found.here
        assert (answer.runs > 1) or "one " in answer.support


def shifted(answer: Estimate, places: list[float], generator: random.Random) -> Estimate:
    """Move an answer beside one of some numbers, with a narrow or a wide interval."""
    factor, offset = generator.choice((1, 1.05, 0.95, 2, 0.5, -1)), generator.choice((0, 0.01))
    value = generator.choice(places) * factor + offset
    reach = abs(value) * generator.choice((0, 0.02, 0.6))
    return replace(answer, value=value, low=value - reach, high=value + reach, cases=())


def parts_of(rule: str) -> list[str]:
    """Conditions that a rule joins by `and`."""
    tree = ast.parse(rule, mode="eval").body
    joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
    return [ast.unparse(part) for part in tree.values] if joined else [rule]


def numbers_of(rule: str) -> list[float]:
    """Numbers that a rule compares with."""
    return [float(node.value) for node in ast.walk(ast.parse(rule)) if isinstance(node, ast.Constant)]


def reachable(claim: Claim, answers: dict[str, Estimate]) -> set[str]:
    """Words that the rules of a claim give on shifted answers, found by climbing towards each rule.

    Fails if both rules hold for some answers.
    """
    generator, words = random.Random(claim.id), set()
    rules = (claim.confirmed_if, claim.refuted_if)
    places = [number for rule in rules for number in numbers_of(rule)]
    places += [answer.value for answer in answers.values()]
    for goal in rules:
        parts, now, most = parts_of(goal), answers, 0
        for _ in range(TRIALS):
            name = generator.choice(list(answers))
            moved = now | {name: shifted(now[name], places, generator)}
            words.add(verdict_by_rules(claim, moved))
            holding = sum(holds(part, moved) for part in parts)
            if holding >= most:
                now, most = moved, holding
    return words


@pytest.mark.parametrize("name", first(JUDGED, 4))
def test_other_values_give_every_other_verdict(name):
    claim, answers = CLAIMS[name], dict(judged(name).answers)
    used = {*names(claim.confirmed_if), *names(claim.refuted_if)}
    words = reachable(claim, {key: answer for key, answer in answers.items() if key in used})
    assert words == {CONFIRMED, REFUTED, DEPENDS}


def made(confirmed_if: str, refuted_if: str) -> Claim:
    return replace(CLAIMS["L6"], confirmed_if=confirmed_if, refuted_if=refuted_if)


@pytest.mark.parametrize(
    ("confirmed_if", "refuted_if"),
    [
        ("h100.low > -1000 or h200.low > 1", "h100.high < -1000 and h200.high < -1000"),
        ("h100.low > 1", "h100.high < 1 and h100.low > 2"),
    ],
    ids=["a rule that cannot fail", "a rule that cannot hold"],
)
def test_a_rule_that_cannot_fail_is_found(confirmed_if, refuted_if):
    assert reachable(made(confirmed_if, refuted_if), dict(judged("L6").answers)) != {
        CONFIRMED,
        REFUTED,
        DEPENDS,
    }


def test_rules_that_do_not_exclude_each_other_are_found():
    claim = made("h100.low > 1", "h200.high < 1")
    with pytest.raises(ValueError, match=r"claim L6: rules that hold = .*; allowed: one of the two"):
        reachable(claim, dict(judged("L6").answers))


def test_a_wrong_word_and_a_sentence_that_no_longer_holds_are_faults():
    claim = replace(CLAIMS["L6"], verdict=REFUTED, sentence_if="h100.high < 1")
    assert judge(claim).faults == [
        "L6: the claim says 'refuted', the rules 'confirmed'",
        "L6: the sentence needs 'h100.high < 1', which does not hold",
    ]


def test_faults_of_parts_are_those_of_their_claim():
    whole = CLAIMS["L8"]
    parts = tuple(
        replace(part, verdict=CONFIRMED) if part.id.endswith("far_in_memory") else part
        for part in whole.parts
    )
    assert judge(replace(whole, parts=parts)).faults == [
        "L8 far_in_memory: the claim says 'confirmed', the rules 'refuted'"
    ]


def test_a_claim_without_rules_is_not_measured():
    part = next(one for one in CLAIMS["L8"].parts if one.id.endswith("lock_free"))
    none = {"confirmed_if": "", "refuted_if": "", "sentence_if": "", "queries": {}, "here": ""}
    assert judge(replace(part, verdict=NOT_MEASURED, **none)).word == NOT_MEASURED
    assert judged("L8 bounded_coordinates").word == CONFIRMED


def test_an_error_names_claim_and_query():
    claim = CLAIMS["L6"]
    queries = {name: replace(query, where="n == 3") for name, query in claim.queries.items()}
    with pytest.raises(ValueError, match=r"claim L6, query h100: where = 'n == 3'"):
        judge(replace(claim, queries=queries))


ANSWER = Estimate(1.2345, 1.1, 1.3, 3, RUN, 5, False)


def test_texts_are_filled_with_numbers():
    text = filled("{a} or {a.low}, {a.runs} runs", {"a": ANSWER})
    assert text == "1.23 (1.10 to 1.30) or 1.10, 3 runs"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1.00"),
        (0.12345, "0.123"),
        (148.3, "148"),
        (10161, "10,200"),
        (-2040, "-2,040"),
        (0.001, "0.00100"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text
    assert math.isclose(float(number(value).replace(",", "")), value, rel_tol=5e-3)


ANSWERS = {
    "gain": Estimate(2.0, 1.5, 2.5, 3, RUN, 5, False),
    "share": Estimate(-0.5, -0.6, -0.4, 1, RUN, 5, True),
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("gain.low > 1", True),
        ("gain.low > 1.5", False),
        ("1 < gain.value < 2", False),
        ("1 < gain.value <= 2", True),
        ("gain.runs >= 3 and share.runs < 2", True),
        ("gain.high < 1 or share.high > 0", False),
        ("not gain.high < 1", True),
        ("share.high < gain.low", True),
    ],
)
def test_a_rule_compares_answers(rule, expected):
    assert holds(rule, ANSWERS) is expected


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("loss.low > 1", "name 'loss' is not defined"),
        ("gain.width > 1", "no attribute 'width'"),
        ("gain > 1", "'>' not supported"),
        ("gain.low >", "invalid syntax"),
        ("open('x')", "name 'open' is not defined"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_named(rule, reason):
    with pytest.raises(
        ValueError,
        match=rf"rule = .*; allowed: value, .* and below of gain, share; .*{reason}",
    ):
        holds(rule, ANSWERS)


def test_a_number_is_no_rule():
    with pytest.raises(TypeError, match=r"rule = 1\.5 of class float; allowed: a condition"):
        holds("gain.low", ANSWERS)


def test_a_rule_names_its_queries():
    assert names("gain.low > 1 and (share.high < -0.5 or gain.value < 3)") == ("gain", "share")
