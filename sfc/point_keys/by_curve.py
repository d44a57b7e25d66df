"""Keys of points by a curve: the index of the cell that holds each."""

from itertools import count
from typing import Any

import numpy as np

from sfc import checks, device
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.automaton.curve import Curve
from sfc.point_keys.grid import cells_inside, grid_over, numbers_in_grid


def keys_by_curve(
    points: Any, of: AnyCurve, bits: int | None, box: Any, clip: bool, stretch: bool, is_last_free: bool
) -> tuple[Any, int]:
    """Compute the key of each point by a curve, and the bits of the longest possible key.

    Args:
        points: (n, dim) floats or integers of numpy or cupy.
        of: the curve.
        bits: levels, as for `sfc.keys`, like all that follow.
        box: (low, high), or None.
        clip: whether points may be outside.
        stretch: whether the cells along each axis fill the box.
        is_last_free: whether no point may have the key 2**64 - 1.

    Returns:
        (n,) uint64 in the memory of the points, and a number of bits.

    Raises:
        TypeError, ValueError: as `sfc.keys`.
    """
    n, dim = points.shape
    if of.dim != dim:
        raise checks.refuse_value(
            "dim of the curve", of.dim, f"{dim}, the axes of points of shape {(n, dim)}"
        )
    on_device = not isinstance(points, np.ndarray)
    if on_device and not isinstance(of, Curve):
        remedy = "copy the points to the host with .get(), or take a curve with tables: most up to 8D"
        raise checks.refuse_class("curve", of, "an sfc.Curve for points on a device", remedy)
    most = of.max_order
    if is_last_free and of.base ** (dim * most) == 2**KEY_BITS:
        most -= 1
    bits = None if bits is None else levels_of(of, bits, most)
    free = device.free_memory if on_device else None
    checks.require_allocatable(f"keys of {n} points", 8 * n, "give fewer at a time", free)
    if box is None and points.dtype.kind in "iu":
        order = _fewest_levels(points, of) if bits is None else bits
        points, grid = cells_inside(points, (of.base**order,) * dim, clip), None
    else:
        order = most if bits is None else bits
        grid = grid_over(points, (of.base,) * dim, order, box, stretch)

    def index(cells: Any, out: Any) -> Any:
        return device.encode(of, cells, order) if out is None else of.encode_to(cells, order, out)

    return numbers_in_grid(points, index, grid, clip), (of.base ** (dim * order) - 1).bit_length()


def levels_of(of: AnyCurve, bits: Any, most: int | None = None) -> int:
    """Check the bits of a coordinate, which are the levels of a curve; return them as a Python integer.

    Args:
        of: the curve.
        bits: an integer.
        most: allowed; None for the most of the curve.

    Raises:
        TypeError: no integer.
        ValueError: below 0, or more than allowed.
    """
    most = of.max_order if most is None else most
    remedy = f"so that a key fits {KEY_BITS} bits"
    return checks.integer(f"bits of {of.name} in {of.dim}D", bits, 0, most, remedy=remedy)


def _fewest_levels(points: Any, of: AnyCurve) -> int:
    """Return the fewest levels of a curve for a grid with the largest coordinate."""
    largest = int(points.max()) if points.size else 0
    order = next(levels for levels in count() if of.base**levels > largest)
    if order > of.max_order:
        remedy = "so that a key fits 64 bits; give a box, for wider cells"
        raise checks.refuse_value("largest coordinate", largest, f"up to {of.base**of.max_order - 1}", remedy)
    return order
