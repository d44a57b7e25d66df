"""Numbers of the page's sentences: answers of the claims' queries, and of those of no claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.results.claims.claim import names
from experiments.results.claims.judgement import Judgement, Shown, holds, number
from experiments.results.claims.numbers import HOLDS, NUMBERS
from experiments.results.estimate import Estimate
from experiments.results.kept.queries import REFERENCE, Query, evaluate


class Number(Shown):
    """Answer as a sentence has it.

    Attributes:
        support: how many runs or gases it rests on: "3 runs".
        noise: its noise floor, the factor by which equal code measured twice differed.
    """

    def __init__(self, answer: Estimate) -> None:
        super().__init__(answer)
        self.support, self.noise = answer.support, number(answer.noise_floor)


def of_claims(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """Return id of a claim -> name of a query -> number; of a claim with parts, name of the part first."""
    return {one.claim.id: _of(one) for one in judgements}


def of_page(
    queries: Mapping[str, Query] = NUMBERS, rules: Sequence[str] = HOLDS, root: Path = REFERENCE
) -> dict[str, Number]:
    """Return name -> number of the queries that no claim has; check the rules that the sentences need.

    Args:
        queries: name -> query.
        rules: on their answers.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, or a rule that does not hold; the error names it.
    """
    answers = {}
    for name, query in queries.items():
        try:
            answers[name] = evaluate(query, root)
        except ValueError as error:
            raise ValueError(f"query {name}: {error}") from error
    for rule in rules:
        if not holds(rule, answers):
            found = ", ".join(f"{name} = {Shown(answers[name])}" for name in names(rule))
            raise ValueError(
                f"the sentences of the page need {rule!r}; found: {found}; allowed: what the tables say; "
                "change the sentence, and its rule in claims/numbers.py"
            )
    return {name: Number(answer) for name, answer in answers.items()}


def _of(judgement: Judgement) -> Mapping[str, Any]:
    if judgement.parts:
        return {part.claim.id.partition(" ")[2]: _of(part) for part in judgement.parts}
    return {name: Number(answer) for name, answer in judgement.answers.items()}
