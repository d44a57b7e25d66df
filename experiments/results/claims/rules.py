"""Rules of verdicts: comparisons of the answers of queries with each other and with numbers.

Contract. A rule is an expression such as `gain.low > 1 and share.value < 0.5`: comparisons, which may be
chained, of numbers and of `value`, `low`, `high` and `runs` of named queries, joined by `and`, `or` and
`not`. Everything else is refused, so that a rule can neither compute nor call anything. A rule names a query
in each comparison; a comparison of two numbers could not fail.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from sfc import checks

FIELDS = ("value", "low", "high", "runs")
CONFIRMED, REFUTED, DEPENDS, NOT_MEASURED = "confirmed", "refuted", "depends", "not measured"
WORDS = (CONFIRMED, REFUTED, DEPENDS, NOT_MEASURED)
ALLOWED = "comparisons of <query>.value, .low, .high, .runs and numbers, joined by and, or, not"
_OPERATORS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class Answered(Protocol):
    """Answer of a query, as a rule reads it."""

    @property
    def value(self) -> float:
        """The number."""

    @property
    def low(self) -> float:
        """Lower end of its interval."""

    @property
    def high(self) -> float:
        """Upper end of its interval."""

    @property
    def runs(self) -> int:
        """How many runs or gases it rests on."""


@dataclass(frozen=True)
class Rule:
    """Condition on the answers of queries.

    Args:
        text: the expression, see the contract of this file.

    Raises:
        TypeError: no str.
        ValueError: an expression that does not parse, or holds anything else than the contract allows.
    """

    text: str

    def __post_init__(self) -> None:
        """Parse the expression and check each part of it."""
        text = checks.text("rule", self.text)
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise checks.refuse_value("rule", text, ALLOWED, f"it does not parse: {error}") from error
        object.__setattr__(self, "_tree", tree.body)
        _check(tree.body, text)

    @property
    def names(self) -> tuple[str, ...]:
        """Queries that the rule names, each once, in its order."""
        return tuple(dict.fromkeys(name for name, _ in self.fields))

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a query and the field of its answer that the rule reads."""
        return tuple(_fields(self._tree))  # type: ignore[attr-defined]  # set above

    @property
    def numbers(self) -> tuple[float, ...]:
        """Numbers that the rule compares with."""
        constants = (n.value for n in ast.walk(self._tree) if isinstance(n, ast.Constant))  # type: ignore[attr-defined]
        return tuple(float(value) for value in constants if isinstance(value, (int, float)))

    def holds(self, answers: Mapping[str, Answered]) -> bool:
        """Return whether the rule holds.

        Args:
            answers: by the names of the queries.

        Raises:
            ValueError: a query without an answer.
        """
        if missing := [name for name in self.names if name not in answers]:
            raise checks.refuse_value(
                "rule", self.text, f"queries {', '.join(answers) or '(none)'}", f"add {', '.join(missing)}"
            )
        return _truth(self._tree, answers)  # type: ignore[attr-defined]


def word(confirmed_if: Rule, refuted_if: Rule, answers: Mapping[str, Answered]) -> str:
    """Return the verdict that two rules give: "confirmed", "refuted", or "depends" if neither holds.

    Args:
        confirmed_if: the claim is confirmed if it holds.
        refuted_if: the claim is refuted if it holds.
        answers: by the names of the queries.

    Raises:
        ValueError: both hold, or a query has no answer.
    """
    confirmed, refuted = confirmed_if.holds(answers), refuted_if.holds(answers)
    if confirmed and refuted:
        raise ValueError(
            f"both rules hold: confirmed_if = {confirmed_if.text!r} and refuted_if = {refuted_if.text!r}; "
            "allowed: one of them, or none; make them exclude each other"
        )
    return CONFIRMED if confirmed else REFUTED if refuted else DEPENDS


def _fields(node: ast.AST) -> Iterator[tuple[str, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            yield part.value.id, part.attr


def _check(node: ast.AST, text: str) -> None:
    """Refuse every node that the contract does not name."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            _check(part, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _check(node.operand, text)
    elif isinstance(node, ast.Compare):
        operands = (node.left, *node.comparators)
        if all(type(op) in _OPERATORS for op in node.ops) and all(map(_is_operand, operands)):
            pairs = pairwise(operands)
            if all(any(isinstance(one, ast.Attribute) for one in pair) for pair in pairs):
                return
        raise _refused(node, text)
    else:
        raise _refused(node, text)


def _is_operand(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in FIELDS


def _refused(node: ast.AST, text: str) -> ValueError:
    return checks.refuse_value("rule", text, ALLOWED, f"change {ast.unparse(node)!r}")


def _truth(node: ast.AST, answers: Mapping[str, Answered]) -> bool:
    if isinstance(node, ast.BoolOp):
        parts = (_truth(part, answers) for part in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp):
        return not _truth(node.operand, answers)
    if not isinstance(node, ast.Compare):
        raise TypeError(f"node {ast.dump(node)} was not checked")
    values = [_number(part, answers) for part in (node.left, *node.comparators)]
    pairs = zip(node.ops, pairwise(values), strict=True)
    return all(_OPERATORS[type(op)](left, right) for op, (left, right) in pairs)


def _number(node: ast.AST, answers: Mapping[str, Answered]) -> float:
    if isinstance(node, ast.UnaryOp):
        return -_number(node.operand, answers)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return float(getattr(answers[node.value.id], node.attr))
    raise TypeError(f"node {ast.dump(node)} was not checked")
