"""Orders of a box that follow no curve: row by row, in stripes, at random.

Each factory takes the box's shape and returns its key: (n, dim) int64 cells -> (n,) uint64, a permutation of
0 .. prod(shape) - 1. Axis 0 runs fastest, as in the thesis: i = x + y Nx + z Nx Ny (its eq. 4.1).
"""

import math
from collections.abc import Callable

import numpy as np

MAX_RANDOM_CELLS = 2**31
Key = Callable[[np.ndarray], np.ndarray]


def row(shape: tuple[int, ...]) -> Key:
    """Row-major: axis 0 fastest, every row in the same direction."""

    def key(cells):
        index = np.zeros(len(cells), np.int64)
        for axis in reversed(range(len(shape))):
            index = index * shape[axis] + cells[:, axis]
        return index.astype(np.uint64)

    return key


def zigzag(shape: tuple[int, ...]) -> Key:
    """Stripes (boustrophedon).

    As `row`, but every other row, and every other layer, runs backwards. Unit steps.
    """

    def key(cells):
        index = np.zeros(len(cells), np.int64)
        for axis in reversed(range(len(shape))):
            forward = cells[:, axis]
            index = index * shape[axis] + np.where(index % 2 == 0, forward, shape[axis] - 1 - forward)
        return index.astype(np.uint64)

    return key


def random(shape: tuple[int, ...], seed: int = 0) -> Key:
    """A random permutation of the cells: what no locality at all looks like.

    Args:
        shape: cells along each axis.
        seed: of numpy's default generator.

    Raises:
        ValueError: more cells than a permutation can be held of.
    """
    if math.prod(shape) > MAX_RANDOM_CELLS:
        raise ValueError(
            f"random order of {math.prod(shape)} cells; allowed: up to {MAX_RANDOM_CELLS}, because the "
            f"permutation is held in memory; take a smaller box or another ordering"
        )
    permutation = np.random.default_rng(seed).permutation(math.prod(shape)).astype(np.uint64)
    linear = row(shape)
    return lambda cells: permutation[linear(cells)]
