"""Images and grids, row by row in memory, that a program reads in another order.

Every function takes a number of pixels or grid points and a seed, and returns the same arrays for the same
two. They are squares with the most pixels that fit into the number. `points` are rows and columns.
"""

import numpy as np

from experiments.advice.sets.data import SetData


def image_in_columns(n: int, seed: int) -> SetData:
    """Make an image of four channels that is read column by column.

    Args:
        n: pixels at most.
        seed: of the pixels.

    Returns:
        `values` (pixels, 4) float32, `points`, and `trace`.
    """
    side, points = _square(n)
    values = np.random.default_rng(seed).random((side * side, 4), dtype=np.float32)
    return SetData(values=values, points=points, trace=np.arange(side * side).reshape(side, side).T.ravel())


def walk_on_grid(n: int, seed: int, walkers: int = 1024, steps_each: int = 2) -> SetData:
    """Make a grid that random walkers read, each a step in turn, on a torus.

    Args:
        n: grid points at most.
        seed: of the values and of the walks.
        walkers: number of walkers.
        steps_each: steps of all walkers, in grid points.

    Returns:
        `values` (grid points, 2), `points`, and `trace`.
    """
    rng = np.random.default_rng(seed)
    side, points = _square(n)
    steps = max(1, steps_each * side * side // walkers)
    place = rng.integers(0, side, (2, walkers))
    direction = rng.integers(0, 4, (steps, walkers), dtype=np.int8)
    step = np.array([[1, -1, 0, 0], [0, 0, 1, -1]], np.int32)
    row, column = (np.mod(place[axis] + np.cumsum(step[axis][direction], axis=0), side) for axis in (0, 1))
    return SetData(values=rng.random((side * side, 2)), points=points, trace=(row * side + column).ravel())


def _square(n: int) -> tuple[int, np.ndarray]:
    """Return the side of a square of at most n pixels, and row and column of each."""
    side = int(np.floor(np.sqrt(n) + 1e-9))
    return side, np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(np.float64)
