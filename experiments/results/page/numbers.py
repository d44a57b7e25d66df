"""Numbers of the page's sentences: answers of the claims' queries, and of those in `numbers.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.claims.reading import query_of, read_tables
from experiments.results.claims.rules import Rule
from experiments.results.kept.queries import REFERENCE, evaluate

HOLDS = "holds"  # list of rules
FILE = Path(__file__).parent / "numbers.toml"


class Number(Shown):
    """Answer as a sentence has it, with `support` ("3 runs") beside the fields of `Shown`."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer)
        self.support = answer.support


def of_claims(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """Return id of a claim -> name of a query -> number; of a claim with parts, name of the part first."""
    return {one.claim.id: _of(one) for one in judgements}


def of_page(path: Path = FILE, root: Path = REFERENCE) -> dict[str, Number]:
    """Return name -> number of the queries that no claim has; check the rules that the sentences need.

    Args:
        path: of the queries, TOML.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: no TOML, a query that is not allowed or cannot be answered, or a rule that does not
            hold; the error names it.
    """
    tables = read_tables(path, "query")
    answers, rules = {}, [Rule(text) for text in tables.pop(HOLDS, [])]
    for name, table in tables.items():
        try:
            answers[name] = evaluate(query_of(name, table), root)
        except ValueError as error:
            raise ValueError(f"{path.name}, query {name}: {error}") from error
    for rule in rules:
        if not rule.holds(answers):
            found = ", ".join(f"{name} = {Shown(answers[name])}" for name in rule.names)
            raise ValueError(
                f"the sentences of the page need {rule.text!r}; found: {found}; allowed: what the tables "
                f"say; change the sentence, and `{HOLDS}` in {path.name}"
            )
    return {name: Number(answer) for name, answer in answers.items()}


def _of(judgement: Judgement) -> Mapping[str, Any]:
    if judgement.parts:
        return {part.claim.id.partition(" ")[2]: _of(part) for part in judgement.parts}
    return {name: Number(answer) for name, answer in judgement.answers.items()}
