"""Hilbert pancake: a 2D path over square blocks, with a Hilbert curve of a cube in each block.

The curve of the thesis for a shallow box [thesis, chapter 4 and figure 4.6]. The path over the blocks is that
of `gilbert`, which is Hilbert's on a square of 2**k blocks. Each cube is turned so that it starts adjacent to
the end of the previous cube and ends on the side of the next one. A Hilbert cube ends in a corner that
differs from its first corner along one axis. To leave through a side that does not contain the first corner,
this must be the axis of that side; for a side that contains it, any other axis.
"""

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.compile import in_parts, kernel
from sfc.registry import ORDERINGS, Scan, curve

CUBE = "hilbert"  # the curve within a block
PATH = "gilbert"  # the ordering of the blocks
MAX_BLOCKS = 2**28  # at 13 bytes each
_CHUNK = 2**20


def covering(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the smallest shape around a box that a pancake fills: height 2**j, and a base of whole cubes."""
    height = 1 << (shape[2] - 1).bit_length()
    return (*(-(-side // height) * height for side in shape[:2]), height)


def pancake(shape: tuple[int, ...]) -> Scan:
    """Build the pancake of an n x m x h box.

    Args:
        shape: n, m, h with h = 2**j, and n and m multiples of h.

    Returns:
        Rank of cells and cells of ranks; unit steps throughout.

    Raises:
        ValueError: a shape that it cannot fill (the message names the next one that it can), or too many
            blocks to tabulate.
    """
    if covering(shape) != shape:
        raise ValueError(
            f"pancake of {shape} cells; allowed: (n, m, h) with h a power of two, and n and m multiples of "
            f"h; the smallest that holds this box is {covering(shape)}, which sfc.covering() ranks it by"
        )
    height = shape[2]
    order = height.bit_length() - 1
    across = shape[0] >> order, shape[1] >> order
    if across[0] * across[1] > MAX_BLOCKS:
        raise ValueError(
            f"pancake of {shape} cells: {across[0] * across[1]} blocks; allowed: up to {MAX_BLOCKS}, because "
            f"a table of them is stored in memory; take a smaller or higher box, or gilbert"
        )
    checks.require_allocatable(
        f"pancake of {shape} cells", 13 * across[0] * across[1], "take a smaller or higher box"
    )
    cube = curve(CUBE, 3)
    path, number, turns = _blocks(across, _exit_axis(cube))
    last = np.int64(height**3 - 1)

    def rank(cells: np.ndarray) -> np.ndarray:
        found, local = np.empty(len(cells), np.uint64), np.empty((len(cells), 3), np.int64)
        given = np.ascontiguousarray(cells)
        in_parts(lambda p: _to_cube(given[p], order, number, turns, found[p], local[p]), len(given))
        found += cube.encode(local, order)
        return found

    def cells(rank: np.ndarray) -> np.ndarray:
        found = np.empty((len(rank), 3), np.int64)
        local = cube.decode(rank & last, order)
        in_parts(lambda p: _out_of(local[p], rank[p], order, path, turns, found[p]), len(rank))
        return found

    return Scan(rank, cells)


def _exit_axis(cube: AnyCurve) -> int:
    """Return the axis along which the last cell of a curve is opposite its first."""
    return int(np.flatnonzero(cube.traversal(1)[-1])[0])


def _blocks(across: tuple[int, int], exit_axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the path over the blocks, and the orientation of each block's cube.

    Args:
        across: blocks along each axis.
        exit_axis: axis of the unturned cube along which its end is opposite its start.

    Returns:
        path: (blocks, 2) int32, the blocks in order.
        number: `across` int32, the place of each block in that order.
        turns: (blocks,) uint8, as `_turned` returns.
    """
    count = across[0] * across[1]
    over = ORDERINGS[PATH].build(across)
    path, number = np.empty((count, 2), np.int32), np.empty(across, np.int32)
    for start in range(0, count, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, count))
        path[places] = over.cells(places)
        number[path[places, 0], path[places, 1]] = places
    return path, number, _turned(path, exit_axis)


@kernel
def _turned(path, exit_axis):
    """Compute the orientation of each block's cube, as 8 * shift + corner.

    Axis k of the unturned cube lies along axis (k + shift) % 3 of the box; if bit j of the corner is set, the
    cube starts on the far side of axis j of the box.
    """
    count = len(path)
    turns = np.empty(count, np.uint8)
    corner = 0
    for block in range(count):
        axis, side, along = 0, 0, 2  # the last block may end anywhere
        if block < count - 1:
            axis = 0 if path[block, 0] != path[block + 1, 0] else 1
            side = 1 if path[block, axis] < path[block + 1, axis] else 0
            along = axis if (corner >> axis) & 1 != side else 2
        turns[block] = 8 * ((along - exit_axis) % 3) + corner
        corner ^= 1 << along
        corner = (corner & ~(1 << axis)) | ((1 - side) << axis)  # the next block is entered through this side
    return turns


@kernel
def _to_cube(cells, order, number, turns, first, local):
    """Convert cells to the first rank of their block and to cells of the block's unturned cube."""
    top = (1 << order) - 1
    for i in range(len(cells)):
        block = np.int64(number[cells[i, 0] >> order, cells[i, 1] >> order])
        first[i] = block << (3 * order)
        turn = np.int64(turns[block])
        for k in range(3):
            axis = (k + (turn >> 3)) % 3
            local[i, k] = (cells[i, axis] & top) ^ (top if (turn >> axis) & 1 else 0)


@kernel
def _out_of(local, ranks, order, path, turns, cells):
    """Compute the cells of ranks from the cells in the unturned cubes; the inverse of `_to_cube`."""
    top = (1 << order) - 1
    for i in range(len(ranks)):
        block = ranks[i] >> (3 * order)
        turn = np.int64(turns[block])
        for k in range(3):
            axis = (k + (turn >> 3)) % 3
            corner = np.int64(path[block, axis]) << order if axis < 2 else 0
            cells[i, axis] = corner + (local[i, k] ^ (top if (turn >> axis) & 1 else 0))
