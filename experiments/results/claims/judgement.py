"""Judge claims: evaluate queries, apply rules, and fill numbers into sentences.

Contract. A rule is a Python expression of the answers of a claim's queries, by their names, such as
`gain.above(1) and share.value < 0.5`: it is shown to the reader as it is evaluated. Times are compared by
`above` and `below`, which count the noise of their table, see `estimate.Estimate`; `of` is the number of
alternatives that `or` joins.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.results.claims.claim import CONFIRMED, DEPENDS, NOT_MEASURED, REFUTED, Claim, placeholders
from experiments.results.gains import Estimate
from experiments.results.kept.queries import REFERENCE, Query, evaluate
from sfc import checks

DIGITS = 3


@dataclass(frozen=True)
class Judgement:
    """Claim with the answers of its queries and the verdict that its rules give.

    Args:
        claim: that is judged.
        word: "confirmed", "refuted", "depends" or "not measured".
        answers: name of the query -> its answer.
        parts: judgements of the parts of the claim.
    """

    claim: Claim
    word: str
    answers: Mapping[str, Estimate]
    parts: tuple["Judgement", ...] = ()

    @property
    def faults(self) -> list[str]:
        """What the claim says and the tables do not: the verdict, or the sentence."""
        id, needed = self.claim.id, self.claim.sentence_if
        found = [fault for part in self.parts for fault in part.faults]
        if self.word != self.claim.verdict:
            found.append(f"{id}: the claim says {self.claim.verdict!r}, the rules {self.word!r}")
        if needed and not holds(needed, self.answers):
            found.append(f"{id}: the sentence needs {needed!r}, which does not hold")
        return found

    @property
    def sentence(self) -> str:
        """On what the verdict depends, with its numbers."""
        return filled(self.claim.sentence, self.answers)

    @property
    def cell(self) -> str:
        """What a table has of the verdict: on what it depends, and at most three numbers."""
        return f"{self.sentence} {self.here}".rstrip()

    @property
    def here(self) -> str:
        """Numbers measured here, with their runs or gases; the verdicts of a claim's parts."""
        if self.parts:
            return "; ".join(f"{part.claim.name}: {part.word}" for part in self.parts)
        answers = [self.answers[name.partition(".")[0]] for name in placeholders(self.claim.here)]
        several = dict.fromkeys(answer.support for answer in answers if answer.runs > 1)
        return "; ".join(filter(None, (filled(self.claim.here, self.answers), ", ".join(several))))


def judge(claim: Claim, root: Path = REFERENCE) -> Judgement:
    """Judge a claim.

    Args:
        claim: of `claim.collected`.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, or rules that both hold; the error names the claim.
    """
    if claim.parts:
        parts = tuple(judge(part, root) for part in claim.parts)
        words = {part.word for part in parts}
        return Judgement(claim, words.pop() if len(words) == 1 else DEPENDS, {}, parts)
    answers = answered(claim.queries, f"claim {claim.id}, ", root)
    return Judgement(claim, verdict_by_rules(claim, answers), answers)


def answered(queries: Mapping[str, Query], of: str = "", root: Path = REFERENCE) -> dict[str, Estimate]:
    """Evaluate queries by their names.

    Args:
        queries: name -> query.
        of: what has them, for errors.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered; the error names it.
    """
    found = {}
    for name, query in queries.items():
        try:
            found[name] = evaluate(query, root)
        except ValueError as error:
            raise ValueError(f"{of}query {name}: {error}") from error
    return found


def verdict_by_rules(claim: Claim, answers: Mapping[str, Estimate]) -> str:
    """Return the verdict that the rules of a claim give: "depends" if neither holds.

    Args:
        claim: with rules, or "not measured".
        answers: by the names of the queries.

    Raises:
        ValueError: both hold, or one that cannot be evaluated.
    """
    if not claim.confirmed_if:
        return NOT_MEASURED
    try:
        confirmed, refuted = holds(claim.confirmed_if, answers), holds(claim.refuted_if, answers)
        if confirmed and refuted:
            raise checks.refuse_value("rules that hold", claim.rules, "one of the two, or none")
    except ValueError as error:
        raise ValueError(f"claim {claim.id}: {error}") from error
    return CONFIRMED if confirmed else REFUTED if refuted else DEPENDS


def holds(rule: str, answers: Mapping[str, Estimate]) -> bool:
    """Return whether a rule holds.

    Args:
        rule: text of this package, see the contract of this file.
        answers: by the names of the queries.

    Raises:
        ValueError: a name without an answer, a field that no answer has, or what is neither true nor false.
    """
    try:
        truth = eval(rule, {"__builtins__": {}}, dict(answers))
    except (SyntaxError, NameError, AttributeError, TypeError) as error:
        allowed = f"value, low, high, runs, above and below of {', '.join(answers)}"
        raise checks.refuse_value("rule", rule, allowed, str(error)) from error
    return bool(checks.instance("rule", truth, bool, "a condition"))


def filled(template: str, answers: Mapping[str, Estimate]) -> str:
    """Fill the numbers of answers into a text.

    Args:
        template: a text with `{name}`, for a value with its interval, or `{name.value}`, `{name.low}`,
            `{name.high}`, `{name.runs}`.
        answers: by the names of the queries.
    """
    return template.format(**shown(answers))


def shown(answers: Mapping[str, Estimate]) -> dict[str, "Shown"]:
    """Return answers by their names as texts have them."""
    return {name: Shown(answer) for name, answer in answers.items()}


def number(value: float) -> str:
    """Format a number with three digits, without an exponent from 0.0001 to 1e15."""
    if 1000 <= abs(value) < 1e15:
        return f"{round(value, DIGITS - 1 - math.floor(math.log10(abs(value)))):,.0f}"
    return f"{value:#.{DIGITS}g}".rstrip(".") if value else "0"


class Shown:
    """Estimate as every text has it: value, with its interval if there is one, and its caveats in brackets.

    Attributes:
        value: the number and its caveats: "4.74 (does not carry over; one run)".
        low, high: ends of the interval, to be shown beside the value.
        runs: how many.
        support: how many runs or gases it rests on: "3 runs".
        noise: its noise floor, the factor by which equal code measured twice differed.
    """

    def __init__(self, answer: Estimate) -> None:
        self._number, self.low, self.high = map(number, (answer.value, answer.low, answer.high))
        self._caveats, self.runs = answer.caveats, str(answer.runs)
        self.support, self.noise = answer.support, number(answer.noise_floor)
        self.value = self._with()

    def __str__(self) -> str:
        return self._with() if self.low == self.high else self._with(f"{self.low} to {self.high}")

    def _with(self, *ends: str) -> str:
        inside = "; ".join((*ends, *self._caveats))
        return f"{self._number} ({inside})" if inside else self._number

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)
