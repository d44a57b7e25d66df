"""Hilbert-like path through any box in 2D and 3D, by unit steps only.

After gilbert (J. Cerveny, 2018): a box with a direction is cut into two, three or five boxes, each with a
direction, which halves its sides. Here the cuts are chosen by parity, so that no step is diagonal. A path by
unit steps from a corner of an a x b x c box to the next corner along a exists if a is even, or if all sides
are odd: a unit step changes the parity of x + y + z. Every cut below gives boxes of that kind. On a square of
2**k cells the path is Hilbert's.

The cut of a box depends on its sides only, and few different sides occur. So the cuts are tabulated, as are
the paths through the smallest boxes, and a cell is found by one look-up for each cut that contains it.
"""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sfc.automaton.tables import reached
from sfc.compile import in_parts, kernel
from sfc.registry import Scan

LEAF = 512  # cells; the path through a box of up to so many is tabulated
_FIELD = 10  # bits of a coordinate in such a box
_PIECES = 5
_DEEPEST = 160  # cuts around a cell, at most: of 2**63 cells, each leaves no more than three quarters
_EXCHANGED = {1: 1, 2: 3, 3: 2, -1: -1, -2: -3, -3: -2}
Sides = tuple[int, ...]  # one for each of three axes


class Piece(NamedTuple):
    """Part of a box, with the direction of its path.

    Attributes:
        start: the corner where its path starts.
        axes: 1, 2 or 3 with a sign; for each axis of the piece, the axis of the outer box along which it
            lies.
        sides: cells along the axes of the piece.
    """

    start: Sides
    axes: Sides
    sides: Sides

    def corners(self) -> tuple[list[int], list[int]]:
        """Return the least cell of the piece and the first past it along each axis, in the outer box."""
        low, high = [0] * 3, [0] * 3
        for axis, side in zip(self.axes, self.sides, strict=True):
            k = abs(axis) - 1
            low[k] = self.start[k] if axis > 0 else self.start[k] - side + 1
            high[k] = low[k] + side
        return low, high

    def exchanged(self) -> "Piece":
        """Exchange the second and the third axis of the outer box."""
        x, y, z = self.start
        return Piece((x, z, y), tuple(_EXCHANGED[axis] for axis in self.axes), self.sides)

    def turn(self) -> int:
        """Encode the axes for `_turned`: those of the piece in the low bits, the inverse above them."""
        code = 0
        for k, axis in enumerate(self.axes):
            j, back = abs(axis) - 1, int(axis < 0)
            code |= j << 2 * k | back << 6 + k | k << 9 + 2 * j | back << 15 + j
        return code


class Tables(NamedTuple):
    """Tables of all boxes that occur: first those that are cut, numbered from 0, then the leaves.

    Attributes:
        cut: (boxes, 3) int64; where the box is cut across each axis.
        octant: (boxes, 8) uint8; the piece on the given side of each cut.
        before: (boxes, 5) int64; cells in the pieces before each; the largest int64 if there is no such
            piece.
        piece: (boxes, 5, 5) int64; number of the box, turn, and start along the three axes.
        leaf: (leaves, 4) int64; its first entry below, steps there along its second and third axis, cells.
        leaf_rank: uint16; rank of each cell of each leaf.
        leaf_cell: uint32; coordinates of each rank of each leaf, in fields of _FIELD bits.
    """

    cut: np.ndarray
    octant: np.ndarray
    before: np.ndarray
    piece: np.ndarray
    leaf: np.ndarray
    leaf_rank: np.ndarray
    leaf_cell: np.ndarray


def gilbert(shape: tuple[int, ...]) -> Scan:
    """Build the path through a box of 2 or 3 axes.

    Args:
        shape: cells along each axis.

    Returns:
        Rank of cells and cells of ranks, O(log n) each. One core of an AMD EPYC (Zen 4) ranks 12 million
        of 100 x 100 x 100 cells in random order a second; it finds 10 million, 40 million along the path.
    """
    sides = (*shape, *(1,) * (3 - len(shape)))
    axes = tuple(_major_first(sides))
    a, b, c = (sides[axis] for axis in axes)
    tables = _tables((a, b, c))

    def rank(cells: np.ndarray) -> np.ndarray:
        ranks = np.empty(len(cells), np.uint64)
        given = np.ascontiguousarray(cells, dtype=np.int64)
        in_parts(lambda part: _rank(given[part], axes, tables, ranks[part]), len(given))
        return ranks

    def cells(rank: np.ndarray) -> np.ndarray:
        found = np.empty((len(rank), len(shape)), np.int64)
        given = np.ascontiguousarray(rank, dtype=np.int64)
        in_parts(lambda part: _cells(given[part], axes, tables, found[part]), len(given))
        return found

    return Scan(rank, cells)


def _major_first(sides: tuple[int, ...]) -> list[int]:
    """Sort the axes, the path's direction first: the longest, unless it is odd and another is even."""
    order = sorted(range(3), key=lambda axis: -sides[axis])
    even = [axis for axis in order if sides[axis] % 2 == 0]
    if sides[order[0]] % 2 == 0 or not even:
        return order
    if 2 * sides[order[0]] > 3 * sides[even[0]]:
        return [order[0], even[0], ({*order} - {order[0], even[0]}).pop()]  # cut off an end: see _pieces
    return [even[0], *(axis for axis in order if axis != even[0])]


def _even_near(x: int) -> int:
    """Return an even number near x, at least 2."""
    return max(2, 2 * ((x + 1) // 2))


@lru_cache(2**12)
def _pieces(a: int, b: int, c: int) -> list[Piece]:
    """Cut an a x b x c box with a path along a into pieces, in the order of the path."""
    if a % 2 == 1 and (b % 2 == 0 or c % 2 == 0):
        # only at the top, where a is by far the longest: an even stretch, then an end with a path along b
        a1 = a - (b + 1 if b % 2 == 0 and b + 1 < a else 1)
        return [
            Piece((0, 0, 0), (1, 2, 3), (a1, b, c)),
            Piece((a1, 0, 0), (2, 1, 3), (b, a - a1, c)),
        ]
    if 2 * a > 3 * b and 2 * a > 3 * c and a > 3:
        a1 = _even_near(a // 2 - a % 2)
        return [
            Piece((0, 0, 0), (1, 2, 3), (a1, b, c)),
            Piece((a1, 0, 0), (1, 2, 3), (a - a1, b, c)),
        ]
    is_three = 3 * max(b, c) > 4 * min(b, c) or a % 2 == 1
    pieces = _three_pieces if is_three else _five_pieces
    is_exchanged = c >= b if is_three else b % 2 == 0 and c % 2 == 1
    return [piece.exchanged() for piece in pieces(a, c, b)] if is_exchanged else pieces(a, b, c)


def _three_pieces(a: int, b: int, c: int) -> list[Piece]:
    """Cut a box in the plane of a and b."""
    a2, b2 = a // 2, min(_even_near(b // 2), b - 1)
    return [
        Piece((0, 0, 0), (2, 1, 3), (b2, a2, c)),
        Piece((0, b2, 0), (1, 2, 3), (a, b - b2, c)),
        Piece((a - 1, b2 - 1, 0), (-2, -1, 3), (b2, a - a2, c)),
    ]


def _five_pieces(a: int, b: int, c: int) -> list[Piece]:
    """Cut a box along all axes; c is even, or b is odd."""
    a2, b2, c2 = a // 2, min(_even_near(b // 2), b - 1), c // 2
    if c % 2 == 1 and a2 % 2 == 0:
        a2 -= 1
    return [
        Piece((0, 0, 0), (2, 3, 1), (b2, c2, a2)),
        Piece((0, b2, 0), (3, 1, 2), (c, a2, b - b2)),
        Piece((0, b2 - 1, c - 1), (1, -2, -3), (a, b2, c - c2)),
        Piece((a - 1, b2, c - 1), (-3, -1, 2), (c, a - a2, b - b2)),
        Piece((a - 1, b2 - 1, 0), (-2, 3, -1), (b2, c2, a - a2)),
    ]


@lru_cache(2**12)
def _path(sides: Sides) -> np.ndarray:
    """List every cell of a small box in order: (cells, 3) int64."""
    if sides[1] == sides[2] == 1:
        return np.arange(sides[0])[:, None] * np.array([1, 0, 0])
    parts = []
    for piece in _pieces(*sides):
        turned = np.abs(piece.axes) - 1
        part = np.empty((math.prod(piece.sides), 3), np.int64)
        part[:, turned] = _path(piece.sides) * np.sign(piece.axes)
        parts.append(part + piece.start)
    return np.concatenate(parts)


def _tables(whole: Sides) -> Tables:
    def is_cut(box: Sides) -> bool:
        return math.prod(box) > LEAF

    found = reached(whole, lambda box: [piece.sides for piece in _pieces(*box)] if is_cut(box) else [])
    boxes, leaves = [box for box in found if is_cut(box)], [box for box in found if not is_cut(box)]
    number = {box: k for k, box in enumerate([*boxes, *leaves])}
    cut = np.array(boxes, np.int64).reshape(-1, 3)
    octant = np.zeros((len(boxes), 8), np.uint8)
    before = np.full((len(boxes), _PIECES), np.iinfo(np.int64).max)
    piece = np.zeros((len(boxes), _PIECES, 5), np.int64)
    for k, box in enumerate(boxes):
        cells = 0
        for p, part in enumerate(_pieces(*box)):
            before[k, p] = cells
            piece[k, p] = number[part.sides], part.turn(), *part.start
            cells += math.prod(part.sides)
            low, high = part.corners()
            sides_of_cuts = [[0] * (low[j] == 0) + [1] * (high[j] == box[j]) for j in range(3)]
            for x, y, z in itertools.product(*sides_of_cuts):
                octant[k, x + 2 * y + 4 * z] = p
            cut[k] = [low[j] or cut[k, j] for j in range(3)]
    return Tables(cut, octant, before, piece, *_leaf_tables(leaves))


def _leaf_tables(leaves: list[Sides]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    paths = [_path(sides) for sides in leaves]
    starts = np.cumsum([0, *(len(path) for path in paths)])
    leaf = [(start, a, a * b, a * b * c) for start, (a, b, c) in zip(starts[:-1], leaves, strict=True)]
    ranks = np.empty(starts[-1], np.uint16)
    for (start, *steps, cells), path in zip(leaf, paths, strict=True):
        ranks[start + path @ [1, *steps]] = np.arange(cells)
    packed = np.concatenate(paths) @ (1 << _FIELD * np.arange(3))
    return np.array(leaf, np.int64), ranks, packed.astype(np.uint32)


@kernel
def _turned(turn, x, y, z):
    """Permute and negate coordinates: two bits for each axis, then one sign bit for each."""
    first, second, third = np.int64(0), np.int64(1), np.int64(2)  # one type, where literals would be three
    return _along(turn, first, x, y, z), _along(turn, second, x, y, z), _along(turn, third, x, y, z)


@kernel
def _along(turn, k, x, y, z):
    axis = (turn >> (2 * k)) & 3
    value = x if axis == 0 else (y if axis == 1 else z)
    mask = -((turn >> (6 + k)) & 1)
    return (value ^ mask) - mask


@kernel
def _rank(cells, axes, tables, ranks):
    for i in range(len(cells)):
        ranks[i] = _rank_of(cells, np.uint64(i), axes, tables)


@kernel
def _entry(cells, i, axis):
    return cells[i, axis] if axis < cells.shape[1] else 0  # in 2D, a third axis of one cell


@kernel
def _rank_of(cells, i, axes, tables):
    x, y, z = _entry(cells, i, axes[0]), _entry(cells, i, axes[1]), _entry(cells, i, axes[2])
    box, rank = 0, 0
    while box < len(tables.cut):
        cut = tables.cut[box]
        p = tables.octant[box, (x >= cut[0]) + 2 * (y >= cut[1]) + 4 * (z >= cut[2])]
        rank += tables.before[box, p]
        piece = tables.piece[box, p]
        x, y, z = _turned(piece[1], x - piece[2], y - piece[3], z - piece[4])
        box = piece[0]
    leaf = tables.leaf[box - len(tables.cut)]
    return rank + tables.leaf_rank[leaf[0] + x + y * leaf[1] + z * leaf[2]]


@kernel
def _cells(ranks, axes, tables, cells):
    """Compute the cell of each rank.

    Descends to the leaf of a rank, unless the previous rank has the same leaf, and ascends through the cuts.
    """
    boxes, pieces = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    depth, first, past, start = 0, 0, 0, 0  # ranks first .. past - 1 are in the present leaf
    for i in range(len(ranks)):
        if not first <= ranks[i] < past:
            depth, box, rest = 0, 0, ranks[i]
            while box < len(tables.cut):
                before = tables.before[box]
                p = (rest >= before[1]) + (rest >= before[2]) + (rest >= before[3]) + (rest >= before[4])
                rest -= before[p]
                boxes[depth], pieces[depth] = box, p
                depth += 1
                box = tables.piece[box, p, 0]
            first = ranks[i] - rest
            leaf = tables.leaf[box - len(tables.cut)]
            start, past = leaf[0], first + leaf[3]
        packed = np.int64(tables.leaf_cell[start + ranks[i] - first])
        field = (1 << _FIELD) - 1
        x, y, z = packed & field, (packed >> _FIELD) & field, packed >> (2 * _FIELD)
        for k in range(depth - 1, -1, -1):
            piece = tables.piece[boxes[k], pieces[k]]
            x, y, z = _turned(piece[1] >> 9, x, y, z)
            x, y, z = x + piece[2], y + piece[3], z + piece[4]
        for axis, value in zip(axes, (x, y, z)):  # noqa: B905 - not known to the compiler
            if axis < cells.shape[1]:
                cells[i, axis] = value
