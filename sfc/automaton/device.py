"""Encoding and decoding of arrays on a CUDA device, with the tables that the host uses.

cupy is imported at the first call. `curve.cuh` has the device functions, also for kernels of other packages.
"""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve
from sfc.automaton.tables import cells_of_a_state
from sfc.points import along, floored

THREADS = 256
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


def encode(curve: AnyCurve, cells: Any, order: int) -> Any:
    """Compute the index of each cell along a curve, on the device.

    Args:
        curve: the curve.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < base**order.
        order: recursion depth.

    Returns:
        (n,) cupy uint64.

    Raises:
        TypeError: no curve, cells that are no array of cupy, or an order that is no integer.
        ValueError: as `Curve.encode`; the check synchronises with the device.
    """
    curve = _with_tables(curve)
    side = curve.side(order)
    require_cells(cells, (side,) * curve.dim)
    import cupy

    index = cupy.empty(len(cells), np.uint64)
    bad = _launch("encode", curve, cells, order, side, (curve.rank, curve.next), index)
    if bad < len(cells):
        raise ValueError(
            f"cell {cells[bad].tolist()} in row {bad} is outside the grid of order {order}; "
            f"allowed: 0 <= cell < {side}; raise the order or check the cells"
        )
    return index


def decode(curve: AnyCurve, index: Any, order: int) -> Any:
    """Compute the cell at each index along a curve, on the device; the inverse of `encode`.

    Args:
        curve: the curve.
        index: (n,) cupy integers of any dtype, 0 <= index < base**(dim * order).
        order: recursion depth.

    Returns:
        (n, dim) cupy int64.

    Raises:
        TypeError: no curve, indices that are no array of cupy, or an order that is no integer.
        ValueError: as `Curve.decode`; the check synchronises with the device.
    """
    curve = _with_tables(curve)
    length = curve.side(order) ** curve.dim
    _require_on_device("index", index)
    checks.fits("index", index, "iu", checks.INTEGERS, ("n",), along(length))
    import cupy

    cells = cupy.empty((len(index), curve.dim), np.int64)
    bad = _launch("decode", curve, index, order, length - 1, (curve.cell, curve.succ), cells)
    if bad < len(index):
        wrong = int(index[bad])
        where = "negative" if wrong < 0 else f"past the end of the curve of order {order}"
        raise ValueError(f"index {wrong} in row {bad} is {where}; allowed: 0 <= index < {length}")
    return cells


def source(dim: int, base: int, dtype: np.dtype) -> str:
    """Return the CUDA source of both kernels, for one dim and base of curves and one integer dtype of arrays.

    Raises:
        TypeError: a dim or base that is no integer, or an object that is no dtype.
        ValueError: a dim or base that no curve has, or a dtype that is no integer.
    """
    cells_of_a_state("source", dim, base)
    folder, kind = Path(__file__).parent, np.dtype(dtype).str[1:]
    integer = _C_INTEGERS[checks.word("dtype", kind, _C_INTEGERS)]
    head = f"#define DIM {dim}\n#define BASE {base}\n#define CELLS {base**dim}\ntypedef {integer} integer;\n"
    return head + "".join(
        f'#line 1 "sfc/automaton/{name}"\n{(folder / name).read_text()}'
        for name in ("curve.cuh", "device.cu")
    )


def require_cells(cells: Any, shape: tuple[int, ...]) -> None:
    """Check the class, dtype and shape of cells on a device; their values are not read.

    Args:
        cells: array to check.
        shape: of the grid or box.

    Raises:
        TypeError: no array of cupy.
        ValueError: another dtype or shape.
    """
    _require_on_device("cells", cells)
    checks.fits("cells", cells, "iu", checks.INTEGERS, ("n", len(shape)), floored(shape))


def _with_tables(curve: Any) -> Curve:
    remedy = "a curve without tables encodes and decodes on the host only"
    return checks.instance("curve", curve, Curve, "an sfc.Curve", remedy)


def _require_on_device(name: str, values: Any) -> None:
    if not hasattr(values, "__cuda_array_interface__"):
        remedy = f"bring it to the device with cupy.asarray({name})"
        raise checks.refuse_class(name, values, "an array of cupy", remedy)


def _launch(
    kernel: str,
    curve: Curve,
    given: Any,
    order: int,
    bound: int,
    tables: tuple[np.ndarray, np.ndarray],
    out: Any,
) -> int:
    """Run a kernel; return the first row out of range, or the number of rows."""
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
def _module(dim: int, base: int, dtype: str) -> Any:
    import cupy

    return cupy.RawModule(code=source(dim, base, np.dtype(dtype)), options=("--std=c++17",), backend="nvrtc")


@lru_cache(maxsize=64)
def _on_device(table: bytes, shape: tuple[int, int], device: int) -> Any:
    import cupy

    return cupy.asarray(np.frombuffer(table, np.uint16).reshape(shape))
