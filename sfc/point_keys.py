"""Keys of points along a curve, and orders of points by them or by name, for points of floats or of integers.

The key of a point is the index along the curve of the cell that holds it: of a grid over a box, or, for
integer points without a box, of the cell with its coordinates.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sfc import checks, device
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve
from sfc.compile import in_threads, kernel
from sfc.integer_grid import IntegerGrid, cell_dtype, cells_of_integers, integer_grid, is_exact_in_floats
from sfc.radix_sort import argsort_of_keys
from sfc.registry import curve as named_curve
from sfc.registry import point_order, point_orders

CHUNK = 2**16  # points that a thread takes at a time
BOX = "a pair (low, high), each a number or one for each axis"
SORTED = "an array, a tensor, a pandas object or a list"
CONVERT = "convert it by numpy.asarray"
REALS = "floats of 16 to 64 bits, or any integer dtype"
PACKAGE_FILES = f"{Path(__file__).parent}/"


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


def keys(
    points: Any,
    curve: str | AnyCurve = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    *,
    stretch: bool = False,
) -> Any:
    """Compute the key of each point: the index along a curve of the cell that holds it.

    Floats, and integers with a `box`, lie in a grid of `base**bits` cells along each axis. The cells are
    cubes: those along the widest axis of the box fill it. Integers without a box are cells themselves, as
    for `Curve.encode`.

    The cell of a point is floor((point - low) / width * base**bits), the last one for the upper corner. It is
    exact for integers in a box with corners of integers up to 2**64 apart. For others each of the operations
    is rounded to float64, and integers beyond 2**53 are refused.

    Args:
        points: (n, dim) array of numpy or cupy, of floats or integers, with any strides; or any array that
            numpy or DLPack converts. The keys of points on a CUDA device are made there.
        curve: a name of `sfc.curves(dim)`, or a curve.
        bits: levels of the curve: bits of a coordinate, or ternary digits for a base of 3. None for the most
            whose keys fit 64 bits; for integers without a box, for the fewest that hold the largest
            coordinate.
        box: (low, high), each a number or one for each axis, in units of the points. None for the bounding
            box of the points.
        clip: give a point outside the box, or outside the grid, the key of the nearest cell in it, and warn
            how many there are.
        stretch: let the cells along each axis fill the box, so that they are no cubes; integers without a box
            are cells in any case.

    Returns:
        (n,) uint64, of numpy, or of cupy for points on a CUDA device.

    Raises:
        TypeError: an argument of another class; points on a device and a curve without tables.
        ValueError: points of another shape or dtype; an unknown curve, or too many bits for it; a point that
            is not a number, infinite (without both `box` and `clip`), or outside the box or grid (without
            `clip`), with its row in the message; an integer, of a point or a corner, that a float64 does not
            hold, where floats are computed with.

    Example:
        >>> import sfc
        >>> sfc.keys([[0.1, 0.2], [0.9, 0.1], [0.2, 0.9]], bits=2, box=(0, 1)).tolist()
        [0, 15, 5]
    """
    return _keys(points, curve, bits, box, clip, stretch)[0]


def argsort(
    points: Any,
    curve: str | AnyCurve = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    *,
    stretch: bool = False,
    **options: Any,
) -> Any:
    """Return the order of points along a curve: a stable sort of their keys, the same on any machine.

    Orders of points, of `sfc.point_orders()`, have no keys: they rank points, not cells. `strided` lists the
    first point of every cell by rows, axis 0 fastest, then the second of every cell, and so on;
    `tiled_strided` does so in each tile of successive cells. `str`, Sort-Tile-Recursive, sorts by axis 0 and
    cuts into slabs, sorts each slab by axis 1 and cuts it into strips, and so on, so that each run of
    `capacity` points is a tile of neighbours; it has no cells and no box. The modules of `sfc/point_orders`
    have the definitions and the sources.

    Args:
        points: as for `keys`, like all that follow.
        curve: a name or a curve; or the name of an order of points.
        bits: levels of the curve, or None.
        box: (low, high), or None.
        clip: whether points may be outside the box.
        stretch: whether the cells along each axis fill the box.
        options: of an order of points. `strided` and `tiled_strided` take, in place of `bits`, `cells`: the
            cells along each axis, one number for all or one for each, which fill the box; of integers
            without a box, the shape of their grid. `tiled_strided` also takes `tile`, the cells of a tile,
            32 without it. `str` takes `capacity` alone, the points of a tile, 32 without it.

    Returns:
        (n,) int64 rows of the points, in the order of their keys; points of the same cell keep their order.
        Of numpy, or of cupy for points on a CUDA device.

    Raises:
        TypeError, ValueError: as `keys`, and as the function of the order of points.
        ValueError: an option that the curve or the order of points does not take.

    Example:
        >>> import sfc
        >>> sfc.argsort([[0.9, 0.1], [0.1, 0.2], [0.2, 0.9]], bits=2, box=(0, 1)).tolist()
        [1, 2, 0]
    """
    return _order(points, curve, bits, box, clip, stretch, options)


def sort(
    points: Any,
    *arrays: Any,
    curve: str | AnyCurve = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    stretch: bool = False,
    **options: Any,
) -> Any:
    """Sort points along a curve, or by an order of points, and other arrays with them.

    Args:
        points: as for `keys`.
        arrays: any number of arrays, tensors, pandas objects or lists of as many rows, sorted as the points
            are; of sparse matrices those with rows that can be selected, such as CSR.
        curve: as for `argsort`, like all that follow.
        bits: levels of the curve, or None.
        box: (low, high), or None.
        clip: whether points may be outside the box.
        stretch: whether the cells along each axis fill the box.
        options: of an order of points.

    Returns:
        A copy of the points in the order of `argsort`; with arrays, a tuple of it and of theirs.

    Raises:
        TypeError, ValueError: as `argsort`.
        TypeError: an array of another class, or in other memory than the points.
        ValueError: an array with another number of rows, a list of rows of several lengths, or a list of
            integers that numpy rounds.

    Example:
        >>> import sfc
        >>> points, names = sfc.sort([[0.9, 0.1], [0.1, 0.2]], ["east", "west"], bits=2, box=(0, 1))
        >>> names.tolist()
        ['west', 'east']
    """
    order = _order(points, curve, bits, box, clip, stretch, options)
    rows = [_rows_in_order(f"arrays[{k}]", values, order) for k, values in enumerate(arrays)]
    ordered = _rows_in_order("points", points, order)
    return (ordered, *rows) if arrays else ordered


def _rows_in_order(name: str, values: Any, order: Any) -> Any:
    """Return a copy of an array with its rows in an order.

    Raises:
        TypeError: an object that is no array, or an array in other memory than the order.
        ValueError: another number of rows.
    """
    if isinstance(values, (list, tuple)):
        try:
            found = np.asarray(values)
        except ValueError as error:
            remedy = "give rows of one length, or an array of objects"
            raise checks.refuse_value(name, values, "a list that makes an array", remedy) from error
        values = checks.kept(name, values, found) if found.dtype.kind == "f" else found
    shape = getattr(values, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(values, "__getitem__"):
        raise checks.refuse_class(name, values, SORTED, CONVERT)
    if shape == ():
        raise checks.refuse_value(f"shape of {name}", (), f"an array of {len(order)} rows")
    if shape[0] != len(order):
        raise checks.refuse_value(f"rows of {name}", shape[0], f"{len(order)}, as many as points")
    if device.holds(values) != device.holds(order):
        where = "on the device" if device.holds(order) else "in host memory"
        raise checks.refuse_class(name, values, f"an array {where}, as points are")
    try:
        return values.iloc[order] if hasattr(values, "iloc") else values[order]
    except TypeError as error:  # such as a memoryview, which has a shape
        raise checks.refuse_class(name, values, SORTED, CONVERT) from error


def _keys(
    points: Any, curve: str | AnyCurve, bits: int | None, box: Any, clip: bool, stretch: bool
) -> tuple[Any, int]:
    """Compute keys, and the bits of the longest possible one."""
    checks.flag("clip", clip), checks.flag("stretch", stretch)
    points = _points_of(points)
    n, dim = points.shape
    of = curve if isinstance(curve, AnyCurve) else named_curve(curve, dim)
    if of.dim != dim:
        raise checks.refuse_value(
            "dim of the curve", of.dim, f"{dim}, the axes of points of shape {(n, dim)}"
        )
    on_device = not isinstance(points, np.ndarray)
    if on_device and not isinstance(of, Curve):
        remedy = "copy the points to the host with .get(), or take a curve with tables: most up to 8D"
        raise checks.refuse_class("curve", of, "an sfc.Curve for points on a device", remedy)
    if bits is not None:
        remedy = "so that a key fits 64 bits"
        bits = checks.integer(f"bits of {of.name} in {dim}D", bits, 0, of.max_order, remedy=remedy)
    free = device.free_memory if on_device else None
    checks.require_allocatable(f"keys of {n} points", 8 * n, "give fewer at a time", free)
    if box is None and points.dtype.kind in "iu":
        order = _fewest_levels(points, of) if bits is None else bits
        points, grid = cells_inside(points, (of.base**order,) * dim, clip), None
    else:
        order = of.max_order if bits is None else bits
        grid = grid_over(points, (of.base,) * dim, order, box, stretch)

    def index(cells: Any, out: Any) -> Any:
        return device.encode(of, cells, order) if out is None else of.encode_to(cells, order, out)

    return numbers_in_grid(points, index, grid, clip), (of.base ** (dim * order) - 1).bit_length()


def _order(
    points: Any, curve: Any, bits: int | None, box: Any, clip: bool, stretch: bool, options: dict[str, Any]
) -> Any:
    """Return the order of points along a curve, or by an order of points."""
    if isinstance(curve, str) and curve in point_orders():
        flags = {"clip": checks.flag("clip", clip), "stretch": checks.flag("stretch", stretch)}
        given = {"bits": bits, "box": box} | flags
        given = {name: value for name, value in given.items() if value is not None and value is not False}
        return point_order(curve, **given, **options)(_points_of(points))
    if options:
        name = curve.name if isinstance(curve, AnyCurve) else curve
        raise ValueError(
            f"curve {checks.shown(name)} does not take {sorted(options)}; allowed: bits, box, clip, stretch; "
            f"further options are those of {', '.join(point_orders())}"
        )
    return stable_order(*_keys(points, curve, bits, box, clip, stretch))


def stable_order(numbers: Any, bits: int) -> Any:
    """Return the stable order of numbers.

    Args:
        numbers: (n,) uint64 of numpy or cupy.
        bits: of the largest possible number.

    Returns:
        (n,) int64 rows in the order of their numbers, in the memory of the numbers.
    """
    return device.argsort(numbers, bits) if device.holds(numbers) else argsort_of_keys(numbers, bits)


def _points_of(points: Any) -> Any:
    """Check the shape and dtype of points; return an array of numpy, or of cupy."""
    if device.holds(points):
        found = device.array(points)
        checks.fits("points", found, "fiu", REALS, ("n", "dim"))
        return found
    if hasattr(points, "__dlpack__") and not hasattr(points, "__array__"):
        points = np.from_dlpack(points)
    found = checks.array("points", points, "fiu", REALS, ("n", "dim"), whole=True)
    if found.dtype.itemsize > 8:
        raise checks.refuse_value("dtype of points", found.dtype.name, REALS)
    return found


def _fewest_levels(points: Any, of: AnyCurve) -> int:
    """Return the fewest levels of a curve for a grid with the largest coordinate."""
    largest = int(points.max()) if points.size else 0
    order = next(levels for levels in count() if of.base**levels > largest)
    if order > of.max_order:
        remedy = "so that a key fits 64 bits; give a box, for wider cells"
        raise checks.refuse_value("largest coordinate", largest, f"up to {of.base**of.max_order - 1}", remedy)
    return order


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
        corners = _corners(box, dim)
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


def _corners(box: Any, dim: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
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
