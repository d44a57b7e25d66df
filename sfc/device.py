"""Curves and orderings on a CUDA device: encode, decode and rank arrays of cupy.

cupy is imported at the first call.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.device import decode, encode, require_cells, source
from sfc.orderings.ordering import Ordering

__all__ = ["decode", "encode", "rank", "source"]

TABLE_CELLS = 2**31  # of a box, in a table of ranks
CUDA = 2  # a device type of DLPack
_rank_tables: WeakKeyDictionary[Ordering, dict[int, Any]] = WeakKeyDictionary()


def rank(ordering: Ordering, cells: Any) -> Any:
    """Compute the rank of each cell of a box, on the device.

    A curve with tables ranks by them, any other ordering by a table of all cells. That table (8 bytes per
    cell of the box, at most `TABLE_CELLS`) is made at the first call and stored on the device for the
    lifetime of the ordering.

    Args:
        ordering: of the box.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < shape.

    Returns:
        (n,) cupy uint64, as `Ordering.rank`.

    Raises:
        TypeError: no ordering, or cells that are no array of cupy.
        ValueError: as `Ordering.rank`, a check that synchronises with the device; a box too large for a
            table.
    """
    checks.instance("ordering", ordering, Ordering, "an sfc.Ordering", "make one with sfc.ordering")
    require_cells(cells, ordering.shape)
    import cupy

    outside = cupy.zeros(len(cells), bool)
    for axis, side in enumerate(ordering.shape):
        outside |= (cells[:, axis] < 0) | (cells[:, axis] >= side)
    if outside.any():
        bad = int(outside.argmax())
        raise ValueError(
            f"cell {cells[bad].tolist()} in row {bad} is outside the box; allowed: 0 <= cell < "
            f"{ordering.shape}"
        )
    if ordering.curve is not None and isinstance(ordering.curve[0], Curve):
        return encode(ordering.curve[0], cells, ordering.curve[1])
    if ordering.size > TABLE_CELLS:
        raise ValueError(
            f"a table of {ordering!r} takes {8 * ordering.size:,} bytes on the device; allowed: up to "
            f"{TABLE_CELLS} cells; take a curve, or rank on the host"
        )
    tables = _rank_tables.setdefault(ordering, {})
    device = cupy.cuda.runtime.getDevice()
    if device not in tables:
        tables[device] = cupy.asarray(ordering.ranks())
    number = cupy.zeros(len(cells), np.int64)
    for axis in reversed(range(ordering.dim)):
        number = number * ordering.shape[axis] + cells[:, axis].astype(np.int64)
    return tables[device][number]


def holds(values: Any) -> bool:
    """Return whether an array is in the memory of a CUDA device."""
    if hasattr(values, "__cuda_array_interface__"):
        return True
    return hasattr(values, "__dlpack_device__") and int(values.__dlpack_device__()[0]) == CUDA


def array(values: Any) -> Any:
    """Return an array of cupy for one that `holds` is true of, without a copy."""
    import cupy

    is_known = hasattr(values, "__cuda_array_interface__")
    return cupy.asarray(values) if is_known else cupy.from_dlpack(values)


def to_host(values: Any) -> Any:
    """Copy an array of a device to the host; return anything else as it is."""
    return array(values).get() if holds(values) else values


def free_memory() -> int:
    """Return the free bytes of the device."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0])


def argsort(keys: Any) -> Any:
    """Return the stable order of keys, (n,) int64."""
    import cupy

    return cupy.argsort(keys, kind="stable")


def is_finite(points: Any) -> Any:
    """Return which numbers are finite."""
    import cupy

    return cupy.isfinite(points)


def extent(points: Any) -> tuple[np.ndarray, np.ndarray]:
    """Compute the corners of the bounding box, (dim,) float64 each; not finite if a point is not."""
    return points.min(axis=0).get().astype(np.float64), points.max(axis=0).get().astype(np.float64)


def cells_in_grid(
    points: Any, low: np.ndarray, high: np.ndarray, width: np.ndarray, side: int, clip: bool
) -> tuple[Any, int, int]:
    """Compute the cells of points, as `cells_in_grid` of `sfc.point_keys` does on the host.

    Args:
        points: (n, dim) array of cupy.
        low: of `sfc.point_keys.Grid`, like all that follow.
        high: upper corner.
        width: distance that all cells along an axis take.
        side: number of cells along an axis.
        clip: whether points may be outside the box.

    Returns:
        (n, dim) uint64 cells; the first row that is not a number, or outside without `clip`, or n; and the
        number of rows outside.
    """
    import cupy

    wide, n = points.astype(np.float64), len(points)
    lowest, highest, widths = (cupy.asarray(numbers) for numbers in (low, high, width))
    inside = ((wide >= lowest) & (wide <= highest)).all(axis=1)
    outside = n - int(inside.sum())
    if outside:
        wrong = cupy.isnan(wide).any(axis=1) if clip else ~inside
        if wrong.any():
            return None, int(wrong.argmax()), outside
        wide = cupy.minimum(cupy.maximum(wide, lowest), highest)
    cells = ((wide - lowest) / widths * float(side)).astype(np.uint64)
    return cupy.minimum(cells, np.uint64(side - 1)), n, outside
