"""H-index: a closed path over a square of 2**k cells a side, made of right triangles.

It refines triangles of cells, not squares: it passes through a third of the squares of 2**j cells within its
grid twice. So it has no automaton that reads a digit of each coordinate: no tables in registers or on a
device, no grammar, no limit of `limit_dilation`.

A triangle of side s holds the s**2 / 2 cells with x <= y, or x < y in an odd row. It consists of four
triangles of side h = s / 2: at the origin; at (0, h), mirrored in y; at (0, h), mirrored in x; at (h, h). The
two mirrored ones are traversed backwards. A triangle of side 2 is the cell (0, 0), then (0, 1). The square is
a triangle, then the same one turned by half a turn.

Niedermeier, Reinhardt and Sanders, Discrete Applied Mathematics 117 (2002) 211.
"""

import numpy as np

from sfc import checks
from sfc.bitwise import BitwiseCurve
from sfc.bitwise.bits import is_inside, last_key
from sfc.compile import kernel


def hindex(dim: int = 2) -> BitwiseCurve:
    """Build the H-index.

    Args:
        dim: 2.

    Returns:
        A continuous, closed curve of base 2 from (0, 0); its orders do not refine each other.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: another dim.
    """
    dim = checks.integer("dim", dim, 2, 2)
    return BitwiseCurve("hindex", dim, encode, decode, is_continuous=True, is_closed=True, refines=False)


@kernel
def encode(cells, order, masks, index):
    """Compute the rank of each cell in the part of each triangle; arguments are those of `BitwiseCurve`."""
    n, last = len(cells), (np.int64(1) << order) - 1
    bad = n
    for i in range(n):
        if is_inside(cells, i, order):
            x, y, rank, backwards = np.int64(cells[i, 0]), np.int64(cells[i, 1]), np.uint64(0), 0
            if x > y - (y & 1):
                x, y, rank = last - x, last - y, np.uint64(1)
            for level in range(order - 1, 0, -1):
                half, part = np.int64(1) << level, 0
                if y >= half:
                    y -= half
                    flipped = half - 1 - y
                    if x >= half:
                        part, x = 3, x - half
                    elif x <= flipped - (flipped & 1):
                        part, y = 1, flipped
                    else:
                        part, x = 2, half - 1 - x
                rank = rank << np.uint64(2) | np.uint64(part ^ 3 * backwards)
                backwards ^= (part ^ part >> 1) & 1
            index[i] = rank << np.uint64(1) | np.uint64(y ^ backwards)
        else:
            bad = min(bad, i)
    return bad


@kernel
def decode(index, order, masks, cells):
    """Find the parts of each index from the largest triangle down, then its cell back up."""
    n, end, last = len(index), last_key(2, order), (np.int64(1) << order) - 1
    bad = n
    for i in range(n):
        if index[i] <= end:
            rank, parts, backwards = index[i], np.int64(0), 0
            for level in range(order - 1, 0, -1):
                part = np.int64(rank >> np.uint64(2 * level - 1) & np.uint64(3)) ^ 3 * backwards
                parts = parts << 2 | part
                backwards ^= (part ^ part >> 1) & 1
            x, y = np.int64(0), np.int64(rank & np.uint64(1)) ^ backwards
            for level in range(1, order):
                half, part = np.int64(1) << level, parts & 3
                if part == 1:
                    y = half - 1 - y
                elif part == 2:
                    x = half - 1 - x
                elif part == 3:
                    x += half
                y += half if part else 0
                parts >>= 2
            if order > 0 and rank > end >> np.uint64(1):
                x, y = last - x, last - y
            cells[i, 0], cells[i, 1] = x, y
        else:
            bad = min(bad, i)
    return bad
