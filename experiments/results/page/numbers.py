"""Numbers of the page's sentences: answers of the claims' queries, and of those of no claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.results.claims.claim import names
from experiments.results.claims.judgement import Judgement, Shown, answered, holds, shown
from experiments.results.claims.numbers import HOLDS, NUMBERS
from experiments.results.kept.queries import REFERENCE, Query


def of_claims(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """Return id of a claim -> name of a query -> number; of a claim with parts, name of the part first."""
    found: dict[str, Any] = {}
    for one in judgements:
        whole, _, part = one.claim.id.partition(" ")
        found[part or whole] = of_claims(one.parts) or shown(one.answers)
    return found


def of_page(
    queries: Mapping[str, Query] = NUMBERS, rules: Sequence[str] = HOLDS, root: Path = REFERENCE
) -> dict[str, Shown]:
    """Return name -> number of the queries that no claim has; check the rules that the sentences need.

    Args:
        queries: name -> query.
        rules: on their answers.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query that cannot be answered, or a rule that does not hold; the error names it.
    """
    answers = answered(queries, root=root)
    for rule in rules:
        if not holds(rule, answers):
            found = ", ".join(f"{name} = {Shown(answers[name])}" for name in names(rule))
            raise ValueError(
                f"the sentences of the page need {rule!r}; found: {found}; allowed: what the tables say; "
                "change the sentence, and its rule in claims/numbers.py"
            )
    return shown(answers)
