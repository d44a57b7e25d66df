"""Keys of points by an ordering of the cells of a box, such as rows: the rank of the cell that holds each."""

import inspect
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from sfc import checks, device
from sfc.integer_grid import EXACT_SIDE, IntegerGrid
from sfc.orderings.factory import covering
from sfc.orderings.ordering import MOST_AXES, Ordering
from sfc.point_keys.grid import AnyGrid, cells_inside, grid_over, levels_of_grid, numbers_in_grid
from sfc.registry import ORDERINGS

A_CELL = 2  # points of a cell on average, at most, where the caller gives no cells
RANK_BITS = 63
MOST_CELLS = 2**62  # of a grid that is made here


def keys_by_ordering(
    points: Any,
    order: str | Ordering,
    bits: int | None,
    box: Any,
    clip: bool,
    stretch: bool,
    options: Mapping[str, Any],
) -> tuple[Any, int]:
    """Compute the key of each point by an ordering of cells, and the bits of the largest key.

    Args:
        points: (n, dim) floats or integers of numpy or cupy.
        order: name of an ordering that is no curve, or an `Ordering` of a box: its shape gives the cells.
        bits: 2**bits cells along each axis, as for `sfc.keys`, like all that follow.
        box: (low, high), or None.
        clip: whether points may be outside.
        stretch: whether the cells of `bits` along each axis fill the box.
        options: `cells`, and those of the ordering.

    Returns:
        (n,) uint64 in the memory of the points, and a number of bits.

    Raises:
        TypeError, ValueError: as `sfc.keys`.
    """
    n, dim = points.shape
    checks.integer("axes of the points", dim, 1, MOST_AXES)
    options = dict(options)
    cells = options.pop("cells", None)
    _require_one_grid(order, dim, bits, stretch, cells, options)
    free = device.free_memory if device.holds(points) else None
    checks.require_allocatable(f"keys of {n} points", 8 * n, "give fewer at a time", free)
    are_cells = box is None and points.dtype.kind in "iu"
    grid: AnyGrid = None
    if isinstance(order, Ordering):
        cells = order.shape
    if are_cells or bits is not None or cells is not None:
        base, levels = levels_of_grid(points, bits, cells)
        sides = tuple(one**levels for one in base)
        if not are_cells:
            grid = grid_over(points, base, levels, box, stretch or bits is None)
    else:
        grid = grid_over(points, (1,) * dim, 1, box, True)
        sides = near_cubes([float(b - a) for a, b in zip(grid.low, grid.high, strict=True)], n)
        if isinstance(grid, IntegerGrid):
            grid = grid._replace(base=sides)
        else:
            grid = grid._replace(sides=sides)
    if math.prod(sides) >= 2**RANK_BITS:
        allowed = f"less than 2**{RANK_BITS}, the ranks of an ordering"
        raise checks.refuse_value(f"cells of the grid {sides}", math.prod(sides), allowed, "take wider cells")
    ranked = order if isinstance(order, Ordering) else covering(order, sides, **options)
    if are_cells:
        points = cells_inside(points, sides, clip)

    def number(cells: Any, out: Any) -> Any:
        if out is None:
            return device.rank(ranked, cells)
        out[:] = ranked.rank(cells)
        return out

    found = numbers_in_grid(points, number, grid, clip)
    return found, int(found.max()).bit_length() if n else 0


def near_cubes(extent: Sequence[float], n: int) -> tuple[int, ...]:
    """Return the cells along each axis of a grid of nearly cubic cells with up to `A_CELL` points on average.

    The cells along the widest axis are as few as possible, at least two. The other axes have as many as are
    about as wide, at least one each. In many dims, where two cells along each axis are more than
    `MOST_CELLS`, all points are in one cell.

    Args:
        extent: widths of the box along each axis, at least 0.
        n: number of points.
    """
    widest = max(extent)
    if n < 2 or widest == 0:
        return (1,) * len(extent)
    share = [one / widest for one in extent]

    def sides(along: int) -> tuple[int, ...]:
        return tuple(max(1, round(along * one)) for one in share)

    enough = max(2, -(-n // A_CELL))
    found = sides(bisect_left(range(n + 1), enough, key=lambda along: math.prod(sides(along))))
    return found if math.prod(found) <= MOST_CELLS else (1,) * len(extent)


def _require_one_grid(
    order: str | Ordering, dim: int, bits: Any, stretch: bool, cells: Any, options: Mapping[str, Any]
) -> None:
    """Check that the cells of a grid are given once at most, and that each option has a meaning.

    Raises:
        ValueError: cells given twice, `stretch` without `bits`, or an ordering of another dim.
    """
    if isinstance(order, Ordering):
        if order.dim != dim:
            raise checks.refuse_value("dim of the ordering", order.dim, f"{dim}, the axes of the points")
        given = {"bits": bits, "stretch": stretch or None, "cells": cells, **options}
        if wrong := sorted(name for name, value in given.items() if value is not None):
            raise ValueError(
                f"{order!r} does not take {wrong}; allowed: box, clip; its shape gives the cells"
            )
        if max(order.shape) > EXACT_SIDE:
            raise checks.refuse_value("shape of the ordering", order.shape, f"sides up to {EXACT_SIDE}")
        return
    taken = list(inspect.signature(ORDERINGS[order].build).parameters)[1:]
    if wrong := sorted(set(options) - set(taken)):
        allowed = ", ".join(["bits", "box", "clip", "stretch", "cells", *taken])
        raise ValueError(f"ordering {order!r} does not take {wrong}; allowed: {allowed}")
    if bits is not None and cells is not None:
        raise ValueError(
            f"bits = {checks.shown(bits)} beside cells = {checks.shown(cells)}; allowed: one of them, or "
            f"none for cells of about {A_CELL} points"
        )
    if stretch and bits is None:
        raise ValueError(
            f"stretch = True for {order!r} without bits; allowed: beside bits; other cells fill the box"
        )
