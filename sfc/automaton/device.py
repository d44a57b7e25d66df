"""Encoding and decoding of arrays on a CUDA device.

Many points in 2D to 4D take the kernels of shared_tables.cu, if the tables of the curve fit shared memory.
All others take those of device.cu, which walk the tables of the host level by level. cupy is imported at the
first call. `curve.cuh` has the device functions, also for kernels of other packages.
"""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve, one_of
from sfc.automaton.curve import Curve
from sfc.automaton.shared_tables import SharedTables, shared_tables
from sfc.automaton.tables import cells_of_a_state
from sfc.points import along, flooring_hint, refuse_cell, refuse_index, require_room

THREADS, THREADS_OF_TABLE = 256, 1024  # of a block; of one that fills a table in shared memory first
FEWEST = 2**18  # points for a table in shared memory
CHUNK_BYTES = 8  # of each coordinate of a chunk in shared_tables.cu
_C_INTEGERS = {
    f"{kind}{size}": f"{sign} {name}"
    for kind, sign in (("i", "signed"), ("u", "unsigned"))
    for size, name in ((1, "char"), (2, "short"), (4, "int"), (8, "long long"))
}


def encode(
    curve: AnyCurve, cells: Any, order: int | None = None, out: Any = None, *, bits: int | None = None
) -> Any:
    """Compute the index of each cell along a curve, on the device.

    Args:
        curve: the curve.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < base**order. It is fastest for contiguous
            cells of the fewest bytes.
        order: recursion depth.
        out: (n,) cupy integers of any dtype that holds the largest index, filled; None for a new array.
            After an error its contents mean nothing.
        bits: another name of `order`.

    Returns:
        (n,) cupy uint64; or `out`.

    Raises:
        TypeError: no curve, cells that are no array of cupy, or an order that is no integer, or none.
        ValueError: as `Curve.encode`; the check synchronises with the device.
    """
    curve, order = _with_tables(curve), one_of(order, bits)
    side = curve.side(order)
    require_cells(cells, (side,) * curve.dim)
    index = _output(out, (len(cells),), side**curve.dim - 1, np.uint64)
    bad = _run("encode", curve, cells, int(order), index)
    if bad < len(cells):
        raise refuse_cell(cells, bad, f"the grid of order {order}", side, "raise the order")
    return index


def decode(
    curve: AnyCurve, index: Any, order: int | None = None, out: Any = None, *, bits: int | None = None
) -> Any:
    """Compute the cell at each index along a curve, on the device; the inverse of `encode`.

    Args:
        curve: the curve.
        index: (n,) cupy integers of any dtype, 0 <= index < base**(dim * order).
        order: recursion depth.
        out: (n, dim) cupy integers of any dtype that holds the largest coordinate, filled; None for a new
            array. It is fastest if contiguous, of the fewest bytes. After an error its contents mean nothing.
        bits: another name of `order`.

    Returns:
        (n, dim) cupy int64; or `out`.

    Raises:
        TypeError: no curve, indices that are no array of cupy, or an order that is no integer, or none.
        ValueError: as `Curve.decode`; the check synchronises with the device.
    """
    curve, order = _with_tables(curve), one_of(order, bits)
    side = curve.side(order)
    length = side**curve.dim
    _require_on_device("index", index)
    checks.fits("index", index, "iu", checks.INTEGERS, ("n",), along(length))
    cells = _output(out, (len(index), curve.dim), side - 1, np.int64)
    bad = _run("decode", curve, index, int(order), cells)
    if bad < len(index):
        raise refuse_index(index, bad, order, length)
    return cells


def source(dim: int, base: int, dtype: np.dtype) -> str:
    """Return the CUDA source of both kernels, for one dim and base of curves and one integer dtype of arrays.

    Raises:
        TypeError: a dim or base that is no integer, or an object that is no dtype.
        ValueError: a dim or base that no curve has, or a dtype that is no integer.
    """
    cells_of_a_state("source", dim, base)
    integer = _C_INTEGERS[checks.word("dtype", np.dtype(dtype).str[1:], _C_INTEGERS)]
    head = f"#define DIM {dim}\n#define BASE {base}\n#define CELLS {base**dim}\ntypedef {integer} integer;\n"
    return head + _text_of("curve.cuh", "device.cu")


def _text_of(*names: str) -> str:
    """Return the text of files of this folder, with their names for the compiler's messages."""
    texts = [(Path(__file__).parent / name).read_text() for name in names]
    return "".join(f'#line 1 "sfc/automaton/{name}"\n{text}' for name, text in zip(names, texts, strict=True))


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
    checks.fits("cells", cells, "iu", checks.INTEGERS, ("n", len(shape)), flooring_hint(shape))


def _with_tables(curve: Any) -> Curve:
    remedy = "a curve without tables encodes and decodes on the host only"
    return checks.instance("curve", curve, Curve, "an sfc.Curve", remedy)


def _require_on_device(name: str, values: Any) -> None:
    if type(values).__module__.partition(".")[0] != "cupy":
        remedy = f"bring it to the device with cupy.asarray({name})"
        raise checks.refuse_class(name, values, "an array of cupy", remedy)


def _output(out: Any, shape: tuple[int, ...], most: int, default: type) -> Any:
    """Check the array that a caller gives for the result, or make one."""
    import cupy

    if out is None:
        return cupy.empty(shape, default)
    _require_on_device("out", out)
    checks.fits("out", out, "iu", checks.INTEGERS, shape)
    require_room(out.dtype, most)
    return out


def _run(kernel: str, curve: Curve, given: Any, order: int, out: Any) -> int:
    """Encode or decode; return the first row out of range, or the number of rows.

    Args:
        kernel: "encode" or "decode".
        curve: the curve.
        given: cells or indices.
        order: recursion depth.
        out: indices or cells, filled. One that is not contiguous, or may overlap with `given`, is filled by a
            copy.
    """
    import cupy

    if len(given) == 0:
        return 0
    if not out.flags.c_contiguous or _may_overlap(given, out):
        own = cupy.empty(out.shape, out.dtype)
        bad = _run(kernel, curve, given, order, own)
        if bad == len(given):
            out[...] = own
        return bad
    given = cupy.ascontiguousarray(given)
    tables = shared_tables(curve, order, _room(curve.dim)) if len(given) >= FEWEST else None
    index = out if kernel == "encode" else given
    if tables is not None and index.itemsize >= 4:
        return _run_in_shared_memory(kernel, curve, tables, given, order, out)
    kind = np.uint64 if kernel == "encode" else np.int64
    own = out if out.dtype == kind else cupy.empty(out.shape, kind)
    bad = _run_level_by_level(kernel, curve, given, order, own)
    if own is not out:
        out[...] = own
    return bad


def _may_overlap(one: Any, other: Any) -> bool:
    """Return whether two arrays may have bytes in common; `other` is contiguous."""
    import cupy

    if not one.flags.c_contiguous:
        return cupy.may_share_memory(one, other)
    begin, of_other = one.data.ptr, other.data.ptr
    return begin < of_other + other.nbytes and of_other < begin + one.nbytes


def _no_bad_row() -> Any:
    """Allocate the number of the first row out of range, for kernels: the largest one."""
    import cupy

    bad = cupy.empty(1, np.uint64)
    bad.data.memset_async(0xFF, bad.nbytes)
    return bad


def _run_level_by_level(kernel: str, curve: Curve, given: Any, order: int, out: Any) -> int:
    import cupy

    n, bad, device = len(given), _no_bad_row(), cupy.cuda.runtime.getDevice()
    tables = (curve.rank, curve.next) if kernel == "encode" else (curve.cell, curve.succ)
    uploaded = [_on_device(table.tobytes(), table.shape, device) for table in tables]
    bound, start = _bound(kernel, curve, order), np.uint32(curve.start)
    function = _module(curve.dim, curve.base, given.dtype.str).get_function(kernel)
    arguments = np.int64(n), given, np.int32(order), bound, *uploaded, start, out, bad
    function((-(-n // THREADS),), (THREADS,), arguments)
    return min(bad.item(), n)


def _bound(kernel: str, curve: Curve, order: int) -> np.uint64:
    """Return the first coordinate outside the grid, to encode; the last index of the curve, to decode."""
    side = curve.base**order
    return np.uint64(side if kernel == "encode" else side**curve.dim - 1)


def _run_in_shared_memory(
    kernel: str, curve: Curve, tables: SharedTables, given: Any, order: int, out: Any
) -> int:
    import cupy

    n, device = len(given), cupy.cuda.runtime.getDevice()
    cells, index = (given, out) if kernel == "encode" else (out, given)
    if any(array.data.ptr % 16 for array in (given, out)):  # a part of another array
        aligned = cupy.empty(out.shape, out.dtype) if out.data.ptr % 16 else out
        given = given.copy() if given.data.ptr % 16 else given
        bad = _run_in_shared_memory(kernel, curve, tables, given, order, aligned)
        if aligned is not out:
            out[...] = aligned
        return bad
    bad = _no_bad_row()
    size = tables.size + (_chunks_in_shared_memory(curve.dim) if kernel == "decode" else 0)
    variant = tables.header, tables.constants, cells.dtype.str, index.dtype.str
    function, blocks = _shared_kernel(kernel, variant, size, device)
    chunks = -(-n * cells.itemsize // CHUNK_BYTES)
    table = _shared_table(curve, order, tables.size, kernel, device)
    bound = _bound(kernel, curve, order)
    arguments = (np.int64(n), given, bound, table, np.uint32(tables.start), out, bad)
    grid = min(blocks, -(-chunks // THREADS_OF_TABLE))  # a second block a multiprocessor gains nothing
    function((grid,), (THREADS_OF_TABLE,), arguments, shared_mem=size)
    return min(bad.item(), n)


def _room(dim: int) -> int:
    """Return the bytes of shared memory that a table may take on the present device."""
    import cupy

    return cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - _chunks_in_shared_memory(dim)


def _chunks_in_shared_memory(dim: int) -> int:
    """Return the bytes through which the kernel `decode` passes the chunks of a block."""
    return CHUNK_BYTES * dim * THREADS_OF_TABLE if dim > 2 else 0


@lru_cache(maxsize=64)
def _shared_table(curve: Curve, order: int, size: int, kernel: str, device: int) -> Any:
    """Upload a table; devices with less shared memory have one of another `size`."""
    import cupy

    tables = shared_tables(curve, order, _room(curve.dim))
    assert tables is not None  # its caller has checked
    table = cupy.asarray(tables.encode if kernel == "encode" else tables.decode)
    cupy.cuda.get_current_stream().synchronize()  # other streams may read it next
    return table


@cache
def _shared_kernel(kernel: str, variant: tuple, size: int, device: int) -> tuple[Any, int]:
    """Compile a kernel of shared_tables.cu; return it and the multiprocessors of the device."""
    import cupy

    module = cupy.RawModule(code=shared_source(*variant), options=("--std=c++17",), backend="nvrtc")
    function = module.get_function(kernel)
    function.max_dynamic_shared_size_bytes = size
    return function, cupy.cuda.Device(device).attributes["MultiProcessorCount"]


def shared_source(header: str, constants: tuple[tuple[str, int], ...], cell: str, index: str) -> str:
    """Return the CUDA source of shared_tables.cu.

    Args:
        header: of `SharedTables`, like `constants`.
        constants: to define.
        cell: integer dtype of cells.
        index: integer dtype of indices, of 4 or 8 bytes.
    """
    head = "typedef unsigned long long u64;\n"
    for name, value in (*constants, ("THREADS", THREADS_OF_TABLE)):
        head += f"#define {name} {value}\n"
    for name, kind in (("cell_t", cell), ("index_t", index)):
        head += f"typedef {_C_INTEGERS[np.dtype(kind).str[1:]]} {name};\n"
    return head + _text_of(header, "shared_tables.cu")


@cache
def _module(dim: int, base: int, dtype: str) -> Any:
    import cupy

    return cupy.RawModule(code=source(dim, base, np.dtype(dtype)), options=("--std=c++17",), backend="nvrtc")


@lru_cache(maxsize=64)
def _on_device(table: bytes, shape: tuple[int, int], device: int) -> Any:
    import cupy

    return cupy.asarray(np.frombuffer(table, np.uint16).reshape(shape))
