"""Keys of points along a curve or in an ordering of cells, and orders of points by them or by name.

The key of a point is the index along a curve, or the rank in an ordering, of the cell that holds it: of a
grid over a box, or, for integer points without a box, of the cell with its coordinates.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.orderings.ordering import Ordering
from sfc.point_keys.by_curve import keys_by_curve
from sfc.point_keys.by_ordering import keys_by_ordering
from sfc.point_keys.geometries import Geometries, geometries_of
from sfc.point_keys.grid import stable_order
from sfc.point_keys.rows import points_of, rows_in_order
from sfc.registry import ORDERINGS, point_order, point_orders
from sfc.registry import curve as named_curve

LAST = np.uint64(2**64 - 1)  # the key of a geometry that is missing or empty
Order = str | AnyCurve | Ordering


def keys(
    points: Any,
    curve: Order = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    *,
    stretch: bool = False,
    at: str | None = None,
    **options: Any,
) -> Any:
    """Compute the key of each point: the number along a curve, or in an ordering, of the cell that holds it.

    With a curve, floats, and integers with a `box`, lie in a grid of `base**bits` cells along each axis. The
    cells are cubes: those along the widest axis of the box fill it. With an ordering of cells that is no
    curve, such as `row`, `tiled` or `gilbert`, the cells fill the box along each axis. Without `cells` and
    `bits` they are nearly cubes, as few as have up to two points each on average over the box, and the key is
    the rank of the cell. Integers without a box are cells themselves, as for `Curve.encode`.

    The cell of a point is floor((point - low) / width * cells), the last one for the upper corner. It is
    exact for integers in a box with corners of integers up to 2**64 apart. For others each of the operations
    is rounded to float64, and integers beyond 2**53 are refused.

    Args:
        points: (n, dim) array of numpy or cupy, of floats or integers, with any strides; or any array that
            numpy or DLPack converts. The keys of points on a CUDA device are made there. Or n geometries: a
            GeoSeries, a GeoDataFrame, an array of them, or a list or series of objects that have
            `__geo_interface__`; the points are then (x, y), without heights.
        curve: a name of `sfc.curves(dim)` or `sfc.orderings(dim)`, a curve, or an `Ordering`; its shape
            gives the cells.
        bits: levels of the curve: bits of a coordinate, or ternary digits for a base of 3. None for the most
            with keys of up to 64 bits (63 bits, for geometries); for integers without a box, for the fewest
            that hold the largest coordinate. With an ordering, 2**bits cubes along each axis.
        box: (low, high), each a number or one for each axis, in units of the points. None for the bounding
            box of the points.
        clip: give a point outside the box, or outside the grid, the key of the nearest cell in it, and warn
            how many there are.
        stretch: let the cells of `bits` along each axis fill the box, so that they are no cubes; integers
            without a box are cells in any case.
        at: of geometries, "centroid" (as is None) or "bounds", for the centre of the bounds.
        options: of an ordering by name. `cells`, the cells along each axis, one number for all or one for
            each, in place of `bits`; of integers without a box, the shape of their grid. Those of
            `sfc.ordering`: `tile` of `tiled`, `seed` of `random`.

    Returns:
        (n,) uint64, of numpy, or of cupy for points on a CUDA device. A geometry that is missing or empty has
        the key 2**64 - 1, which no other has.

    Raises:
        TypeError: an argument of another class; points on a device and a curve without tables.
        ValueError: points of another shape or dtype; an unknown curve or ordering, or too many bits for it;
            an option without a meaning for it; a point that is not a number, infinite (without both `box` and
            `clip`), or outside the box or grid (without `clip`), with its row in the message; an integer, of
            a point or a corner, that a float64 does not hold, where floats are computed with.

    Example:
        >>> import sfc
        >>> sfc.keys([[0.1, 0.2], [0.9, 0.1], [0.2, 0.9]], bits=2, box=(0, 1)).tolist()
        [0, 15, 5]
        >>> sfc.keys([[0.1, 0.2], [0.9, 0.1], [0.2, 0.9]], "row", cells=(4, 3), box=(0, 1)).tolist()
        [0, 3, 8]
    """
    how = _How(curve, bits, box, clip, stretch, options)
    geometries = geometries_of(points, at, box)
    if geometries is None:
        return _keys(points_of(points), how)[0]
    found = _keys(geometries.points, how, True)[0]
    found[geometries.is_missing] = LAST
    return found


def argsort(
    points: Any,
    curve: Order = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    *,
    stretch: bool = False,
    at: str | None = None,
    **options: Any,
) -> Any:
    """Return the order of points along a curve or by cells: a stable sort of their keys.

    The order is the same on any machine. Orders of points, of `sfc.point_orders()`, have no keys: they rank
    points, not cells. `strided` lists the first point of every cell by rows, axis 0 fastest, then the second
    of every cell, and so on; `tiled_strided` does so in each tile of successive cells. `str`,
    Sort-Tile-Recursive, sorts by axis 0 and cuts into slabs, sorts each slab by axis 1 and cuts it into
    strips, and so on, so that each run of `capacity` points is a tile of neighbours; it has no cells and no
    box. The modules of `sfc/point_orders` have the definitions and the sources.

    Args:
        points: as for `keys`, like all that follow.
        curve: a curve or an ordering, by name or not; or the name of an order of points.
        bits: levels of the curve, or None.
        box: (low, high), or None.
        clip: whether points may be outside the box.
        stretch: whether the cells of `bits` along each axis fill the box.
        at: point of a geometry.
        options: of an ordering, as for `keys`; or of an order of points. `strided` and `tiled_strided` take
            `cells` in place of `bits`, and need one of them. `tiled_strided` also takes `tile`, the cells of
            a tile, 32 without it. `str` takes `capacity` alone, the points of a tile, 32 without it.

    Returns:
        (n,) int64 rows of the points, in the order of their keys; points of the same cell keep their order,
        and geometries that are missing or empty are last, in theirs. Of numpy, or of cupy for points on a
        CUDA device.

    Raises:
        TypeError, ValueError: as `keys`, and as the function of the order of points.
        ValueError: an option that the curve, the ordering or the order of points does not take.

    Example:
        >>> import sfc
        >>> sfc.argsort([[0.9, 0.1], [0.1, 0.2], [0.2, 0.9]], bits=2, box=(0, 1)).tolist()
        [1, 2, 0]
    """
    return _order(points, at, _How(curve, bits, box, clip, stretch, options))


def sort(
    points: Any,
    *arrays: Any,
    curve: Order = "hilbert",
    bits: int | None = None,
    box: Sequence[Any] | None = None,
    clip: bool = False,
    stretch: bool = False,
    at: str | None = None,
    **options: Any,
) -> Any:
    """Sort points along a curve, by cells, or by an order of points, and other arrays with them.

    Args:
        points: as for `keys`.
        arrays: any number of arrays, tensors, pandas objects or lists of as many rows, sorted as the points
            are; of sparse matrices those with rows that can be selected, such as CSR.
        curve: as for `argsort`, like all that follow.
        bits: levels of the curve, or None.
        box: (low, high), or None.
        clip: whether points may be outside the box.
        stretch: whether the cells of `bits` along each axis fill the box.
        at: point of a geometry.
        options: of an ordering or an order of points.

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
    order = _order(points, at, _How(curve, bits, box, clip, stretch, options))
    rows = [rows_in_order(f"arrays[{k}]", values, order) for k, values in enumerate(arrays)]
    ordered = rows_in_order("points", points, order)
    return (ordered, *rows) if arrays else ordered


class _How(NamedTuple):
    """Arguments of `argsort` beside the points."""

    curve: Order
    bits: int | None
    box: Any
    clip: bool
    stretch: bool
    options: Mapping[str, Any]


def _keys(points: Any, how: _How, is_last_free: bool = False) -> tuple[Any, int]:
    """Compute keys of checked points, and the bits of the longest possible one."""
    checks.flag("clip", how.clip), checks.flag("stretch", how.stretch)
    by, box, options = how.curve, how.box, how.options
    if isinstance(by, Ordering) or (isinstance(by, str) and by in ORDERINGS):
        return keys_by_ordering(points, by, how.bits, box, how.clip, how.stretch, options)
    of = by if isinstance(by, AnyCurve) else named_curve(by, points.shape[1])
    if options:
        others = ", ".join([*sorted(ORDERINGS), *point_orders()])
        name = by.name if isinstance(by, AnyCurve) else by
        raise ValueError(
            f"curve {checks.shown(name)} does not take {sorted(options)}; allowed: bits, box, clip, stretch; "
            f"further options are those of {others}"
        )
    return keys_by_curve(points, of, how.bits, box, how.clip, how.stretch, is_last_free)


def _order(points: Any, at: str | None, how: _How) -> Any:
    """Return the order of points by a curve, an ordering or an order of points, missing geometries last."""
    geometries = geometries_of(points, at, how.box)
    ranks_points = isinstance(how.curve, str) and how.curve in point_orders()
    if ranks_points and geometries is not None:
        return _order_of_present(geometries, how)
    if ranks_points:
        return _by_point_order(points_of(points), how)
    if geometries is None:
        return stable_order(*_keys(points_of(points), how))
    found, bits = _keys(geometries.points, how, True)
    found[geometries.is_missing] = LAST
    return stable_order(found, 64 if geometries.is_missing.any() else bits)


def _by_point_order(points: Any, how: _How) -> Any:
    """Return the order of checked points by an order of points."""
    flags = {"clip": checks.flag("clip", how.clip), "stretch": checks.flag("stretch", how.stretch)}
    given = {"bits": how.bits, "box": how.box} | flags
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    return point_order(str(how.curve), **given, **how.options)(points)


def _order_of_present(geometries: Geometries, how: _How) -> np.ndarray:
    """Return the order of geometries by an order of points; those that are missing are last."""
    present, missing = np.flatnonzero(~geometries.is_missing), np.flatnonzero(geometries.is_missing)
    try:
        order = _by_point_order(geometries.points[present], how)
    except ValueError as error:
        if not len(missing):
            raise
        raise ValueError(
            f"{error}; rows are counted without the {len(missing)} missing geometries"
        ) from error
    return np.concatenate([present[order], missing])
