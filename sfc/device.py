"""Curves and orderings on a CUDA device: encode, decode and rank arrays of cupy.

cupy is imported at the first call.
"""

from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.device import decode, encode, require_cells, source
from sfc.integer_grid import cell_dtype
from sfc.orderings.ordering import Ordering
from sfc.points import refuse_cell

__all__ = ["decode", "encode", "rank", "source"]

TABLE_CELLS = 2**31  # of a box, in a table of ranks
CUDA = 2  # a device type of DLPack
THREADS, MOST_BLOCKS = 256, 2**11  # of a block; for the bounding box
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
        raise refuse_cell(cells, int(outside.argmax()), "the box", ordering.shape, "take a larger box")
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
    """View an array that `holds` is true of as one of cupy, of the same shape and dtype, without a copy."""
    import cupy

    is_known = hasattr(values, "__cuda_array_interface__")
    return cupy.asarray(values) if is_known else cupy.from_dlpack(values)


def to_host(values: Any) -> Any:
    """Copy an array of a device to the host, of the same shape and dtype; return anything else as it is."""
    return array(values).get() if holds(values) else values


def free_memory() -> int:
    """Return the free bytes of the device."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0])


def argsort(keys: Any, bits: int) -> Any:
    """Return the stable order of keys, (n,) int64.

    Each key is packed with its row into 64 bits, because cupy sorts numbers by radix and orders not. A key
    that leaves no room for the row is sorted by parts, the lowest first.

    Args:
        keys: (n,) uint64 of cupy.
        bits: of the longest possible key.
    """
    import cupy

    row_bits = max(len(keys) - 1, 1).bit_length()
    pack = cupy.ElementwiseKernel(
        "uint64 key, uint64 shift, uint64 row_bits",
        "uint64 packed",
        "packed = key >> shift << row_bits | i",
        "sfc_pack",
    )
    order = None
    for shift in range(0, max(bits, 1), 64 - row_bits):
        packed = pack(keys if order is None else keys[order], shift, row_bits)
        packed.sort()
        rows = (packed & np.uint64((1 << row_bits) - 1)).view(np.int64)
        order = rows if order is None else order[rows]
    return order


def extent(points: Any) -> tuple[np.ndarray, np.ndarray]:
    """Compute the corners of the bounding box, (dim,) float64 each; not finite if a point is not.

    Args:
        points: (n, dim) array of cupy, n above 0.
    """
    import cupy

    points = _as_floats(points)
    n, dim = points.shape
    blocks = min(MOST_BLOCKS, -(-n // THREADS))
    corners = cupy.empty((2, blocks, dim))
    kernel = _kernel("extent", dim, points.dtype.str, np.dtype(np.uint64).str)
    kernel((blocks,), (THREADS,), (np.int64(n), points, corners[0], corners[1]))
    low, high = corners.get()
    return low.min(axis=0), high.max(axis=0)


def cells_in_grid(
    points: Any, low: np.ndarray, high: np.ndarray, width: np.ndarray, sides: tuple[int, ...], clip: bool
) -> tuple[Any, int, int]:
    """Compute the cells of points, as `cells_in_grid` of `sfc.point_keys.grid` does on the host.

    Args:
        points: (n, dim) array of cupy.
        low: of `sfc.point_keys.grid.Grid`, like all that follow.
        high: upper corner.
        width: distance that all cells along an axis take.
        sides: number of cells along each axis.
        clip: whether points may be outside the box.

    Returns:
        (n, dim) cells of the narrowest unsigned integers of 16 bits or more; the first row that is not a
        number, or outside without `clip`, or n; and the number of rows outside.
    """
    import cupy

    points = _as_floats(points)
    n, dim = points.shape
    kind = np.dtype(cell_dtype(max(sides)))
    cells, found = cupy.empty((n, dim), kind), cupy.array([n, 0], np.uint64)
    if n:
        grid = cupy.asarray(np.concatenate([low, high, width]))
        kernel = _kernel("cells_in_grid", dim, points.dtype.str, kind.str)
        along = cupy.asarray(np.array(sides, np.uint64))
        arguments = (np.int64(n), points, grid, along, np.int32(clip), cells, found)
        kernel((-(-n // THREADS),), (THREADS,), arguments)
    bad, outside = found.tolist()
    return cells, bad, outside


def _as_floats(points: Any) -> Any:
    """Convert points to contiguous rows of float32 or float64, without a copy if possible."""
    import cupy

    kind = points.dtype if points.dtype in (np.float32, np.float64) else np.float64
    return cupy.ascontiguousarray(points, kind)


@cache
def _kernel(name: str, dim: int, real: str, cell: str) -> Any:
    """Compile a kernel of point_cells.cu, for dtypes of points and cells."""
    import cupy

    types = {"<f4": "float", "<f8": "double", "<u2": "unsigned short", "<u4": "unsigned", "<u8": "u64"}
    head = f"typedef unsigned long long u64;\n#define DIM {dim}\n"
    head += f"typedef {types[real]} real;\ntypedef {types[cell]} cell_t;\n"
    code = head + (Path(__file__).parent / "point_cells.cu").read_text()
    return cupy.RawModule(code=code, options=("--std=c++17",), backend="nvrtc").get_function(name)
