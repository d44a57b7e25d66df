"""Content of a user's file, in an order that may be changed, and the checks that all readers share."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.core.settings import UsageError

KINDS = ("particles", "points", "mesh", "matrix", "trace")
FARTHEST = 1e100  # coordinates; squares of sums of two are far from the limits of float64
ALONE = 1e6  # extent over that of the inner 96 % from which points are taken for damaged
ROUNDED = 1e-5  # of a length: outside by less is the rounding of a file's decimals or of float32


class FileError(UsageError):
    """Error of a file that cannot be read or written; names the file, what was found, and what to give."""


@dataclass(frozen=True, eq=False)
class Data:
    """Content of a file, in an order that may be changed.

    Attributes:
        path: of the file.
        kind: "particles", "points", "mesh", "matrix" or "trace".
        n: number of items: particles, points, nodes, rows, or the entries that a trace may name.
        points: (n, 2 or 3) float64, in the unit of the file; None for a matrix or a trace.
        lengths: (dim,) of the box, same unit; None if the file has none.
        origin: (dim,) lower corner of the box; None without a box.
        periodic: one flag an axis; None without a box.
        velocities: (n, dim), unit length over time unit of the file; None if the file has none.
        diameters: (n,), above 0; None if the file has none.
        earlier: (n, dim) positions of the frame before, same ids and order; None if there is none.
        steps: steps between the two frames; None without `earlier`.
        cells: connectivity, int64 in 0 .. n - 1: "edges" (m, 2), "triangle" (m, 3), "tetra" (m, 4), ...
        matrix: `scipy.sparse.csr_array` of n rows; None for other kinds.
        trace: (m,) int64 indices that a program reads, in time; None for other kinds.
        columns: name -> (n, ...) of all other columns or arrays, as in the file: missing values stay missing.
        said: sentences on what was converted or assumed.
        frame: number of the frame that was read, from 0.
        choice: the names of columns with which the file was read; empty for those found by name.
    """

    path: Path
    kind: str
    n: int
    points: np.ndarray | None = None
    lengths: np.ndarray | None = None
    origin: np.ndarray | None = None
    periodic: tuple[bool, ...] | None = None
    velocities: np.ndarray | None = None
    diameters: np.ndarray | None = None
    earlier: np.ndarray | None = None
    steps: int | None = None
    cells: dict[str, np.ndarray] = field(default_factory=dict)
    matrix: Any | None = None
    trace: np.ndarray | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    frame: int = 0
    choice: tuple[str, ...] = ()


def refused(path: Path, found: str, allowed: str, remedy: str = "") -> FileError:
    """Return the error for what a file holds: `path: found; allowed: ...; remedy`."""
    return FileError(f"{path}: {found}; allowed: {allowed}" + (f"; {remedy}" if remedy else ""))


def checked(data: Data) -> Data:
    """Check the content of a file: shapes, finite numbers, positions in the box, cells that name items.

    Args:
        data: as read.

    Returns:
        The same; positions that rounding puts outside a periodic box are on its other side.

    Raises:
        FileError: no items, a number that is not finite or too large, a position outside the box, a diameter
            that is not positive, a cell or a trace that names an absent item, a single point so far away that
            all others are at one place.
    """
    path, n = data.path, data.n
    if n < 1:
        raise refused(path, "no items", "at least one", "give a file with points, rows or indices")
    _check_box(data)
    said = list(data.said)
    arrays = {
        name: _vectors(path, name, getattr(data, name), n) for name in ("points", "velocities", "earlier")
    }
    points, earlier = arrays["points"], arrays["earlier"]
    if points is not None:
        if data.lengths is None:
            _check_alone(path, points)
        for name, pos in (("points", points), ("earlier", earlier)):
            if pos is not None and data.lengths is not None:
                arrays[name] = _in_box(data, name, pos, said)
    diameters = data.diameters
    if diameters is not None:
        diameters = _finite(path, "diameters", np.asarray(diameters, np.float64).reshape(n))
        if (wrong := ~(diameters > 0)).any():
            i = int(wrong.argmax())
            raise refused(path, f"diameter[{i}] = {diameters[i]:g}", "above 0", "correct that particle")
    for name, cells in data.cells.items():
        _check_named(path, f"cells of {name!r}", cells, n)
    if data.trace is not None:
        _check_named(path, "a trace", data.trace, n)
    changed = arrays | {"diameters": diameters, "said": tuple(dict.fromkeys(said))}
    return Data(**(vars(data) | changed))


def check_order(order: Sequence[int] | np.ndarray, n: int) -> np.ndarray:
    """Check a permutation of n items; return it as (n,) int64.

    Raises:
        FileError: no permutation of 0 .. n - 1.
    """
    found = np.asarray(order)
    right = found.shape == (n,) and found.dtype.kind in "iu"
    if not right or not np.array_equal(np.sort(found), np.arange(n)):
        raise FileError(
            f"order = an array of {found.dtype}, shape {found.shape}; allowed: a permutation of 0 .. {n - 1}"
        )
    return found.astype(np.int64)


def ranks(order: np.ndarray) -> np.ndarray:
    """Return the new place of each item, (n,) int64, if item order[i] goes to place i."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def dimensions_of(points: np.ndarray, said: list[str]) -> int:
    """Return the dimensions of points in a format without a sign for two: 2 if all z are 0, and say so."""
    if points.shape[1] == 3 and points[:, 2].any():
        return 3
    if points.shape[1] == 3:
        said.append("two dimensions: z = 0 everywhere")
    return 2


def _vectors(path: Path, name: str, values: np.ndarray | None, n: int) -> np.ndarray | None:
    """Check (n, 2 or 3) vectors; return them as float64, without a copy if they are.

    Raises:
        FileError: another shape, or a number that is not finite or is too large.
    """
    if values is None:
        return None
    if values.ndim != 2 or values.shape[0] != n or values.shape[1] not in (2, 3):
        raise refused(path, f"{name} of shape {values.shape}", f"({n}, 2) or ({n}, 3)")
    if values.dtype.kind not in "fiu":
        raise refused(path, f"{name} of {values.dtype}", "real numbers")
    return _finite(path, name, values.astype(np.float64, copy=False))


def _finite(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Return finite numbers up to `FARTHEST`.

    Raises:
        FileError: another one; names the first.
    """
    low, high = float(values.min()), float(values.max())  # NaN if any is
    if -FARTHEST <= low <= high <= FARTHEST:
        return values
    place = np.unravel_index(int((~(np.abs(values) <= FARTHEST)).argmax()), values.shape)
    where = ", ".join(map(str, place))
    raise refused(
        path,
        f"{name}[{where}] = {values[place]:g}",
        f"finite numbers, -{FARTHEST:g} to {FARTHEST:g}",
        "correct it, or leave that item out",
    )


def _check_box(data: Data) -> None:
    """Check lengths and corner of the box.

    Raises:
        FileError: a length that is not positive, or a number that is not finite.
    """
    if data.lengths is None:
        return
    lengths, origin = np.asarray(data.lengths), np.asarray(data.origin)
    sound = np.isfinite(lengths).all() and np.isfinite(origin).all() and (lengths > 0).all()
    if not sound or lengths.max() > FARTHEST or np.abs(origin).max() > FARTHEST:
        raise refused(
            data.path,
            f"a box of lengths {lengths.tolist()} from {origin.tolist()}",
            "positive finite lengths from a finite corner",
        )
    if data.points is not None and lengths.shape != (data.points.shape[1],):
        raise refused(data.path, f"a box of {len(lengths)} axes", f"{data.points.shape[1]}, as the points")


def _in_box(data: Data, name: str, pos: np.ndarray, said: list[str]) -> np.ndarray:
    """Return positions in [origin, origin + length) on periodic axes, and up to the length on others.

    Args:
        data: with the box.
        name: of the positions.
        pos: (n, dim).
        said: sentences, to which one is added if positions were moved.

    Raises:
        FileError: a position outside by more than rounding.
    """
    lengths, origin = np.asarray(data.lengths, np.float64), np.asarray(data.origin, np.float64)
    off, periodic = pos - origin, np.array(data.periodic)
    slack = ROUNDED * lengths
    out = ((off < -slack) | (off > lengths + slack)).any(axis=1)
    if out.any():
        i = int(out.argmax())
        raise refused(
            data.path,
            f"{name}[{i}] = {pos[i].tolist()} is outside the box of lengths {lengths.tolist()} from "
            f"{origin.tolist()}; so are {int(out.sum()):,} of {len(pos):,}",
            "positions in the box",
            "wrap them, or correct the box",
        )
    wrong = (off < 0) | (off > lengths) | ((off == lengths) & periodic)
    rows = wrong.any(axis=1)
    if not rows.any():
        return pos
    near = np.where(periodic, np.mod(off, lengths), np.clip(off, 0, lengths))
    near = np.where(periodic & (near >= lengths), 0, near)
    most = np.nextafter(origin + lengths, np.where(periodic, -math.inf, math.inf))
    most = np.where(periodic, most, origin + lengths)
    moved = np.clip(np.where(wrong, near + origin, pos), origin, most)
    said.append(
        f"{int(rows.sum()):,} of {len(pos):,} positions at a side of the box, outside by rounding, were put "
        "into it"
    )
    return moved


def _check_alone(path: Path, points: np.ndarray) -> None:
    """Refuse points of which a few are so far from all others that these would share one cell.

    Raises:
        FileError: such points.
    """
    if len(points) < 50:
        return
    low, least, most, high = np.percentile(points, (0, 2, 98, 100), axis=0, method="nearest")
    inner, extent = float((most - least).max()), float((high - low).max())
    if inner > 0 and extent > ALONE * inner:
        axis = int((high - low).argmax())
        values = points[:, axis]
        i = int(np.abs(values - np.median(values)).argmax())
        raise refused(
            path,
            f"points[{i}] = {points[i].tolist()} is far from all others: the extent is {extent:g}, that of "
            f"the inner 96 % {inner:g}",
            f"an extent up to {ALONE:g} times that of the inner 96 %",
            "correct that point or leave it out",
        )


def _check_named(path: Path, name: str, indices: np.ndarray, n: int) -> None:
    """Check that integers name items.

    Raises:
        FileError: no integers, or one outside 0 .. n - 1.
    """
    if indices.dtype.kind not in "iu":
        raise refused(path, f"{name} of {indices.dtype}", "integers")
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= n):
        bad = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
        raise refused(path, f"{name} that name item {bad}", f"0 to {n - 1}", "correct the file")


def require_file(path: Path) -> int:
    """Return the bytes of a file that can be read.

    Raises:
        FileError: no file, a folder, an empty file, or one that cannot be read.
    """
    try:
        if path.is_dir():
            raise refused(path, "a folder", "a file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise FileError(f"{path} cannot be read: {reason}; give a file that can") from error
    if not size:
        raise refused(path, "an empty file", "a file with points, rows or indices")
    return size


def no_columns(path: Path, columns: Sequence[str]) -> None:
    """Raise an error for names of columns that a format does not have.

    Raises:
        FileError: there are names.
    """
    if columns:
        raise refused(path, f"columns = {list(columns)}", f"none for {path.suffix}", "leave them out")


def no_frames(path: Path, frame: int) -> None:
    """Raise an error for a frame of a format that has one alone.

    Raises:
        FileError: another frame than 0 or -1.
    """
    if frame not in (0, -1):
        raise refused(path, f"frame = {frame}", f"0 or -1, the only one of a {path.suffix}")


def frame_of(path: Path, frame: int, count: int) -> int:
    """Return the number of a frame from 0, of one that may be counted backwards.

    Raises:
        FileError: a frame that a file of so many does not have.
    """
    if not -count <= frame < count:
        raise refused(path, f"frame = {frame}", f"{-count} to {count - 1}")
    return frame % count


def said_of(columns: Mapping[str, str]) -> str:
    """Return the sentence on the columns that were taken: axis -> name in the file."""
    return "positions are the columns " + ", ".join(map(repr, columns.values()))
