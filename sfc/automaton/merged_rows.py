"""Tables of a curve that walk a fixed number of levels in a look-up, at any order."""

from typing import NamedTuple

import numpy as np

from sfc.automaton import walk
from sfc.automaton.curve import Curve


class MergedRows(NamedTuple):
    """Rows of a merged table: one for each state, and if needed one more for the first look-up.

    A digit has `levels` digits of each coordinate as one number of base**levels, axis 0 lowest.

    Attributes:
        rank: (rows, base**(dim * levels)) int64: the next digit of the index, by digit.
        next: (rows, base**(dim * levels)) int64: the next row, by digit.
        start: row of the first look-up.
        top: the digits for which the row `start` is defined: if it walks fewer levels, those with zeros in
            the upper digits of each coordinate. For all others it has rank 0 and row 0.
    """

    rank: np.ndarray
    next: np.ndarray
    start: int
    top: np.ndarray


def merged_rows(curve: Curve, order: int, levels: int) -> MergedRows:
    """Merge levels of a curve for look-ups of `levels` levels each.

    If the order is no multiple of `levels`, an added row walks only the rest in the first look-up.

    Args:
        curve: the curve.
        order: recursion depth, 1 or more.
        levels: of a look-up, 1 or more.
    """
    states, rest = len(curve.rank), order % levels
    rank, next_row = _by_digit(curve, levels)
    if not rest:
        return MergedRows(rank, next_row, curve.start, np.arange(rank.shape[1]))
    own = _by_digit(curve, rest)
    number, axes = np.arange(own[0].shape[1])[:, None], np.arange(curve.dim)
    top = (number // curve.base ** (rest * axes) % curve.base**rest) @ curve.base ** (levels * axes)
    rank, next_row = (np.vstack([table, np.zeros_like(table[:1])]) for table in (rank, next_row))
    rank[states, top], next_row[states, top] = (table[curve.start] for table in own)
    return MergedRows(rank, next_row, states, top)


def _by_digit(curve: Curve, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank and the next state, (states, base**(dim * levels)) int64, after some levels."""
    encode, _ = walk.merged(curve.cell, curve.succ, curve.dim, curve.base, levels)
    digits = curve.base ** (curve.dim * levels)
    bits = (digits - 1).bit_length()
    entries = encode.reshape(len(curve.rank), 1 << bits)[:, :digits].astype(np.int64)
    return entries & (1 << bits) - 1, entries >> bits
