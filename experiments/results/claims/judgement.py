"""Judge claims: evaluate queries, apply rules, and fill numbers into sentences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.results.claims.reading import Claim, common, placeholders
from experiments.results.claims.rules import NOT_MEASURED, word
from experiments.results.gains import Estimate
from experiments.results.kept.queries import REFERENCE, evaluate

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
        """What the file says and the tables do not: the verdict, or the sentence."""
        if self.parts:
            return [fault for part in self.parts for fault in part.faults] + self._wrong_word
        needed = self.claim.sentence_if
        if needed is None or needed.holds(self.answers):
            return self._wrong_word
        return [
            *self._wrong_word,
            f"{self.claim.id}: the sentence needs {needed.text!r}, which does not hold",
        ]

    @property
    def _wrong_word(self) -> list[str]:
        if self.word == self.claim.verdict:
            return []
        return [f"{self.claim.id}: the file says {self.claim.verdict!r}, the rules {self.word!r}"]

    @property
    def sentence(self) -> str:
        """Reason for the verdict, with its numbers."""
        return filled(self.claim.sentence, self.answers)

    @property
    def here(self) -> str:
        """Numbers measured here, with their runs or gases; the verdicts of a claim's parts."""
        if self.parts:
            names = (part.claim.id.partition(" ")[2].replace("_", " ") for part in self.parts)
            return "; ".join(f"{name}: {part.word}" for name, part in zip(names, self.parts, strict=True))
        shown = [self.answers[name.partition(".")[0]] for name in placeholders(self.claim.here)]
        supports = ", ".join(dict.fromkeys(answer.support for answer in shown))
        return f"{filled(self.claim.here, self.answers)}; {supports}" if shown else self.claim.here


def judge(claim: Claim, root: Path = REFERENCE) -> Judgement:
    """Judge a claim.

    Args:
        claim: of `claims.read`.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, or rules that both hold; the error names the claim.
    """
    if claim.parts:
        parts = tuple(judge(part, root) for part in claim.parts)
        return Judgement(claim, common(tuple(part.word for part in parts)), {}, parts)
    answers = {}
    for name, query in claim.queries.items():
        try:
            answers[name] = evaluate(query, root)
        except ValueError as error:
            raise ValueError(f"claim {claim.id}, query {name}: {error}") from error
    if claim.confirmed_if is None or claim.refuted_if is None:
        return Judgement(claim, NOT_MEASURED, answers)
    try:
        return Judgement(claim, word(claim.confirmed_if, claim.refuted_if, answers), answers)
    except ValueError as error:
        raise ValueError(f"claim {claim.id}: {error}") from error


def filled(template: str, answers: Mapping[str, Estimate]) -> str:
    """Fill the numbers of answers into a text.

    Args:
        template: a text with `{name}`, for a value with its interval, or `{name.value}`, `{name.low}`,
            `{name.high}`, `{name.runs}`.
        answers: by the names of the queries.
    """
    return template.format(**{name: Shown(answer) for name, answer in answers.items()})


def number(value: float) -> str:
    """Format a number with three digits, without an exponent from 0.0001 to 1e15."""
    if 1000 <= abs(value) < 1e15:
        return f"{round(value, DIGITS - 1 - math.floor(math.log10(abs(value)))):,.0f}"
    return f"{value:#.{DIGITS}g}".rstrip(".") if value else "0"


class Shown:
    """Estimate as it is formatted in a text: value, with its interval if there is one."""

    def __init__(self, answer: Estimate) -> None:
        self.value, self.low, self.high = map(number, (answer.value, answer.low, answer.high))
        self.runs = str(answer.runs)

    def __str__(self) -> str:
        return self.value if self.low == self.high else f"{self.value} ({self.low} to {self.high})"

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)
