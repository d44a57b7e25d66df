"""Skilling's curve: Hilbert's curve in any dimension by turns of the transposed index.

Skilling, AIP Conf. Proc. 707 (2004) 381. In 2D it is `hilbert`, cell by cell. In 3D it is another curve than
Butz's: no rotation, mirror or reversal maps one to the other (shown by a test).
"""

import numpy as np

from sfc import checks
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.automaton.curve import Curve
from sfc.bitwise import BitwiseCurve
from sfc.bitwise.bits import gathered, gray_code, gray_number, is_inside, last_key, spread
from sfc.compile import kernel

TABLE_DIM = 5  # largest dim of tables: 1920 states of 32 cells; in 6D there are 23040 of 64


def skilling(dim: int) -> AnyCurve:
    """Build Skilling's curve.

    Level by level from the top, a coordinate with the level's bit set mirrors axis 0 below that level, and
    any other one swaps its lower bits with those of axis 0. Then the interleaved bits, axis 0 the highest of
    each group, are a reflected Gray code of the index.

    Args:
        dim: 2 (4 states), 3 (24 states), 4 (192 states), up to 64.

    Returns:
        A continuous curve of base 2 that starts in the origin's corner; with tables up to 5D.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    return automaton(dim) if checks.integer("dim", dim, 2, KEY_BITS) <= TABLE_DIM else bitwise(dim)


def automaton(dim: int) -> Curve:
    """Build the curve by tables; arguments and errors are those of `skilling`, up to `TABLE_DIM`.

    A state is the axis of the cube that is read as axis k, for each k, and the set of axes that are mirrored
    then. An index of odd parity above mirrors the Gray code below, which is one more mirror of axis 0.
    """
    dim = checks.integer("dim", dim, 2, TABLE_DIM)
    start = tuple(range(dim)), (0,) * dim
    number, pending = {start: 0}, [start]
    rank, next = [], []
    for axes, mirrors in pending:  # grows during the loop
        ranks, inner = [], []
        for digit in range(1 << dim):
            bits = [digit >> axis & 1 ^ mirror for axis, mirror in zip(axes, mirrors, strict=True)]
            parity = 0
            for bit in bits:
                parity = parity << 1 | (parity & 1 ^ bit)
            ranks.append(parity)
            state = _inner(axes, mirrors, bits)
            if state not in number:
                number[state] = len(pending)
                pending.append(state)
            inner.append(number[state])
        rank.append(ranks)
        next.append(inner)
    return Curve("skilling", dim, 2, rank, next)


State = tuple[tuple[int, ...], tuple[int, ...]]


def _inner(axes: tuple[int, ...], mirrors: tuple[int, ...], bits: list[int]) -> State:
    """Return the state inside a sub-cube of given bits, as they are read in the state outside."""
    inner_axes, inner_mirrors = list(axes), list(mirrors)
    inner_mirrors[0] ^= bits[0]
    for k in range(1, len(bits)):
        if bits[k]:
            inner_mirrors[0] ^= 1
        else:
            for values in (inner_axes, inner_mirrors):
                values[0], values[k] = values[k], values[0]
    inner_mirrors[0] ^= sum(bits) & 1
    return tuple(inner_axes), tuple(inner_mirrors)


def bitwise(dim: int) -> BitwiseCurve:
    """Build the curve by operations on bits; arguments and errors are those of `skilling`."""
    dim = checks.integer("dim", dim, 2, KEY_BITS)
    return BitwiseCurve("skilling", dim, encode, decode, is_continuous=True)


@kernel
def encode(cells, order, masks, index):
    """Turn each cell level by level from the top; the arguments are those of `BitwiseCurve`."""
    n, dim = cells.shape
    bad = n
    x = np.empty(dim, np.uint64)
    for i in range(n):
        if is_inside(cells, i, order):
            for k in range(dim):
                x[k] = cells[i, k]
            first = x[0]
            for level in range(order - 1, 0, -1):
                first ^= bits_below(first, level)
                for k in range(1, dim):
                    first, x[k] = mirrored_or_swapped(first, x[k], level)
            x[0], code = first, np.uint64(0)
            for k in range(dim):
                code |= spread(x[k], masks, np.uint64(dim - 1)) << np.uint64(dim - 1 - k)
            index[i] = gray_number(code)
        else:
            bad = min(bad, i)
    return bad


@kernel
def decode(index, order, masks, cells):
    """Turn each cell level by level from below; the arguments are those of `BitwiseCurve`."""
    n, dim = cells.shape
    bad, last = n, last_key(dim, order)
    x = np.empty(dim, np.uint64)
    for i in range(n):
        if index[i] <= last:
            code = gray_code(index[i])
            for k in range(dim):
                x[k] = gathered(code >> np.uint64(dim - 1 - k), masks, np.uint64(dim - 1))
            first = x[0]
            for level in range(1, order):
                for k in range(dim - 1, 0, -1):
                    first, x[k] = mirrored_or_swapped(first, x[k], level)
                first ^= bits_below(first, level)
            cells[i, 0] = first
            for k in range(1, dim):
                cells[i, k] = x[k]
        else:
            bad = min(bad, i)
    return bad


@kernel(forceinline=True)
def bits_below(x, level):
    """Return the bits below a level, as ones if a coordinate has the level's bit, or else as zeros."""
    bit = x >> np.uint64(level) & np.uint64(1)
    return (bit << np.uint64(level)) - bit


@kernel(forceinline=True)
def mirrored_or_swapped(first, other, level):
    """Return axis 0 and another one: mirrored axis 0 if the other has the level's bit, else both swapped."""
    mirror = bits_below(other, level)
    swap = (first ^ other) & ~mirror & ((np.uint64(1) << np.uint64(level)) - np.uint64(1))
    return first ^ mirror ^ swap, other ^ swap
