"""Butz's generalisation of Hilbert's curve to any dimension.

Butz, IEEE Trans. Computers C-20 (1971) 424; as entry point and direction of each cell, Hamilton, Dalhousie
University report CS-2006-07. In 2D it is Hilbert's curve; from 4D on its name is `hilbert`.
"""

import numpy as np

from sfc import checks
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.automaton.curve import Curve
from sfc.automaton.tables import reached
from sfc.bitwise import BitwiseCurve
from sfc.bitwise.bits import gray_code, gray_number, interleaved, is_inside, last_key, ones, separate
from sfc.compile import kernel

TABLE_DIM = 8  # largest dim of tables: 1024 states of 256 cells; each further dim has four times as many


def butz(dim: int, name: str = "butz") -> AnyCurve:
    """Build Butz's curve, which visits sub-cubes in the order of the reflected Gray code.

    A state is the corner where the cube is entered, and the axis along which it is left. Inside, the
    sub-cubes follow the Gray code with that axis first; sub-cube w is entered at corner `entry(w)` and left
    along axis `direction(w)`, both in the frame of the cube.

    Args:
        dim: 2 (Hilbert's curve, 4 states), 3 (12 states), 4 (32 states), up to 64.
        name: of the curve.

    Returns:
        A continuous curve of base 2 from the origin's corner to the opposite one along axis 0; with tables up
        to 8D.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    is_small = checks.integer("dim", dim, 2, KEY_BITS) <= TABLE_DIM
    return automaton(dim, name) if is_small else bitwise(dim, name)


def automaton(dim: int, name: str = "butz") -> Curve:
    """Build the curve by tables; arguments and errors are those of `butz`, up to `TABLE_DIM`."""
    dim = checks.integer("dim", dim, 2, TABLE_DIM)
    cells = 1 << dim
    number = np.arange(cells)
    even = np.maximum(0, (number - 1) // 2 * 2)
    entries = even ^ even >> 1  # the Gray code of the even number before w
    steps = np.where(number % 2, number, number - 1)  # the step before an even w, after an odd w
    directions = np.where(number, [_trailing_ones(step) % dim for step in steps.tolist()], 0)
    rank = np.empty((dim * cells, cells), np.int64)
    next = np.empty_like(rank)
    for axis in range(dim):
        digits = _rotated(number ^ number >> 1, axis + 1, dim)
        inner_corners = _rotated(entries, axis + 1, dim)
        inner_axes = (axis + directions + 1) % dim
        for corner in range(cells):
            state = axis * cells + corner
            rank[state, digits ^ corner] = number
            next[state, digits ^ corner] = inner_axes * cells + (inner_corners ^ corner)
    states = reached(0, lambda state: next[state].tolist())
    place = np.empty(len(next), np.int64)
    place[states] = np.arange(len(states))
    return Curve(name, dim, 2, rank[states], place[next[states]])


def _rotated(bits: np.ndarray, by: int, dim: int) -> np.ndarray:
    """Rotate the bits of corners upwards, so that axis k becomes axis k + by."""
    by %= dim
    return (bits << by | bits >> (dim - by)) & ((1 << dim) - 1)


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1


def bitwise(dim: int, name: str = "butz") -> BitwiseCurve:
    """Build the curve by operations on bits; arguments and errors are those of `butz`."""
    return BitwiseCurve(name, checks.integer("dim", dim, 2, KEY_BITS), encode, decode, is_continuous=True)


@kernel
def encode(cells, order, masks, index):
    """Compute the index of each cell, level by level; the arguments are those of `BitwiseCurve`."""
    n, dim = cells.shape
    bad = n
    group = last_key(dim, 1)
    for i in range(n):
        if is_inside(cells, i, order):
            key, found = interleaved(cells, i, masks), np.uint64(0)
            corner, turn = np.uint64(0), np.int64(1)
            for level in range(order - 1, -1, -1):
                low = np.uint64(level * dim)
                digit = turned_back((key >> low & group) ^ corner, turn, dim, group)
                w = gray_number(digit)
                found |= w << low
                corner, turn = inner(w, corner, turn, dim, group)
            index[i] = found
        else:
            bad = min(bad, i)
    return bad


@kernel
def decode(index, order, masks, cells):
    """Compute the cell of each index, level by level; the arguments are those of `BitwiseCurve`."""
    n, dim = cells.shape
    bad, last, group = n, last_key(dim, order), last_key(dim, 1)
    for i in range(n):
        if index[i] <= last:
            key, corner, turn = np.uint64(0), np.uint64(0), np.int64(1)
            for level in range(order - 1, -1, -1):
                low = np.uint64(level * dim)
                w = index[i] >> low & group
                key |= (turned(gray_code(w), turn, dim, group) ^ corner) << low
                corner, turn = inner(w, corner, turn, dim, group)
            separate(key, masks, cells, i)
        else:
            bad = min(bad, i)
    return bad


@kernel(forceinline=True)
def turned(bits, by, dim, group):
    """Rotate `dim` bits upwards by 0 to dim - 1 places; no shift is by 64."""
    return (bits << np.uint64(by) | bits >> np.uint64(1) >> np.uint64(dim - 1 - by)) & group


@kernel(forceinline=True)
def turned_back(bits, by, dim, group):
    """Rotate `dim` bits downwards; the inverse of `turned`."""
    return (bits >> np.uint64(by) | bits << np.uint64(1) << np.uint64(dim - 1 - by)) & group


@kernel(forceinline=True)
def inner(w, corner, turn, dim, group):
    """Return the corner and turn of sub-cube w; a turn is one more than the axis of a state, modulo dim."""
    if w == np.uint64(0):
        return corner, turn + 1 if turn + 1 < dim else 0
    before = w - np.uint64(1)
    entry = gray_code(before & ~np.uint64(1))
    step = before | np.uint64(1)
    axis = np.int64(ones(step & ~(step + np.uint64(1))))  # its ones below the lowest zero; all are axis 0
    beyond = turn + (axis if axis < dim else 0) + 1
    return corner ^ turned(entry, turn, dim, group), beyond if beyond < dim else beyond - dim
