"""Orderings of a box without a curve: row by row, in stripes, tile by tile, random.

Each function takes the shape of the box and returns a `Scan`: `rank`, (n, dim) int64 cells -> (n,) uint64 of
0 .. prod(shape) - 1, and its inverse `cells`, from (n,) int64 ranks. Axis 0 is the fastest, as in
[thesis, eq. 4.1]: i = x + y Nx + z Nx Ny.
"""

import math
from collections.abc import Sequence

import numpy as np

from sfc import checks
from sfc.registry import Scan

MAX_RANDOM_CELLS = 2**31
TILE = 4


def row(shape: tuple[int, ...]) -> Scan:
    """Build the row-major order: axis 0 fastest, every row in the same direction."""

    def rank(cells: np.ndarray) -> np.ndarray:
        index = np.zeros(len(cells), np.int64)
        for axis in reversed(range(len(shape))):
            index = index * shape[axis] + cells[:, axis]
        return index.astype(np.uint64)

    return Scan(rank, lambda rank: _digits(rank, shape))


def zigzag(shape: tuple[int, ...]) -> Scan:
    """Build the order in stripes (boustrophedon), by unit steps: `row`, alternate rows reversed."""

    def rank(cells: np.ndarray) -> np.ndarray:
        index = np.zeros(len(cells), np.int64)
        for axis in reversed(range(len(shape))):
            forward = cells[:, axis]
            index = index * shape[axis] + np.where(index % 2 == 0, forward, shape[axis] - 1 - forward)
        return index.astype(np.uint64)

    def cells(rank: np.ndarray) -> np.ndarray:
        found = _digits(rank, shape)
        for axis in range(len(shape)):
            rank = rank // shape[axis]  # the number of the row, layer, ... that this axis runs in
            found[:, axis] = np.where(rank % 2 == 0, found[:, axis], shape[axis] - 1 - found[:, axis])
        return found

    return Scan(rank, cells)


def tiled(shape: tuple[int, ...], tile: int | Sequence[int] = TILE) -> Scan:
    """Build the tiled order: row-major inside tiles, and the tiles row-major.

    Tiles at the far sides are cut off by the box.

    Args:
        shape: cells along each axis.
        tile: cells of a tile along every axis, or along each; at least 1. A side longer than the box is cut
            to the box.

    Raises:
        TypeError: a tile that is neither an integer nor a sequence of them.
        ValueError: a side below 1, or another number of sides than axes.
    """
    sides = checks.per_axis("tile", tile, len(shape))
    sides = tuple(min(side, whole) for side, whole in zip(sides, shape, strict=True))

    def rank(cells: np.ndarray) -> np.ndarray:
        before = np.zeros(len(cells), np.int64)  # cells in the tiles that come first
        inside = np.zeros(len(cells), np.int64)
        volume = np.ones(len(cells), np.int64)  # of the box, cut to this tile along the axes processed
        for axis in reversed(range(len(shape))):
            corner = cells[:, axis] // sides[axis] * sides[axis]
            width = np.minimum(sides[axis], shape[axis] - corner)
            before += corner * volume * math.prod(shape[:axis])
            inside = inside * width + cells[:, axis] - corner
            volume *= width
        return (before + inside).astype(np.uint64)

    def cells(rank: np.ndarray) -> np.ndarray:
        found = np.empty((len(rank), len(shape)), np.int64)
        widths = np.empty_like(found)
        volume, rest = np.ones(len(rank), np.int64), np.array(rank, np.int64)
        for axis in reversed(range(len(shape))):
            layer = volume * math.prod(shape[:axis])  # cells in one layer across this axis
            corner = rest // (layer * sides[axis]) * sides[axis]
            rest -= corner * layer
            found[:, axis] = corner
            widths[:, axis] = np.minimum(sides[axis], shape[axis] - corner)
            volume *= widths[:, axis]
        for axis in range(len(shape)):
            found[:, axis] += rest % widths[:, axis]
            rest //= widths[:, axis]
        return found

    return Scan(rank, cells)


def random(shape: tuple[int, ...], seed: int = 0) -> Scan:
    """Build a random permutation of the cells: an order without locality.

    Args:
        shape: cells along each axis.
        seed: of numpy's default generator; at least 0.

    Raises:
        TypeError: a seed that is no integer.
        ValueError: a negative seed, or too many cells for a permutation in memory.
    """
    seed = checks.integer("seed", seed, 0)
    if math.prod(shape) > MAX_RANDOM_CELLS:
        raise ValueError(
            f"random order of {math.prod(shape)} cells; allowed: up to {MAX_RANDOM_CELLS}, because the "
            f"permutation is stored in memory; take a smaller box or another ordering"
        )
    checks.require_allocatable(
        f"random order of {math.prod(shape)} cells", 8 * math.prod(shape), "take a smaller box"
    )
    permutation = np.random.default_rng(seed).permutation(math.prod(shape)).view(np.uint64)
    linear = row(shape)
    inverse: list[np.ndarray] = []

    def cells(rank: np.ndarray) -> np.ndarray:
        if not inverse:
            inverse.append(np.argsort(permutation))
        return linear.cells(inverse[0][rank])

    return Scan(lambda cells: permutation[linear.rank(cells).astype(np.intp)], cells)


def _digits(rank: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Compute the cells of row-major numbers."""
    found = np.empty((len(rank), len(shape)), np.int64)
    for axis, side in enumerate(shape):
        found[:, axis] = rank % side
        rank = rank // side
    return found
