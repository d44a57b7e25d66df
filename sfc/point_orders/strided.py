"""Orders of points by their occurrence in a cell: neighbouring threads have points of different cells.

Particle-in-cell codes sort their particles so, that threads which run together add to different cells, and
that these cells follow each other in memory: R. Bird, N. Tan, S. V. Luedtke, S. L. Harrell, M. Taufer and
B. Albright, VPIC 2.0: Next Generation Particle-in-Cell Simulations, IEEE Transactions on Parallel and
Distributed Systems 33 (2022) 952. The cells are numbered by rows, axis 0 fastest.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfc import checks, device
from sfc.point_keys.grid import (
    NUMBER_BITS,
    cells_inside,
    grid_over,
    levels_of_grid,
    numbers_in_grid,
    stable_order,
)

TILE = 32  # cells; as many as the threads of a warp
SORTING = 64  # bytes for each point, of the numbers, the rows and the keys of the two sorts
Cells = int | Sequence[int] | np.ndarray | None


def strided(
    points: Any,
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    stretch: bool = False,
    cells: Cells = None,
) -> Any:
    """Return the strided order: the first point of every cell, then the second of every cell, and so on.

    The points of one turn are in the order of their cells; the occurrences in a cell are in the order given.
    Neither the shape of the grid nor empty cells change it, if the cells of the points are the same.

    Args:
        points: (n, dim) floats or integers, of numpy or cupy; integers without a box are cells themselves.
        bits: the grid has 2**bits cells along each axis, those of `sfc.keys` with a base of 2.
        box: (low, high), each a number or one for each axis, in units of the points. None for the bounding
            box of the points.
        clip: take the nearest cell for a point outside the box, or outside the grid, and warn how many.
        stretch: let the cells of `bits` along each axis fill the box, so that they are no cubes.
        cells: the cells along each axis, one number for all or one for each, in place of `bits`. They fill
            the box along each axis, whatever `stretch`. For integers without a box, the grid of which they
            are cells; None for the smallest that holds them.

    Returns:
        (n,) int64 rows of the points in their order, in the memory of the points.

    Raises:
        TypeError: an argument of another class.
        ValueError: as `sfc.keys` for the points, the box and clip. Both `bits` and `cells`, or neither where
            points are no cells; more cells than 64 bits number, or more than 2**48 along an axis.

    Example:
        >>> import sfc
        >>> sfc.argsort([[0.1], [0.2], [0.9], [0.3], [0.8]], "strided", cells=2, box=(0, 1)).tolist()
        [0, 2, 1, 4, 3]
    """
    numbers, count = _numbers(points, bits, box, clip, stretch, cells)
    return _by_occurrence(numbers, count, count)


def tiled_strided(
    points: Any,
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    stretch: bool = False,
    cells: Cells = None,
    tile: int = TILE,
) -> Any:
    """Return the tiled strided order: tile after tile of successive cells, and `strided` within each tile.

    Points of one cell are closer together in memory than in the strided order, while as many threads as a
    tile has cells may still have points of different cells. The default is a cell for each thread of a warp.

    Args:
        points: as for `strided`, like all that follow.
        bits: 2**bits cells along each axis.
        box: (low, high), or None.
        clip: whether points may be outside the box.
        stretch: whether the cells of `bits` fill the box.
        cells: cells along each axis. The tiles depend on them, so that integers without a box have to give
            the shape of their grid, if it is larger than the smallest that holds them.
        tile: cells of a tile, at least 1: a run of successive numbers, empty cells included. With 1 the
            points are sorted by cell; with all cells of the grid this is the strided order.

    Returns:
        (n,) int64 rows of the points in their order, in the memory of the points.

    Raises:
        TypeError, ValueError: as `strided`; a tile that is no integer, or below 1.

    Example:
        >>> import sfc
        >>> sfc.argsort([[3], [0], [2], [1], [0], [3]], "tiled_strided", tile=2).tolist()
        [1, 3, 4, 2, 0, 5]
    """
    tile = checks.integer("tile", tile, unit="cells")
    numbers, count = _numbers(points, bits, box, clip, stretch, cells)
    return _by_occurrence(numbers, count, tile)


def _numbers(
    points: Any, bits: int | None, box: Any, clip: bool, stretch: bool, cells: Cells
) -> tuple[Any, int]:
    """Compute the number of each point's cell by rows, (n,) uint64, and the number of all cells."""
    n, dim = points.shape
    checks.integer("axes of the points", dim)
    are_cells = box is None and points.dtype.kind in "iu"
    base, order = _levels(points, bits, cells, are_cells)
    sides = tuple(one**order for one in base)
    if math.prod(sides) > 2**NUMBER_BITS:
        allowed = f"up to 2**{NUMBER_BITS}, so that a number fits {NUMBER_BITS} bits"
        raise checks.refuse_value(f"cells of the grid {sides}", math.prod(sides), allowed, "take wider cells")
    free = device.free_memory if device.holds(points) else None
    checks.require_allocatable(f"the order of {n} points", SORTING * n, "give fewer at a time", free)
    if are_cells:
        points, grid = cells_inside(points, sides, clip), None
    else:
        grid = grid_over(points, base, order, box, stretch or cells is not None)

    def by_rows(cells: Any, out: Any) -> Any:
        number = cells[:, dim - 1].astype(np.uint64)
        for axis in reversed(range(dim - 1)):
            # A side of 2**64 is the only one above 1, and multiplies zeros
            number = number * np.uint64(sides[axis] % 2**64) + cells[:, axis].astype(np.uint64)
        if out is not None:
            out[:] = number
        return number

    return numbers_in_grid(points, by_rows, grid, clip), math.prod(sides)


def _levels(points: Any, bits: int | None, cells: Cells, are_cells: bool) -> tuple[tuple[int, ...], int]:
    """Return the base along each axis and the levels of the grid that has base**levels cells."""
    if (bits is None) == (cells is None) and not (are_cells and cells is None):
        raise ValueError(
            f"bits = {checks.shown(bits)} beside cells = {checks.shown(cells)}; allowed: one of them, the "
            "cells along each axis; for particles, give as many cells as the cutoff fits into the box"
        )
    return levels_of_grid(points, bits, cells)


def _by_occurrence(numbers: Any, count: int, tile: int) -> Any:
    """Return the rows by the tile of their cell, then their occurrence in the cell, then the cell.

    In the order of the cells, a row has the key: first row of its tile + rows of its cell before it. The keys
    of a tile are below the first row of the next, and a stable sort keeps rows of equal keys by their cell.

    Args:
        numbers: (n,) uint64 of numpy or cupy: cell of each row.
        count: of all cells.
        tile: cells of a tile.
    """
    by_cell = stable_order(numbers, (count - 1).bit_length())
    if not len(numbers):
        return by_cell
    cells = numbers[by_cell]
    key = np.cumsum(np.ones_like(by_cell)) - 1 - _starts(cells)
    if tile < count:
        key += _starts(cells // np.uint64(tile))
    return by_cell[stable_order(key.astype(np.uint64), int(key.max()).bit_length())]


def _starts(values: Any) -> Any:
    """Return the first row with the value of each row, (n,) int64, of (n,) sorted values, n above 0."""
    is_first = np.ones_like(values, dtype=bool)
    is_first[1:] = values[1:] != values[:-1]
    return np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
