"""Grids of cells over a box, the cells of points in them, and the sort of the numbers of cells.

Integer points without a box are cells themselves.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sfc import checks, device
from sfc.compile import in_threads, kernel
from sfc.integer_grid import (
    EXACT_SIDE,
    IntegerGrid,
    cell_dtype,
    cells_of_integers,
    integer_grid,
    is_exact_in_floats,
)
from sfc.radix_sort import argsort_of_keys

CHUNK = 2**16  # points that a thread takes at a time
NUMBER_BITS = 64  # of the number of a cell
BOX = "a pair (low, high), each a number or one for each axis"
PACKAGE_FILES = f"{Path(__file__).parents[1]}/"


class Grid(NamedTuple):
    """Grid of cells over a box.

    Attributes:
        low: (dim,) float64 lower corner of the box.
        high: (dim,) float64 upper corner.
        width: (dim,) float64 distance that all cells along an axis take; 1 for an axis without extent.
        sides: number of cells along each axis.
    """

    low: np.ndarray
    high: np.ndarray
    width: np.ndarray
    sides: tuple[int, ...]


AnyGrid = Grid | IntegerGrid | None  # None for integers that are cells themselves


def levels_of_grid(points: Any, bits: int | None, cells: Any) -> tuple[tuple[int, ...], int]:
    """Return the base along each axis, and the levels, of the grid that has base**levels cells.

    Args:
        points: (n, dim) array of numpy or cupy; integers without `bits` and `cells` are cells of the grid.
        bits: levels of a grid with a base of 2.
        cells: the cells along each axis, one number for all or one for each, for one level.

    Raises:
        TypeError: an argument of another class.
        ValueError: a number out of range.
    """
    dim = points.shape[1]
    if cells is not None:
        return checks.per_axis("cells", cells, dim, 1, EXACT_SIDE), 1
    if bits is not None:
        most = min(NUMBER_BITS // dim, EXACT_SIDE.bit_length() - 1)
        return (2,) * dim, checks.integer("bits", bits, 0, most)
    return tuple(max(int(most), 0) + 1 for most in points.max(axis=0)) if len(points) else (1,) * dim, 1


def cells_inside(points: Any, sides: tuple[int, ...], clip: bool) -> Any:
    """Return integer points as cells of a grid, clipped if allowed.

    Args:
        points: (n, dim) integers of numpy or cupy.
        sides: cells along each axis.
        clip: whether points may be outside the grid.

    Raises:
        ValueError: a point outside, without `clip`.
    """
    if not points.size or (points.min() >= 0 and points.max() < min(sides)):
        return points
    largest = int(np.iinfo(points.dtype).max)
    ends = [points.dtype.type(min(side - 1, largest)) for side in sides]
    outside = points[:, 0] < 0
    for axis, end in enumerate(ends):
        outside |= (points[:, axis] < 0) | (points[:, axis] > end)
    if not outside.any():
        return points
    alike = len(set(sides)) == 1
    where = f"the grid of {sides[0]} cells along each axis" if alike else f"the grid of {sides} cells"
    if not clip:
        row = int(outside.argmax())
        larger = "give a box" if (points[row] < 0).any() else "take a larger grid, give a box"
        remedy = f"{larger}, or clip=True for the nearest cells"
        raise checks.refuse_value(f"points[{row}]", points[row].tolist(), f"a cell in {where}", remedy)
    _warn_of_clipped(int(outside.sum()), len(points), where)
    cells = points.copy()
    for axis, end in enumerate(ends):
        cells[:, axis] = points[:, axis].clip(points.dtype.type(0), end)
    return cells


def grid_over(points: Any, base: tuple[int, ...], order: int, box: Any, stretch: bool) -> Grid | IntegerGrid:
    """Make the grid of base**order cells along each axis over a box, or over the bounding box of points.

    Args:
        points: (n, dim) floats or integers of numpy or cupy.
        base: one integer for each axis, up to `sfc.integer_grid.EXACT_SIDE`.
        order: levels.
        box: (low, high), or None for the bounding box.
        stretch: whether the cells along each axis fill the box; else they are as wide along all.

    Raises:
        TypeError: a box of another class.
        ValueError: a box that is none, or too wide for float64; a point without a bounding box; an integer
            that has to become a float64 and is none.
    """
    dim = points.shape[1]
    if box is not None:
        corners = corners_of(box, dim)
        whole = integer_grid(*corners, base, order, stretch) if points.dtype.kind in "iu" else None
        if whole and not is_exact_in_floats(whole):
            return whole
        if not whole:
            _require_floats(points)
        low, high = (
            np.array([checks.number(f"{name}[{k}] of the box", end) for k, end in enumerate(corner)])
            for name, corner in zip(("low", "high"), corners, strict=True)
        )
    elif len(points):
        low, high = _extent(points)
        if not (np.isfinite(low) & np.isfinite(high)).all():
            raise refuse_infinite(
                points, "leave such points out, or give a box and clip=True for infinite ones"
            )
    else:
        low = high = np.zeros(dim)
    with np.errstate(over="ignore"):
        extent = high - low
    if not np.isfinite(extent).all():
        raise checks.refuse_value("width of the box", extent.tolist(), "a finite float64", "scale the points")
    width = extent if stretch else np.full(dim, extent.max())
    return Grid(low, high, np.where(width > 0, width, 1.0), tuple(one**order for one in base))


def refuse_infinite(points: Any, remedy: str) -> ValueError:
    """Return the error for the first point of numpy or cupy that is infinite or not a number."""
    row = int((~np.isfinite(points).all(axis=1)).argmax())  # of cupy too, by its own function
    return checks.refuse_value(f"points[{row}]", points[row].tolist(), "finite numbers", remedy)


def _require_floats(points: Any) -> None:
    """Check that points are floats, or integers that a float64 holds."""
    if points.dtype.itemsize < 8 or points.dtype.kind == "f" or not points.size:
        return
    ends = int(points.min()), int(points.max())
    if max(-ends[0], ends[1]) > checks.MOST_EXACT:
        raise ValueError(
            f"points are from {ends[0]} to {ends[1]}; allowed: from -2**53 to 2**53 in a box with corners "
            "between integers, or more than 2**64 apart; give corners of integers"
        )


def _extent(points: Any) -> tuple[np.ndarray, np.ndarray]:
    """Compute the corners of the bounding box, (dim,) float64 each; not finite if a point is not."""
    if device.holds(points):
        return device.extent(points)
    low, high = np.empty((2, -(-len(points) // CHUNK), points.shape[1]))

    def fill(begin: int) -> None:
        part = _as_floats(points[begin : begin + CHUNK])
        fill_extent(part, low[begin // CHUNK], high[begin // CHUNK])

    in_threads(fill, range(0, len(points), CHUNK))
    return low.min(axis=0), high.max(axis=0)


def _as_floats(points: np.ndarray) -> np.ndarray:
    """Convert points to contiguous rows of float32 or float64, without a copy if possible."""
    kind = points.dtype if points.dtype in (np.float32, np.float64) else np.float64
    found = np.ascontiguousarray(points, kind)
    return found if found.flags.writeable else found.copy()  # Numba compiles a second version otherwise


@kernel
def fill_extent(points, low, high):
    """Compute the bounding box of points.

    Args:
        points: (n, dim) float32 or float64, n above 0.
        low: (dim,) float64, filled: least coordinates; NaN if a coordinate is not finite.
        high: (dim,) float64, filled: largest coordinates.
    """
    n, dim = points.shape
    for k in range(dim):
        least = most = points[0, k]
        zero = least - least
        for i in range(n):
            x = points[i, k]
            zero += x - x
            least, most = min(least, x), max(most, x)
        low[k] = least + zero
        high[k] = most


def corners_of(box: Any, dim: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check a box and return the two corners, dim finite integers or floats each."""
    pair = device.to_host(box)
    if hasattr(pair, "__array__") and not isinstance(pair, np.ndarray):
        pair = np.asarray(pair.astype(object) if hasattr(pair, "dtypes") else pair).tolist()
    is_pair = pair.ndim > 0 if isinstance(pair, np.ndarray) else isinstance(pair, Sequence)
    if not is_pair or isinstance(pair, (str, bytes)) or len(pair) != 2:
        raise checks.refuse_class("box", box, BOX)
    corners = []
    for name, corner in zip(("low", "high"), pair, strict=True):
        given = device.to_host(corner)
        if checks.is_number(given):
            ends = [given] * dim
        elif isinstance(given, (list, tuple)) and len(given) == dim and all(map(checks.is_number, given)):
            ends = list(given)
        else:
            named = f"{name} corner of the box"
            ends = checks.array(named, given, "fiu", "numbers", (dim,), whole=True).tolist()
        corners.append(tuple(checks.exact_number(f"{name} corner of the box", end) for end in ends))
    for axis, (least, most) in enumerate(zip(*corners, strict=True)):
        if least > most:
            allowed = f"at least low[{axis}] = {least}"
            raise checks.refuse_value(f"high[{axis}] of the box", most, allowed, f"box is {BOX}")
    return corners[0], corners[1]


def numbers_in_grid(points: Any, number: Callable[[Any, Any], Any], grid: AnyGrid, clip: bool) -> Any:
    """Compute the number of each point's cell in a grid, or of cells without one; clip points, if allowed.

    Args:
        points: (n, dim) array of numpy or cupy.
        number: ((n, dim) cells, (n,) uint64 to fill) for arrays of numpy; for those of cupy, (cells, None)
            -> (n,) uint64.
        grid: of the cells; None for points that are cells.
        clip: whether points may be outside the box.

    Returns:
        (n,) uint64, in the memory of the points.

    Raises:
        ValueError: a point outside, without `clip`; or one that is not a number.
    """
    if isinstance(points, np.ndarray):
        made = np.empty(len(points), np.uint64)

        def fill(begin: int) -> int:
            part = points[begin : begin + CHUNK]
            cells, bad, outside = _cells_of(part, grid, clip)
            if bad < len(part):
                raise _refused(points, begin + bad, grid)
            number(cells, made[begin : begin + len(part)])
            return outside

        clipped = sum(in_threads(fill, range(0, len(points), CHUNK)))
    else:
        cells, bad, clipped = _cells_of(points, grid, clip)
        if bad < len(points):
            raise _refused(points, bad, grid)
        made = number(cells, None)
    if clipped:
        _warn_of_clipped(clipped, len(points), _named(grid))
    return made


def _cells_of(points: Any, grid: AnyGrid, clip: bool) -> tuple[Any, int, int]:
    """Compute cells, the first row that has none (or n), and the number of rows outside the box."""
    if grid is None:
        return points, len(points), 0
    if isinstance(grid, IntegerGrid):
        cells, outside = cells_of_integers(points, grid)
        clipped = int(outside.sum())
        return cells, int(outside.argmax()) if clipped and not clip else len(points), clipped
    if not isinstance(points, np.ndarray):
        return device.cells_in_grid(points, *grid, clip)
    cells, sides = np.empty(points.shape, cell_dtype(max(grid.sides))), np.array(grid.sides, np.uint64)
    bad, clipped = cells_in_grid(_as_floats(points), *grid[:3], sides, clip, cells)
    return cells, int(bad), int(clipped)


def _named(grid: AnyGrid) -> str:
    """Return the box of a grid in words, with corners of Python numbers."""
    assert grid is not None  # cells are checked before
    low, high = (list(end) if isinstance(end, tuple) else end.tolist() for end in grid[:2])
    return f"the box from {low} to {high}"


@kernel
def cells_in_grid(points, low, high, width, sides, clip, cells):
    """Compute the cells of points; points outside the box get the nearest cells if `clip`.

    Args:
        points: (n, dim) float32 or float64.
        low: of `Grid`.
        high: of `Grid`.
        width: of `Grid`.
        sides: (dim,) uint64, of `Grid`.
        clip: whether points may be outside the box.
        cells: (n, dim) uint16, uint32 or uint64, filled.

    Returns:
        First row that is not a number, or outside without `clip`; n if there is none. Number of rows outside.
    """
    n, dim = points.shape
    bad, count = n, 0
    for i in range(n):
        is_outside, is_bad = False, False
        for k in range(dim):
            x = np.float64(points[i, k])
            is_bad |= x != x
            is_outside |= not (low[k] <= x <= high[k])
            x = min(max(x, low[k]), high[k])
            cell = np.uint64(max((x - low[k]) / width[k], 0.0) * np.float64(sides[k]))
            cells[i, k] = min(cell, sides[k] - np.uint64(1))
        count += is_outside
        if is_bad or (is_outside and not clip):
            bad = min(bad, i)
    return bad, count


def _refused(points: Any, row: int, grid: AnyGrid) -> ValueError:
    """Return the error for a point that has no cell."""
    values = points[row].tolist()
    if any(value != value for value in values):
        return checks.refuse_value(f"points[{row}]", values, "numbers", "leave such points out")
    allowed = f"a point in {_named(grid)}"
    remedy = "give a wider box, or clip=True for the nearest cells"
    return checks.refuse_value(f"points[{row}]", values, allowed, remedy)


def _warn_of_clipped(count: int, n: int, where: str) -> None:
    clipped = f"{count} of {n} points are outside {where}: the nearest cells in it are taken for them"
    warnings.warn(clipped, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """Return the number of calls between the function that warns and the caller of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE_FILES):
        level, frame = level + 1, frame.f_back
    return level


def stable_order(numbers: Any, bits: int) -> Any:
    """Return the stable order of numbers.

    Args:
        numbers: (n,) uint64 of numpy or cupy.
        bits: of the largest possible number.

    Returns:
        (n,) int64 rows in the order of their numbers, in the memory of the numbers.
    """
    return device.argsort(numbers, bits) if device.holds(numbers) else argsort_of_keys(numbers, bits)
