"""Curves and orderings of arrays that live on a CUDA device, from the same tables as on the host.

cupy is imported when first called. `curve.cuh` holds the two walks for kernels of other packages too.
"""

from functools import cache, lru_cache
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from sfc.curve import Curve
from sfc.ordering import Ordering
from sfc.points import require_integers

THREADS = 256
TABLE_CELLS = 2**31  # of a box, in a table of ranks
_rank_tables: WeakKeyDictionary[Ordering, dict] = WeakKeyDictionary()
_C_INTEGERS = {
    "i1": "signed char",
    "u1": "unsigned char",
    "i2": "short",
    "u2": "unsigned short",
    "i4": "int",
    "u4": "unsigned int",
    "i8": "long long",
    "u8": "unsigned long long",
}


def encode(curve: Curve, cells, order: int):
    """Index of each cell along the curve, on the device.

    Args:
        curve: the curve.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < base**order.
        order: recursion depth.

    Returns:
        (n,) cupy uint64.

    Raises:
        ValueError: as `Curve.encode`; finding it out waits for the device.
    """
    side = curve.side(order)
    if cells.ndim != 2 or cells.shape[1] != curve.dim:
        raise ValueError(f"cells of shape {cells.shape}; {curve.name} in {curve.dim}D takes (n, {curve.dim})")
    require_integers("cells", cells)
    import cupy

    index = cupy.empty(len(cells), np.uint64)
    bad = _launch("encode", curve, cells, order, side, (curve.rank, curve.next), index)
    if bad < len(cells):
        raise ValueError(
            f"cell {cells[bad].tolist()} in row {bad} is outside the grid of order {order}; "
            f"allowed: 0 <= cell < {side}; raise the order or check the cells"
        )
    return index


def decode(curve: Curve, index, order: int):
    """Cell at each index along the curve, on the device; the inverse of `encode`.

    Args:
        curve: the curve.
        index: (n,) cupy integers of any dtype, 0 <= index < base**(dim * order).
        order: recursion depth.

    Returns:
        (n, dim) cupy int64.

    Raises:
        ValueError: as `Curve.decode`; finding it out waits for the device.
    """
    length = curve.side(order) ** curve.dim
    if index.ndim != 1:
        raise ValueError(f"index of shape {index.shape}; allowed: (n,)")
    require_integers("index", index)
    import cupy

    cells = cupy.empty((len(index), curve.dim), np.int64)
    bad = _launch("decode", curve, index, order, length - 1, (curve.cell, curve.succ), cells)
    if bad < len(index):
        wrong = int(index[bad])
        where = "negative" if wrong < 0 else f"past the end of the curve of order {order}"
        raise ValueError(f"index {wrong} in row {bad} is {where}; allowed: 0 <= index < {length}")
    return cells


def rank(ordering: Ordering, cells):
    """Rank of each cell of a box, on the device.

    A curve ranks by its tables, any other ordering by a table of all cells. The table (8 bytes a cell of the
    box, at most `TABLE_CELLS`) is made at the first call and stays on the device as long as the ordering
    lives.

    Args:
        ordering: of the box.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < shape.

    Returns:
        (n,) cupy uint64, as `Ordering.rank`.

    Raises:
        ValueError: as `Ordering.rank`, which waits for the device; a box too large for a table.
    """
    if cells.ndim != 2 or cells.shape[1] != ordering.dim:
        raise ValueError(
            f"cells of shape {cells.shape}; an ordering of {ordering.shape} takes (n, {ordering.dim})"
        )
    require_integers("cells", cells)
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
    if ordering.curve is not None:
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


def source(dim: int, base: int, dtype: np.dtype) -> str:
    """The CUDA source of both kernels for curves of a dim and base and arrays of an integer dtype."""
    folder = Path(__file__).parent
    integer = _C_INTEGERS[np.dtype(dtype).str[1:]]
    head = f"#define DIM {dim}\n#define BASE {base}\n#define CELLS {base**dim}\ntypedef {integer} integer;\n"
    return head + "".join(
        f'#line 1 "sfc/{name}"\n{(folder / name).read_text()}' for name in ("curve.cuh", "device.cu")
    )


def _launch(kernel: str, curve: Curve, given, order: int, bound: int, tables, out) -> int:
    """Run a kernel; return the first row it refused, or the number of rows."""
    import cupy

    n = len(given)
    if n == 0:
        return 0
    bad = cupy.full(1, n, np.uint64)
    arguments = (
        np.int64(n),
        cupy.ascontiguousarray(given),
        np.int32(order),
        np.uint64(bound),
        *(_on_device(table.tobytes(), table.shape, cupy.cuda.runtime.getDevice()) for table in tables),
        np.uint32(curve.start),
        out,
        bad,
    )
    module = _module(curve.dim, curve.base, given.dtype.str)
    module.get_function(kernel)(((n + THREADS - 1) // THREADS,), (THREADS,), arguments)
    return int(bad[0])


@cache
def _module(dim: int, base: int, dtype: str):
    import cupy

    return cupy.RawModule(code=source(dim, base, np.dtype(dtype)), options=("--std=c++17",), backend="nvrtc")


@lru_cache(maxsize=64)
def _on_device(table: bytes, shape: tuple[int, int], device: int):
    import cupy

    return cupy.asarray(np.frombuffer(table, np.uint16).reshape(shape))
