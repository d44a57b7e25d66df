"""Morton order (Z order): the bits of the coordinates, interleaved."""

import numpy as np

from sfc import checks
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.automaton.curve import Curve
from sfc.bitwise import BitwiseCurve
from sfc.bitwise.bits import interleaved, is_inside, last_key, separate
from sfc.compile import kernel

TABLE_DIM = 8  # largest dim of tables


def morton(dim: int) -> AnyCurve:
    """Build Morton's order, also called Z or Lebesgue order. Morton, IBM technical report (1966).

    Args:
        dim: 1 to 64. Axis 0 gives the lowest bit of each group.

    Returns:
        A curve of base 2, with tables of one state up to 8D; it is continuous in 1D only.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    return automaton(dim) if checks.integer("dim", dim, 1, KEY_BITS) <= TABLE_DIM else bitwise(dim)


def automaton(dim: int) -> Curve:
    """Build the curve by tables; arguments and errors are those of `morton`, up to `TABLE_DIM`."""
    dim = checks.integer("dim", dim, 1, TABLE_DIM)
    return Curve("morton", dim, 2, np.arange(2**dim)[None], np.zeros((1, 2**dim), np.int64))


def bitwise(dim: int) -> BitwiseCurve:
    """Build the curve by operations on bits; arguments and errors are those of `morton`."""
    return BitwiseCurve("morton", dim, encode, decode, is_continuous=dim == 1)


@kernel
def encode(cells, order, masks, index):
    """Interleave the bits of each cell; the arguments are those of `BitwiseCurve`."""
    n = len(cells)
    bad = n
    for i in range(n):
        if is_inside(cells, i, order):
            index[i] = interleaved(cells, i, masks)
        else:
            bad = min(bad, i)
    return bad


@kernel
def decode(index, order, masks, cells):
    """Separate the bits of each index; the arguments are those of `BitwiseCurve`."""
    n, last = len(index), last_key(cells.shape[1], order)
    bad = n
    for i in range(n):
        if index[i] <= last:
            separate(index[i], masks, cells, i)
        else:
            bad = min(bad, i)
    return bad
