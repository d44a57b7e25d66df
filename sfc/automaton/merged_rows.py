"""Tables of a curve of base 2 that walk a fixed number of levels in a look-up, at any order."""

from typing import NamedTuple

import numpy as np

from sfc.automaton import walk
from sfc.automaton.curve import Curve


class MergedRows(NamedTuple):
    """Rows of a merged table: one for each state, and if needed one more for the first look-up.

    A digit has `levels` bits of each coordinate side by side, axis 0 lowest.

    Attributes:
        rank: (rows, 2**(dim * levels)) int64: the next digit of the index, by digit.
        next: (rows, 2**(dim * levels)) int64: the next row, by digit.
        start: row of the first look-up.
        top: the digits for which the row `start` is defined: if it walks fewer levels, those of the lowest
            bits of each coordinate. For all others it has rank 0 and row 0.
    """

    rank: np.ndarray
    next: np.ndarray
    start: int
    top: np.ndarray


def merged_rows(curve: Curve, order: int, levels: int) -> MergedRows:
    """Merge levels of a curve for look-ups of `levels` levels each.

    If the order is no multiple of `levels`, an added row walks only the rest in the first look-up.

    Args:
        curve: of base 2.
        order: recursion depth, 1 or more.
        levels: of a look-up, 1 or more.
    """
    states, dim, rest = len(curve.rank), curve.dim, order % levels
    digits = np.arange(2 ** (dim * levels))
    made = _entries(curve, levels)
    rank, next_row, start = made % len(digits), made // len(digits), curve.start
    if rest:
        number = np.arange(2 ** (dim * rest))
        top = sum((number >> axis * rest & 2**rest - 1) << axis * levels for axis in range(dim))
        entries = _entries(curve, rest)[curve.start]
        rank, next_row = (np.vstack([table, np.zeros_like(digits)]) for table in (rank, next_row))
        rank[states, top], next_row[states, top], start = (
            entries % len(number),
            entries // len(number),
            states,
        )
    else:
        top = digits
    return MergedRows(rank, next_row, start, top)


def _entries(curve: Curve, levels: int) -> np.ndarray:
    """Return next state * digits + rank by state and digit, of some levels."""
    encode, _ = walk.merged(curve.cell, curve.succ, curve.dim, 2, levels)
    return encode.reshape(len(curve.rank), -1).astype(np.int64)
