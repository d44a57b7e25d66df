"""Tables for the kernels of shared_tables.cu, which encode and decode with a table in shared memory.

A look-up takes four levels of a curve in 2D, and two in 3D and 4D. The table has several copies: lanes of a
warp that read different copies read different banks. If the order is no multiple of these levels, an added
state walks only the rest of them, so that a kernel depends on the order by the number of look-ups alone.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sfc.automaton.curve import Curve
from sfc.automaton.merged_rows import merged_rows

LEVELS = {2: 4, 3: 2, 4: 2}  # dim -> levels of a look-up
MOST_BYTES, ENOUGH_BYTES = 2**17 + 2**16, 2**17  # of shared memory; of several copies
MOST_COPIES = 4  # as a power of two


class SharedTables(NamedTuple):
    """Tables of a curve at an order.

    Attributes:
        groups: look-ups of a point.
        states: rows of each table.
        start: row of the first look-up.
        copy_bits: the table has 2**copy_bits copies in shared memory.
        size: bytes of shared memory.
        encode: (states, digits) uint32: rank << (32 - bits of a digit) | next row.
        decode: (states, digits) uint32: digit << 24 | next row, by rank.
    """

    groups: int
    states: int
    start: int
    copy_bits: int
    size: int
    encode: np.ndarray
    decode: np.ndarray


@lru_cache(maxsize=64)
def shared_tables(curve: Curve, order: int) -> SharedTables | None:
    """Merge levels of a curve into tables for shared memory; None if it has none that fit.

    Args:
        curve: the curve.
        order: recursion depth.
    """
    if curve.base != 2 or curve.dim not in LEVELS or order == 0:
        return None
    levels = LEVELS[curve.dim]
    bits, rest = curve.dim * levels, order % levels
    states = len(curve.rank) + (rest > 0)
    copies = [
        c for c in range(MOST_COPIES + 1) if _size(states, bits, c) <= (ENOUGH_BYTES if c else MOST_BYTES)
    ]
    if not copies:
        return None
    rank, next_row, start, top = merged_rows(curve, order, levels)
    digits = np.arange(2**bits)
    encode = rank << (32 - bits) | next_row
    decode = np.zeros_like(encode)
    for row in range(len(curve.rank)):
        decode[row, rank[row]] = digits << 24 | next_row[row]
    decode[start, rank[start, top]] = top << 24 | next_row[start, top]
    groups, copy_bits = -(-order // levels), copies[-1]
    tables = encode.astype(np.uint32), decode.astype(np.uint32)
    return SharedTables(groups, states, start, copy_bits, _size(states, bits, copy_bits), *tables)


def _size(states: int, bits: int, copy_bits: int) -> int:
    """Return the bytes of shared memory; low bits of a state stand below the digit, the others above it."""
    return -(-states // 2 ** (6 - copy_bits)) * 2 ** (8 + bits)
