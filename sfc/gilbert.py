"""A Hilbert-like path through any box in 2D and 3D, by unit steps only.

In the manner of gilbert (J. Cerveny, 2018): a box with a direction is cut into two, three or five boxes with
directions of their own, halving its sides. Here the cuts are chosen by parity, so that no step is ever
diagonal. A path by unit steps from a corner of an a x b x c box to the next corner along a exists if a is
even, or if all sides are odd: a unit step changes the parity of x + y + z. Every cut below leaves boxes of
that kind. On a square of 2**k cells the path is Hilbert's.
"""

import numba
import numpy as np

from sfc.compile import compiler
from sfc.scans import Scan

kernel = compiler("sfc")
_PIECES = 5


def gilbert(shape: tuple[int, ...]) -> Scan:
    """The path through a box of 2 or 3 axes.

    Args:
        shape: cells along each axis.

    Returns:
        Rank of cells and cells of ranks, each found by descending the cuts: O(log n) a cell.
    """
    sides = np.array([*shape, *(1,) * (3 - len(shape))], np.int64)
    axes = np.array(_major_first(tuple(sides.tolist())), np.int64)

    def rank(cells):
        padded = np.zeros((len(cells), 3), np.int64)
        padded[:, : len(shape)] = cells
        ranks = np.empty(len(cells), np.int64)
        _rank(padded[:, axes], sides[axes], ranks)
        return ranks.astype(np.uint64)

    def cells(rank):
        found = np.empty((len(rank), 3), np.int64)
        _cells(np.ascontiguousarray(rank, dtype=np.int64), sides[axes], found)
        return found[:, np.argsort(axes)][:, : len(shape)]

    return Scan(rank, cells)


def _major_first(sides: tuple[int, ...]) -> list[int]:
    """The axes, that of the path's direction first: the longest, unless it is odd and another is even."""
    order = sorted(range(3), key=lambda axis: -sides[axis])
    even = [axis for axis in order if sides[axis] % 2 == 0]
    if sides[order[0]] % 2 == 0 or not even:
        return order
    if 2 * sides[order[0]] > 3 * sides[even[0]]:
        return [order[0], even[0], ({*order} - {order[0], even[0]}).pop()]  # cut off an end: see _pieces
    return [even[0], *(axis for axis in order if axis != even[0])]


@kernel
def _even_near(x):
    """An even number near x, at least 2."""
    return max(2, 2 * ((x + 1) // 2))


@kernel
def _piece(out, number, start, axes, sides):
    """Piece `number`: the corner where it starts, and for its three axes (1, 2, 3 and sign) their lengths."""
    for k in range(3):
        out[number, k] = start[k]
        out[number, 3 + k] = axes[k]
        out[number, 6 + k] = sides[k]


@kernel
def _pieces(a, b, c, out):
    """Cut an a x b x c box with a path along a into pieces, in the order of the path; returns how many."""
    if a % 2 == 1 and (b % 2 == 0 or c % 2 == 0):
        # only at the top, where a is by far the longest: an even stretch, then an end with a path along b
        a1 = a - (b + 1 if b % 2 == 0 and b + 1 < a else 1)
        _piece(out, 0, (0, 0, 0), (1, 2, 3), (a1, b, c))
        _piece(out, 1, (a1, 0, 0), (2, 1, 3), (b, a - a1, c))
        return 2
    if 2 * a > 3 * b and 2 * a > 3 * c and a > 3:
        a1 = _even_near(a // 2) if a % 2 == 0 else _even_near(a // 2 - 1)
        if a1 >= a:
            a1 = a - 2
        _piece(out, 0, (0, 0, 0), (1, 2, 3), (a1, b, c))
        _piece(out, 1, (a1, 0, 0), (1, 2, 3), (a - a1, b, c))
        return 2
    a2 = a // 2
    if c >= b and (3 * c > 4 * b or a % 2 == 1):  # three pieces in the plane of a and c
        c2 = min(_even_near(c // 2), c - 1)
        _piece(out, 0, (0, 0, 0), (3, 1, 2), (c2, a2, b))
        _piece(out, 1, (0, 0, c2), (1, 3, 2), (a, c - c2, b))
        _piece(out, 2, (a - 1, 0, c2 - 1), (-3, -1, 2), (c2, a - a2, b))
        return 3
    if 3 * b > 4 * c or a % 2 == 1:  # the same in the plane of a and b
        b2 = min(_even_near(b // 2), b - 1)
        _piece(out, 0, (0, 0, 0), (2, 1, 3), (b2, a2, c))
        _piece(out, 1, (0, b2, 0), (1, 2, 3), (a, b - b2, c))
        _piece(out, 2, (a - 1, b2 - 1, 0), (-2, -1, 3), (b2, a - a2, c))
        return 3
    if c % 2 == 0 or b % 2 == 1:
        if c % 2 == 1 and a2 % 2 == 0:
            a2 -= 1
        b2, c2 = min(_even_near(b // 2), b - 1), c // 2
        _piece(out, 0, (0, 0, 0), (2, 3, 1), (b2, c2, a2))
        _piece(out, 1, (0, b2, 0), (3, 1, 2), (c, a2, b - b2))
        _piece(out, 2, (0, b2 - 1, c - 1), (1, -2, -3), (a, b2, c - c2))
        _piece(out, 3, (a - 1, b2, c - 1), (-3, -1, 2), (c, a - a2, b - b2))
        _piece(out, 4, (a - 1, b2 - 1, 0), (-2, 3, -1), (b2, c2, a - a2))
    else:  # b even, c odd: the same with b and c exchanged
        c2, b2 = min(_even_near(c // 2), c - 1), b // 2
        _piece(out, 0, (0, 0, 0), (3, 2, 1), (c2, b2, a2))
        _piece(out, 1, (0, 0, c2), (2, 1, 3), (b, a2, c - c2))
        _piece(out, 2, (0, b - 1, c2 - 1), (1, -3, -2), (a, c2, b - b2))
        _piece(out, 3, (a - 1, b - 1, c2), (-2, -1, 3), (b, a - a2, c - c2))
        _piece(out, 4, (a - 1, 0, c2 - 1), (-3, 2, -1), (c2, b2, a - a2))
    return 5


@kernel(parallel=True)
def _rank(cells, sides, ranks):
    for i in numba.prange(len(cells)):
        ranks[i] = _rank_of(cells[i], sides)


@kernel
def _rank_of(cell, sides):
    pieces = np.empty((_PIECES, 9), np.int64)
    size, here, moved = sides.copy(), cell.copy(), np.empty(3, np.int64)
    rank = 0
    while size[1] > 1 or size[2] > 1:
        for p in range(_pieces(size[0], size[1], size[2], pieces)):
            inside = True
            for k in range(3):
                axis = abs(pieces[p, 3 + k]) - 1
                away = here[axis] - pieces[p, axis]
                moved[k] = away if pieces[p, 3 + k] > 0 else -away
                inside &= 0 <= moved[k] < pieces[p, 6 + k]
            if inside:
                for k in range(3):
                    here[k], size[k] = moved[k], pieces[p, 6 + k]
                break
            rank += pieces[p, 6] * pieces[p, 7] * pieces[p, 8]
    return rank + here[0]


@kernel(parallel=True)
def _cells(ranks, sides, cells):
    for i in numba.prange(len(ranks)):
        _cell_at(ranks[i], sides, cells[i])


@kernel
def _cell_at(rest, sides, cell):
    pieces = np.empty((_PIECES, 9), np.int64)
    size = sides.copy()
    axes, turned = np.arange(1, 4), np.empty(3, np.int64)  # of the box, that this piece's axes lie along
    cell[:] = 0
    while size[1] > 1 or size[2] > 1:
        for p in range(_pieces(size[0], size[1], size[2], pieces)):
            volume = pieces[p, 6] * pieces[p, 7] * pieces[p, 8]
            if rest < volume:
                for k in range(3):
                    _advance(cell, axes[k], pieces[p, k])
                    along = pieces[p, 3 + k]
                    turned[k] = axes[along - 1] if along > 0 else -axes[-along - 1]
                for k in range(3):
                    axes[k], size[k] = turned[k], pieces[p, 6 + k]
                break
            rest -= volume
    _advance(cell, axes[0], rest)


@kernel
def _advance(cell, axis, distance):
    if axis > 0:
        cell[axis - 1] += distance
    else:
        cell[-axis - 1] -= distance
