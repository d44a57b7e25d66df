"""Indices of cells along a curve and cells of indices, in one call, for arrays and for single numbers."""

from typing import Any

import numpy as np

from sfc import checks, device
from sfc.any_curve import KEY_BITS, AnyCurve, one_of
from sfc.integer_grid import cell_dtype
from sfc.point_keys.by_curve import levels_of
from sfc.point_keys.grid import grid_over
from sfc.registry import curve as named_curve

FLOATS = "give points of floats to sfc.keys"
SEPARATE = "all integers, or all arrays of one shape"


def encode(
    *cells: Any,
    bits: int | None = None,
    curve: str | AnyCurve = "hilbert",
    order: int | None = None,
) -> Any:
    """Compute the index of cells along a curve; the inverse of `decode`.

    Args:
        cells: one argument, an (n, dim) array of integers, or the (dim,) integers of a single cell; or the
            coordinates along each axis, one argument each: integers, or arrays of one shape. All are from 0
            to base**bits - 1. An (n, dim) array may be of cupy, if the curve has tables.
        bits: levels of the curve: bits of a coordinate, or ternary digits for a base of 3.
        curve: a name of `sfc.curves(dim)`, or a curve.
        order: another name of `bits`.

    Returns:
        (n,) uint64 for an (n, dim) array, of cupy for one of cupy; uint64 in the shape of the coordinates for
        separate arrays; a Python integer for a single cell.

    Raises:
        TypeError: an argument of another class; no bits.
        ValueError: bits beside another order, or too many for the curve; an unknown curve; arrays of another
            shape or dtype; a coordinate outside the grid. Points of floats have keys instead: `sfc.keys`.

    Example:
        >>> import sfc
        >>> sfc.encode([[0, 0], [3, 0]], bits=2).tolist(), sfc.encode(3, 0, bits=2)
        ([0, 15], 15)
    """
    if not cells:
        raise TypeError("no cells; allowed: an (n, dim) array, or the coordinates along each axis")
    if len(cells) > 1:
        return _encode_separate(cells, bits, curve, order)
    if device.holds(cells[0]):
        found = device.array(cells[0])
        checks.fits("cells", found, "iu", checks.INTEGERS, ("n", "dim"))
        of, levels = _curve_and_levels(curve, int(found.shape[1]), bits, order)
        return device.encode(of, found, levels)
    if _is_single(cells[0]):
        return _encode_separate(cells, bits, curve, order)
    is_short = isinstance(cells[0], (list, tuple, np.ndarray)) and 0 < len(cells[0]) <= KEY_BITS
    if is_short and not isinstance(cells[0], np.ma.MaskedArray) and all(map(_is_single, cells[0])):
        return _encode_separate(tuple(cells[0]), bits, curve, order)
    array = checks.array("cells", cells[0], "iu", checks.INTEGERS, ("n", "dim"), FLOATS)
    of, levels = _curve_and_levels(curve, array.shape[1], bits, order)
    return of.encode(array, levels)


def decode(
    keys: Any,
    bits: int | None = None,
    curve: str | AnyCurve = "hilbert",
    dim: int | None = None,
    *,
    order: int | None = None,
    box: Any = None,
    stretch: bool = False,
) -> Any:
    """Compute the cells of indices along a curve, or the centres of these cells in a box.

    With the `bits`, `box` and `stretch` of `sfc.keys`, the centres are those of the cells that hold the
    points.

    Args:
        keys: an integer, an array of numpy of any shape, or a flat list, of integers from 0 to
            base**(dim * bits) - 1; or an (n,) array of cupy, if the curve has tables and there is no box.
        bits: levels of the curve.
        curve: a name of `sfc.curves(dim)`, or a curve.
        dim: number of axes; needed for the name of a curve.
        order: another name of `bits`.
        box: (low, high), each a number or one for each axis, as for `sfc.keys`; None for cells. The cells are
            cubes, and those along the widest axis fill the box.
        stretch: let the cells along each axis fill the box.

    Returns:
        An array of one more axis than the keys have, of `dim` entries: int64 cells; with a box, float64
        centres of cells, in units of the box.

    Raises:
        TypeError: an argument of another class; a name without `dim`; no bits.
        ValueError: bits beside another order, or too many for the curve; an unknown curve, or one of another
            dim; a key past the end of the curve; `stretch` without a box.

    Example:
        >>> import sfc
        >>> sfc.decode(15, bits=2, dim=2).tolist(), sfc.decode([15], bits=2, dim=2, box=(0, 8)).tolist()
        ([3, 0], [[7.0, 1.0]])
    """
    if not isinstance(curve, AnyCurve) and dim is None:
        raise checks.refuse_class("dim", dim, "an integer of at least 1", "give the number of axes")
    if checks.flag("stretch", stretch) and box is None:
        raise checks.refuse_value("stretch", stretch, "False without a box")
    axes = curve.dim if isinstance(curve, AnyCurve) and dim is None else checks.integer("dim", dim)
    of, levels = _curve_and_levels(curve, axes, bits, order)
    if device.holds(keys):
        if box is not None:
            raise checks.refuse_class("keys", keys, "an array of numpy beside a box", "copy them with .get()")
        return device.decode(of, device.array(keys), levels)
    if isinstance(keys, np.ndarray):
        cells = of.decode(keys.reshape(-1), levels).reshape(*keys.shape, axes)
    elif _is_single(keys):
        cells = of.decode([keys], levels)[0]
    else:
        cells = of.decode(keys, levels)
    if box is None:
        return cells
    grid = grid_over(np.empty((0, axes)), (of.base,) * axes, levels, box, stretch)
    low, width = (np.array(one, np.float64) for one in (grid.low, grid.width))
    return low + (cells + 0.5) * (width / of.side(levels))


def _as_array(name: str, values: Any) -> np.ndarray:
    """Convert coordinates to an array of any dtype; refuse what makes none."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return checks.array(name, values, "iu", checks.INTEGERS, ("n",))


def _is_single(value: Any) -> bool:
    """Return whether a value is no array, sequence or other collection."""
    return not hasattr(value, "__iter__") or getattr(value, "shape", None) == ()


def _curve_and_levels(curve: Any, dim: int, bits: Any, order: Any) -> tuple[AnyCurve, int]:
    """Return the curve of a name, and its checked levels."""
    of = curve if isinstance(curve, AnyCurve) else named_curve(curve, dim)
    if of.dim != dim:
        raise checks.refuse_value("dim of the curve", of.dim, f"{dim}, the axes of the cells")
    return of, levels_of(of, one_of(order, bits))


def _encode_separate(coordinates: tuple[Any, ...], bits: Any, curve: Any, order: Any) -> Any:
    """Compute indices from the coordinates along each axis."""
    names = [f"cells[{axis}]" for axis in range(len(coordinates))]
    for name, one in zip(names, coordinates, strict=True):
        if device.holds(one):
            raise checks.refuse_class(
                name, one, "numpy's for separate axes", "stack them: cupy.stack(..., axis=1)"
            )
    arrays = [_as_array(name, one) for name, one in zip(names, coordinates, strict=True)]
    if len({one.shape for one in arrays}) > 1:
        shapes = [one.shape for one in arrays]
        remedy = "give bits by name: bits=10" if () in shapes else "broadcast them before"
        raise checks.refuse_value("shapes of the coordinates", shapes, SEPARATE, remedy)
    of, levels = _curve_and_levels(curve, len(arrays), bits, order)
    side, shape = of.side(levels), arrays[0].shape
    if shape == ():
        plain = [one.item() if isinstance(one, np.ndarray) else one for one in coordinates]
        remedy = "take more bits, or sfc.keys for points of floats"
        cell = [
            checks.integer(name, one, 0, side - 1, remedy=remedy)
            for name, one in zip(names, plain, strict=True)
        ]
        return int(of.encode(np.array([cell], cell_dtype(side)), levels)[0])
    stacked = np.empty((arrays[0].size, len(arrays)), cell_dtype(side))
    for axis, (name, one) in enumerate(zip(names, coordinates, strict=True)):
        found = checks.array(name, one, "iu", checks.INTEGERS, shape, low=0, high=side - 1)
        stacked[:, axis] = found.reshape(-1)
    return of.encode(stacked, levels).reshape(shape)
