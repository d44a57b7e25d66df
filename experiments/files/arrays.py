"""Files of numpy: `.npy` with points or a trace, `.npz` with arrays by name."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.files.columns import AXES, from_columns, plain, positions_of, shown
from experiments.files.data import Data, check_order, checked, no_frames, ranks, refused
from experiments.files.matrices import is_sparse, sparse_data, write_sparse
from experiments.files.opening import library, write_whole
from md.io import npy_file
from sfc import checks

MOST_BYTES = 2**36  # of all members of an archive, unpacked
POINTS = ("points", "pos", "position", "positions", "xyz", "coords", "coordinates", "vertices")
VECTORS = {"velocities": ("velocities", "velocity", "vel", "v")}
SIZES = {"diameters": 1.0, "diameter": 1.0, "radius": 2.0, "radii": 2.0}
CELLS = {
    "edges": 2,
    "line": 2,
    "triangle": 3,
    "triangles": 3,
    "faces": 3,
    "quad": 4,
    "tetra": 4,
    "hexahedron": 8,
}
BOX = {"lengths": ("lengths", "box"), "origin": ("origin",), "periodic": ("periodic",)}
TRACE = ("trace", "indices", "accesses")
FORMS = "(n, 2) or (n, 3) numbers, columns as the text of their place; or a trace, (m,) integers"


def read_npy(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read points or a trace from a `.npy` file.

    An array of (n, 2) or (n, 3) numbers is points, one of (m,) integers is a trace. For more columns name
    those of x, y, z by their places: "0", "1", "2". A structured array is a table.

    Raises:
        FileError: as `read` of this package.
    """
    no_frames(path, frame)
    with library(path, "an array of numpy"):
        array = npy_file.read_npy(path)
        if array.dtype.names:
            return from_columns(path, {name: array[name] for name in array.dtype.names}, columns)
        if array.dtype.kind not in "fiu":
            raise refused(path, f"an array of {array.dtype}", "real numbers")
        if array.ndim == 1 and array.dtype.kind in "iu" and not columns:
            return _trace(path, array)
        if array.ndim != 2 or not (columns or array.shape[1] in (2, 3)):
            raise refused(path, f"an array of shape {array.shape} of {array.dtype}", FORMS)
        names = [str(k) for k in range(array.shape[1])]
        if not columns and array.dtype == np.float64:
            return checked(Data(path, "points", len(array), np.asarray(array)))
        table = {name: array[:, k] for k, name in enumerate(names)}
        said = [] if array.dtype.kind == "f" else [f"coordinates are integers ({array.dtype})"]
        return from_columns(path, table, columns or names, said, choice=tuple(columns))


def write_npy(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write the rows of a `.npy` file in another order; the indices of a trace become the new places."""
    with library(data.path, "an array of numpy"):
        array = npy_file.read_npy(data.path)
        if data.trace is not None:
            check_order(order, data.n)
            ordered = _renumbered(data.path, array, ranks(order))
        else:
            ordered = array[check_order(order, len(array))]

    def write(partial: Path) -> None:
        np.save(partial, ordered, allow_pickle=False)

    return write_whole(target, write)


def read_npz(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read a `.npz` file: a sparse matrix of scipy, or arrays by name.

    Points are (n, 2 or 3) under one of `POINTS`, or columns x, y, z. Others are found by name: velocities,
    diameters or radii, box, origin, periodic, trace, and the cells of `CELLS`.

    Raises:
        FileError: as `read` of this package.
    """
    no_frames(path, frame)
    with library(path, "an archive of numpy"):
        arrays = _members(path)
        if is_sparse(arrays):
            if columns:
                raise refused(path, f"columns = {list(columns)}", "none for a matrix")
            return sparse_data(path, arrays)
        for name, array in arrays.items():
            if array.dtype.kind == "f" and array.dtype.itemsize > 8:
                raise refused(path, f"{name!r} of {array.dtype}", "up to float64")
        return _arrays(path, arrays, columns)


def write_npz(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write all arrays of a `.npz` file in another order of its items.

    Arrays of n rows are sorted; cells and traces are renumbered. Cells are sorted too, with the arrays of as
    many rows as there are cells.

    Raises:
        FileError: an array that may be of the items or of cells, by its rows.
    """
    with library(data.path, "an archive of numpy"):
        arrays = _members(data.path)
        order = check_order(order, data.n)
        if data.matrix is not None:
            return write_sparse(data, arrays, order, target)
        rank, stored = ranks(order), {}
        moved = {name: _renumbered(data.path, arrays[name], rank) for name in data.cells}
        sorts = {name: np.argsort(cells.min(axis=1), kind="stable") for name, cells in moved.items()}
        for name, array in arrays.items():
            if name in moved:
                stored[name] = moved[name][sorts[name]]
            elif data.trace is not None and name in TRACE and array.ndim == 1:
                stored[name] = _renumbered(data.path, array, rank)
            elif not array.ndim or _is_box(name, array, data):
                stored[name] = array
            elif owners := _owners(name, array, data):
                stored[name] = array[sorts[owners[0]]]
            elif len(array) == data.n:
                stored[name] = array[order]
            else:
                stored[name] = array
        with zipfile.ZipFile(data.path) as archive:
            packed = any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist())

    def write(partial: Path) -> None:
        save: Any = np.savez_compressed if packed else np.savez
        save(partial, **stored)

    return write_whole(target, write)


def _owners(name: str, array: np.ndarray, data: Data) -> list[str]:
    """Return the cells that an array has a row for, by its length; none for an array of the items.

    Raises:
        FileError: several cells of as many, or as many as there are items.
    """
    if len(array) == data.n and name not in data.columns:
        return []
    found = [cells for cells, block in data.cells.items() if len(block) == len(array)]
    if len(found) + (len(array) == data.n) > 1:
        others = [*found, *(["items"] if len(array) == data.n else [])]
        raise refused(
            data.path, f"array {name!r} of {len(array)} rows, as many as {' and '.join(others)}",
            "rows of one of them", "leave it out",
        )  # fmt: skip
    return found


def _is_box(name: str, array: np.ndarray, data: Data) -> bool:
    """Return whether an array is one of the box, not of the items."""
    return data.lengths is not None and any(name in words for words in BOX.values()) and array.ndim == 1


def _renumbered(path: Path, array: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the new places of items, in the dtype of the old ones.

    Raises:
        FileError: the file has changed since it was read.
    """
    if array.size and (int(array.min()) < 0 or int(array.max()) >= len(rank)):
        raise refused(
            path, f"item {array.max()}", f"0 to {len(rank) - 1}, as when it was read", "read it again"
        )
    return rank[array].astype(array.dtype)


def _table(
    path: Path, arrays: dict[str, np.ndarray], used: set[str], trace: np.ndarray
) -> tuple[int | None, dict[str, np.ndarray]]:
    """Return the rows of the table that a trace reads, and the arrays of as many; None without a table.

    Arrays as long as the trace are the table only if there is no other.

    Raises:
        FileError: arrays of several lengths that the trace may read.
    """
    least = max(int(trace.max(initial=-1)) + 1, 1)
    rows = {len(one) for name, one in arrays.items() if name not in used and one.ndim}
    found = sorted(count for count in rows if count >= least)
    if len(found) > 1:
        found = [count for count in found if count != len(trace)]
    if len(found) > 1:
        raise refused(
            path, f"arrays of {' and '.join(map(str, found))} rows beside a trace", "one length",
            "leave out those that it does not read",
        )  # fmt: skip
    n = found[0] if found else None
    return n, _others(arrays, used, n)


def _trace(
    path: Path, array: np.ndarray, n: int | None = None, columns: dict[str, np.ndarray] | None = None
) -> Data:
    """Make the data of a trace; the items are as many as it names, if nothing else says so.

    Raises:
        FileError: an empty trace, or an index below 0 or that int64 does not hold.
    """
    if not array.size:
        raise refused(path, "an empty trace", "at least one index")
    if int(array.min()) < 0 or int(array.max()) >= 2**62:
        bad = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise refused(path, f"a trace that names item {bad}", "0 to 2**62")
    trace = array.astype(np.int64, copy=False)
    said = (
        (f"integers are the places that a program reads, of {int(trace.max()) + 1:,} items",) if not n else ()
    )
    fields: dict[str, Any] = {
        "kind": "trace",
        "n": n or int(trace.max()) + 1,
        "trace": trace,
        "said": said,
        "columns": columns or {},
    }
    return checked(Data(path=path, **fields))


def _members(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an archive, after a check of their sizes.

    Raises:
        FileError: sizes above `MOST_BYTES` or the free memory, or a member that is damaged or no array.
    """
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        allowed = min(MOST_BYTES, checks.host_memory())
        if total > allowed:
            raise refused(
                path,
                f"{checks.bytes_shown(total)} unpacked",
                f"up to {checks.bytes_shown(allowed)}",
                "save the arrays of interest alone, or as .npy",
            )
        for member in members:
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                npy_file.header(f"{path}: {name!r}", file, member.file_size)
            if name in found:
                raise refused(path, f"array {name!r} twice", "distinct names")
            with archive.open(member) as file:
                found[name] = np.lib.format.read_array(file, allow_pickle=False)
    if not found:
        raise refused(path, "no arrays", "points, x and y, a sparse matrix, or a trace")
    return found


def _arrays(path: Path, arrays: dict[str, np.ndarray], columns: Sequence[str]) -> Data:
    """Make the data of arrays by name.

    Raises:
        FileError: neither points nor a trace, or an array of another shape than its name says.
    """
    short = {plain(name): name for name in reversed(list(arrays))}
    used: set[str] = set()

    def take(words: Sequence[str]) -> np.ndarray | None:
        name = next((short[word] for word in words if word in short), None)
        used.update([] if name is None else [name])
        return None if name is None else arrays[name]

    said: tuple[str, ...] = ()
    points = None if columns else take(POINTS)
    trace = take(TRACE)
    flat = [name for name, array in arrays.items() if array.ndim == 1]
    if points is None and (columns or {"x", "y"} <= short.keys()):
        axes, note = positions_of(path, flat, columns)
        used |= set(axes.values())
        if len({len(arrays[name]) for name in axes.values()}) > 1:
            raise refused(path, f"columns {shown(list(axes.values()))} of different lengths", "one length")
        points = np.column_stack([arrays[name] for name in axes.values()])
        said = (note,) if note else ()
    if points is None:
        if trace is None:
            have = f"arrays {shown(list(arrays))}"
            raise refused(path, have, f"one of {', '.join(POINTS)}, or {', '.join(AXES)}, or trace")
        return _trace(path, _integers(path, "trace", trace, 1), *_table(path, arrays, used, trace))
    n = len(points) if points.ndim == 2 else 0
    size = next((word for word in SIZES if word in short), None)
    diameters = None if size is None else SIZES[size] * np.asarray(take((size,)), np.float64)
    if diameters is not None and diameters.shape != (n,):
        raise refused(path, f"{size!r} of shape {diameters.shape}", f"({n},)")
    cells = {
        name: _integers(path, name, arrays[name], 2)
        for name in arrays
        if plain(name) in CELLS and arrays[name].ndim == 2
    }
    for name, cell in cells.items():
        if cell.shape[1] != CELLS[plain(name)]:
            raise refused(path, f"{name!r} of shape {cell.shape}", f"(m, {CELLS[plain(name)]})")
    box, assumed = _box(path, take, points)
    velocities = take(VECTORS["velocities"])
    particles = diameters is not None or velocities is not None or box
    fields: dict[str, Any] = {
        "kind": "mesh" if cells else "particles" if particles else "points",
        "velocities": velocities,
        "diameters": diameters,
        "cells": cells,
        "trace": None if trace is None else _integers(path, "trace", trace, 1),
        "columns": _others(arrays, used | cells.keys(), n),
        "said": (*said, *assumed),
        "choice": tuple(columns),
    }
    return checked(Data(path=path, n=n, points=points, **(fields | box)))


def _box(path: Path, take: Any, points: np.ndarray) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of the box, and sentences on what was assumed; empty without one.

    Raises:
        FileError: another shape than (dim,), or no numbers.
    """
    dim = points.shape[-1]
    lengths, origin, periodic = (take(words) for words in BOX.values())
    if lengths is None:
        return {}, []
    said = []
    if origin is None:
        origin = np.zeros(dim)
        said.append("the lower corner of the box is 0: the file has no origin")
    if periodic is None:
        periodic = np.ones(dim, bool)
        said.append("all axes are periodic: the file does not say")
    for name, array in (("box", lengths), ("origin", origin), ("periodic", periodic)):
        if array.shape != (dim,) or array.dtype.kind not in "fiub":
            raise refused(path, f"{name} of shape {array.shape}, {array.dtype}", f"({dim},) numbers")
    fields = {"lengths": lengths.astype(np.float64), "origin": origin.astype(np.float64)}
    return fields | {"periodic": tuple(map(bool, periodic))}, said


def _integers(path: Path, name: str, array: np.ndarray, ndim: int) -> np.ndarray:
    """Return indices as int64.

    Raises:
        FileError: no integers, another number of axes, or one that int64 does not hold.
    """
    if array.dtype.kind not in "iu" or array.ndim != ndim:
        raise refused(path, f"{name!r} of {array.dtype}, shape {array.shape}", f"integers, {ndim} axes")
    if array.size and int(array.max()) >= 2**62:
        raise refused(path, f"{name!r} that names item {array.max()}", "0 to 2**62")
    return array.astype(np.int64)


def _others(arrays: dict[str, np.ndarray], used: set[str], n: int | None) -> dict[str, np.ndarray]:
    """Return the arrays of n rows that have no other meaning; none if n is unknown."""
    return {
        name: array
        for name, array in arrays.items()
        if name not in used and n is not None and array.ndim and len(array) == n
    }
