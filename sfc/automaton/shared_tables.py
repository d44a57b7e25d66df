"""Tables for the kernels of shared_tables.cu, which encode and decode with a table in shared memory.

A look-up takes several levels of a curve: in base 2 four in 2D, and two in 3D and 4D; in another base as many
as `sfc.automaton.walk` takes. The table has several copies: lanes of a warp that read different copies read
different banks. If the order is no multiple of these levels, an added row walks only the rest of them, so
that a kernel depends on the order by the number of look-ups alone.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sfc.automaton import walk
from sfc.automaton.curve import Curve
from sfc.automaton.merged_rows import merged_rows

LEVELS = {2: 4, 3: 2, 4: 2}  # dim -> levels of a look-up in base 2
ENOUGH_BYTES = 2**17  # of shared memory for several copies
MOST_COPIES = 4  # as a power of two
CODE_SHIFT = 18  # in an entry of digit_table.cuh
BY_BITS, BY_DIGITS = "binary_table.cuh", "digit_table.cuh"


class SharedTables(NamedTuple):
    """Tables of a curve at an order.

    Attributes:
        header: file with the functions of the table.
        constants: what the source defines: sizes of the table, look-ups of a point.
        start: row of the first look-up.
        size: bytes of shared memory.
        encode: (rows, digits) uint32: code and next row. In base 2 the code is the rank << (32 - bits of a
            digit), in another base the rank << `CODE_SHIFT`.
        decode: (rows, digits) uint32: code and next row, by rank. In base 2 the code is the digit << 24, in
            another base the coordinates' digits in equal fields, the highest bits of the entry.
    """

    header: str
    constants: tuple[tuple[str, int], ...]
    start: int
    size: int
    encode: np.ndarray
    decode: np.ndarray


@lru_cache(maxsize=64)
def shared_tables(curve: Curve, order: int, room: int) -> SharedTables | None:
    """Merge levels of a curve into tables for shared memory; None if it has none that fit.

    Args:
        curve: the curve.
        order: recursion depth.
        room: bytes of shared memory for the table.
    """
    states, dim, base = len(curve.rank), curve.dim, curve.base
    if dim not in LEVELS or order == 0 or base**order > 2**32:
        return None
    levels = LEVELS[dim] if base == 2 else walk.levels_at_once(dim, base, states)
    digits = base ** (dim * levels)
    field = (base**levels - 1).bit_length()
    if base != 2 and max((digits - 1).bit_length(), dim * field) > 32 - CODE_SHIFT:
        return None
    rows, bits = states + (order % levels > 0), (digits - 1).bit_length()
    most = range(MOST_COPIES + 1)
    sizes = [_size_by_bits(rows, bits, c) if base == 2 else _size_by_digits(rows, digits, c) for c in most]
    fitting = [c for c in most if sizes[c] <= (min(room, ENOUGH_BYTES) if c else room)]
    if not fitting:
        return None
    rank, next_row, start, top = merged_rows(curve, order, levels)
    number = np.arange(digits)
    if base == 2:
        code, shift, rank_shift = number, 24, 32 - bits
    else:
        axes = np.arange(dim)
        code = (number[:, None] // base ** (levels * axes) % base**levels << field * axes).sum(axis=1)
        shift, rank_shift = 32 - dim * field, CODE_SHIFT
    decode = np.zeros_like(rank)
    for row in range(states):
        decode[row, rank[row]] = code << shift | next_row[row]
    decode[start, rank[start, top]] = code[top] << shift | next_row[start, top]
    tables = ((rank << rank_shift | next_row).astype(np.uint32), decode.astype(np.uint32))
    constants = {
        "DIM": dim,
        "BASE": base,
        "LEVELS": levels,
        "GROUPS": -(-order // levels),
        "STATES": rows,
        "COPY_BITS": fitting[-1],
        "TABLE_BYTES": sizes[fitting[-1]],
    }
    if base != 2:
        constants["FIELD"] = field
    header = BY_BITS if base == 2 else BY_DIGITS
    return SharedTables(header, tuple(constants.items()), start, sizes[fitting[-1]], *tables)


def _size_by_bits(rows: int, bits: int, copy_bits: int) -> int:
    """Return the bytes of a table with the low bits of a row below the digit, and the others above it."""
    return -(-rows // 2 ** (6 - copy_bits)) * 2 ** (8 + bits)


def _size_by_digits(rows: int, digits: int, copy_bits: int) -> int:
    """Return the bytes of a table without gaps, a multiple of 16."""
    return -(-(4 * rows * digits << copy_bits) // 16) * 16
