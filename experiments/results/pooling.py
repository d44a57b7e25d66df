"""Spread of runs, pooled over the cases of a table that have the same size and the same statistic.

Three runs that agree by luck have a narrow interval of their own, and Student's t with two degrees of freedom
is wide where they do not. All cases of a table together tell how well its runs repeat: the standard deviation
of the logarithms, pooled, with the degrees of freedom of all. Of the two intervals the wider one counts.
A case whose spread is outlying (Cochran's test at 1 %, repeated, as ISO 5725-2 has it for the repeatability
of a method) keeps its own interval, and is no measure of the others.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its `special` is loaded when first used

from experiments.results.estimate import Spread
from experiments.results.selection import Selection, parts_of
from experiments.results.tables import SIZES

PARTS = (
    "phase",
    "part",
    "what",
    "memory",
    "bytes_per_point",
    "quantity",
)  # columns that tell rows of a case apart
OUTLYING = 0.01  # level of Cochran's test
FIXED = (*SIZES, "size", "length", *PARTS)  # columns that have one value in a pool


def siblings(asked: Selection) -> Selection:
    """Select all cases of a pool: leave out the values of columns that are not in `FIXED`.

    Args:
        asked: selection of one case, or of some.
    """
    own, base = parts_of(asked.where), parts_of(asked.over)
    common = [part for part in own if part in base or not asked.over]
    differ = {_chosen(part) for part in own if part not in base} & {_chosen(part) for part in base}
    labels = differ.union(asked.labels) - {""}
    free = [
        part
        for part in own
        if (name := _chosen(part)) and name not in FIXED and (part in common or name in labels)
    ]
    columns = sorted({*asked.each, *map(_chosen, free)})  # so that like queries have one pool
    where, over = (_joined(part for part in parts if part not in free) for parts in (own, base))
    labelled = tuple(name for name in columns if name in labels)
    return replace(asked, where=where, over=over, each=tuple(columns), labels=labelled, unit="")


def _joined(parts: Iterable[str]) -> str:
    """Join parts of a filter that all hold; one may be alternatives joined by `or`."""
    return " and ".join(f"({part})" for part in sorted(parts))


def pooled(cases: Iterable[tuple[Any, np.ndarray]]) -> dict[Any, Spread]:
    """Return the spread of each pool: that of its cases of two runs or more that differ.

    Args:
        cases: pool and logarithms of the runs, (runs,), of each case.
    """
    found: dict[Any, list[tuple[float, int]]] = {}
    for pool, logs in cases:
        if len(logs) > 1 and np.isfinite(logs).all() and logs.std() > 0:
            found.setdefault(pool, []).append((float(logs.var(ddof=1)), len(logs) - 1))
    return {pool: _of_like(variances) for pool, variances in found.items()}


def _of_like(variances: list[tuple[float, int]]) -> Spread:
    """Pool variances, the outlying large ones left out by Cochran's test, the largest first.

    Args:
        variances: of each case, with its degrees of freedom.
    """
    variances = sorted(variances)
    while True:
        square = sum(variance * freedom for variance, freedom in variances)
        all_freedom = sum(freedom for _, freedom in variances)
        (largest, own), others = variances[-1], all_freedom - variances[-1][1]
        if not others:
            break
        limit = scipy.special.fdtri(own, others, 1 - OUTLYING / len(variances))
        if largest <= limit * (square - largest * own) / others:
            break
        variances.pop()
    return Spread((square / all_freedom) ** 0.5, all_freedom)


def pool_of(columns: Sequence[str], key: Sequence[Any]) -> tuple:
    """Return the values that a case shares with all of its pool.

    Args:
        columns: that identify a case.
        key: their values.
    """
    fixed = {name: value for name, value in zip(columns, key, strict=False) if name in FIXED}
    return tuple(fixed[name] for name in sorted(fixed))


def _chosen(part: str) -> str:
    """Return the column of which a part of a filter chooses values; empty for other filters."""
    tree: Any = ast.parse(part, mode="eval").body
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        tree = tree.operand
    if isinstance(tree, ast.Name):  # a flag, such as `fused`
        return tree.id
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.left, ast.Name):
        is_choice = isinstance(tree.ops[0], ast.Eq | ast.In | ast.NotIn)
        has_names = any(isinstance(node, ast.Name) for node in ast.walk(tree.comparators[0]))
        return tree.left.id if is_choice and not has_names else ""
    return ""
