"""Gray-code order: interleaved coordinates read as a reflected Gray code."""

import numpy as np

from sfc import checks
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.automaton.curve import Curve
from sfc.bitwise import BitwiseCurve
from sfc.bitwise.bits import gray_code, gray_number, interleaved, is_inside, last_key, separate
from sfc.compile import kernel

TABLE_DIM = 8  # largest dim of tables


def gray(dim: int) -> AnyCurve:
    """Build the Gray-code order: successive cells differ in one bit of their interleaved coordinates.

    A step is along one axis, by any power of two. Faloutsos, IEEE Trans. Software Eng. 14 (1988) 1381.

    Args:
        dim: 1 to 64. Axis 0 gives the lowest bit of each group.

    Returns:
        A curve of base 2, up to 8D with tables of two states (the parity of the more significant bits); it is
        not continuous.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    return automaton(dim) if checks.integer("dim", dim, 1, KEY_BITS) <= TABLE_DIM else bitwise(dim)


def automaton(dim: int) -> Curve:
    """Build the curve by tables; arguments and errors are those of `gray`, up to `TABLE_DIM`."""
    dim = checks.integer("dim", dim, 1, TABLE_DIM)
    cells = 1 << dim
    number = np.arange(cells)
    rank = np.empty((2, cells), np.int64)
    rank[0, number ^ number >> 1] = number
    rank[1] = cells - 1 - rank[0]
    return Curve("gray", dim, 2, rank, rank & 1)


def bitwise(dim: int) -> BitwiseCurve:
    """Build the curve by operations on bits; arguments and errors are those of `gray`."""
    return BitwiseCurve("gray", dim, encode, decode)


@kernel
def encode(cells, order, masks, index):
    """Interleave the bits of each cell to a Gray code; the arguments are those of `BitwiseCurve`."""
    n = len(cells)
    bad = n
    for i in range(n):
        if is_inside(cells, i, order):
            index[i] = gray_number(interleaved(cells, i, masks))
        else:
            bad = min(bad, i)
    return bad


@kernel
def decode(index, order, masks, cells):
    """Separate the bits of the Gray code of each index; the arguments are those of `BitwiseCurve`."""
    n, last = len(index), last_key(cells.shape[1], order)
    bad = n
    for i in range(n):
        if index[i] <= last:
            separate(gray_code(index[i]), masks, cells, i)
        else:
            bad = min(bad, i)
    return bad
