"""H-index: a closed path over a square of 2**k cells a side, made of right triangles.

It is an ordering and no `Curve`: it refines triangles of cells, and passes through a third of the squares of
2**j cells within its grid twice. So it has no automaton that reads a digit of each coordinate, no grammar, no
tables in registers and no limit of `limit_dilation`; a device ranks by a table of all cells.

A triangle of side s holds the s**2 / 2 cells with x <= y, or x < y in an odd row. It consists of four
triangles of side h = s / 2: at the origin; at (0, h), mirrored in y; at (0, h), mirrored in x; at (h, h). The
two mirrored ones are traversed backwards. A triangle of side 2 is the cell (0, 0), then (0, 1). The square is
a triangle, then the same one turned by half a turn.

Niedermeier, Reinhardt and Sanders, Discrete Applied Mathematics 117 (2002) 211.
"""

import numpy as np

from sfc.compile import kernel, numba
from sfc.registry import Scan


def covering(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the smallest shape around a box that the H-index fills: a square of 2**k cells a side."""
    return (1 << (max(shape) - 1).bit_length(),) * 2


def hindex(shape: tuple[int, ...]) -> Scan:
    """Build the H-index of a square.

    Args:
        shape: 2**k cells along both axes.

    Returns:
        Rank of cells and cells of ranks: unit steps from (0, 0), of the last cell to the first too.

    Raises:
        ValueError: another shape (the message names the next one that it can fill).
    """
    if covering(shape) != shape:
        raise ValueError(
            f"hindex of {shape} cells; allowed: (n, n) with n a power of two; the smallest that holds this "
            f"box is {covering(shape)}, which sfc.covering() ranks it by"
        )
    order = shape[0].bit_length() - 1

    def rank(cells: np.ndarray) -> np.ndarray:
        found = np.zeros(len(cells), np.uint64)
        if order:
            _ranks.for_items(len(cells))(np.ascontiguousarray(cells), order, found)
        return found

    def cells(rank: np.ndarray) -> np.ndarray:
        found = np.zeros((len(rank), 2), np.int64)
        if order:
            _cells.for_items(len(rank))(np.ascontiguousarray(rank), order, found)
        return found

    return Scan(rank, cells)


@kernel(parallel=True)
def _ranks(cells, order, ranks):
    """Compute the rank of each cell from the part of each triangle that contains it."""
    last = (1 << order) - 1
    for i in numba.prange(len(cells)):
        x, y, rank, backwards = cells[i, 0], cells[i, 1], np.int64(0), 0
        if x > y - (y & 1):
            x, y, rank = last - x, last - y, np.int64(1)
        for level in range(order - 1, 0, -1):
            half, part = 1 << level, 0
            if y >= half:
                y -= half
                flipped = half - 1 - y
                if x >= half:
                    part, x = 3, x - half
                elif x <= flipped - (flipped & 1):
                    part, y = 1, flipped
                else:
                    part, x = 2, half - 1 - x
            rank = 4 * rank + (part ^ 3 * backwards)
            backwards ^= (part ^ part >> 1) & 1
        ranks[i] = 2 * rank + (y ^ backwards)


@kernel(parallel=True)
def _cells(ranks, order, cells):
    """Compute the cell of each rank: the parts from the largest triangle down, then its cell back up."""
    last = (1 << order) - 1
    for i in numba.prange(len(ranks)):
        rank, parts, backwards = np.int64(ranks[i]), np.int64(0), 0
        for level in range(order - 1, 0, -1):
            part = rank >> 2 * level - 1 & 3 ^ 3 * backwards
            parts = 4 * parts + part
            backwards ^= (part ^ part >> 1) & 1
        x, y = np.int64(0), rank & 1 ^ backwards
        for level in range(1, order):
            half, part = 1 << level, parts & 3
            if part == 1:
                y = half - 1 - y
            elif part == 2:
                x = half - 1 - x
            elif part == 3:
                x += half
            y += half if part else 0
            parts >>= 2
        if rank >> 2 * order - 1:
            x, y = last - x, last - y
        cells[i, 0], cells[i, 1] = x, y
