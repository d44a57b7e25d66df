"""GSD files of any program, of the schema hoomd: frames as stored, and the same file in another order.

Chunks are read one by one, so that nothing is allocated that the file does not hold. As in gsd, a chunk that
a frame does not store is that of frame 0, if both have the same number of particles.

GSD: https://gsd.readthedocs.io
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gsd.fl
import numpy as np

MAGIC, PLACES = bytes.fromhex("df65" * 4), struct.Struct("<4Q")  # at the start of a GSD file of HEADER bytes
HEADER, ENTRIES = 256, {"index": 32, "namelist": 64}  # blocks of a GSD file, with the bytes of an entry
BROKEN = (  # exceptions of gsd and numpy for files with wrong bytes
    RuntimeError, KeyError, IndexError, AttributeError, TypeError, ValueError, MemoryError, OverflowError,
)  # fmt: skip
GROUPS = {"bonds": 2, "angles": 3, "dihedrals": 4, "impropers": 4, "constraints": 2, "pairs": 2}
DEFAULT_BOX = np.array([1, 1, 1, 0, 0, 0], np.float32)  # of the schema, which gsd does not store
OWN = "log/periodic"  # a chunk of the trajectories of this package; their default diameter is 1 d
OF_PARTICLES = ("particles/", "log/particles/")
WHOLE = "give a whole GSD file of the schema hoomd"


class TrajectoryError(ValueError):
    """Error of a file that is not a trajectory, or is damaged; the message names the frame."""


@dataclass(frozen=True, eq=False)
class StoredFrame:
    """A frame of a GSD file, in the unit of the file.

    Attributes:
        index: number of the frame, from 0.
        step: of the simulation.
        position: (n, dim) float64; dim is 2 if the file says so.
        velocity: (n, dim) float64; None if not stored.
        diameter: (n,) float64; None if not stored, and 1 in trajectories of this package.
        lengths: (dim,) float64 of the box, which is centred on the origin.
        periodic: one flag an axis, if the file logs them; else None, and all axes are periodic.
        groups: "bonds", "angles", ... -> (m, 2), (m, 3), ... int64, places of particles.
        others: (n, ...) arrays of the other chunks of particles, by the names of gsd without `particles/`:
            "mass", "log/id".
    """

    index: int
    step: int
    position: np.ndarray
    velocity: np.ndarray | None
    diameter: np.ndarray | None
    lengths: np.ndarray
    periodic: tuple[bool, ...] | None
    groups: dict[str, np.ndarray]
    others: dict[str, np.ndarray]


def read_frames(path: Path, frame: int = -1) -> tuple[StoredFrame, StoredFrame | None]:
    """Read a frame of a GSD file, and the one before it.

    Args:
        path: of the file.
        frame: number of the frame, from 0, or from -1 backwards.

    Returns:
        The frame, and the frame before; None for the first one.

    Raises:
        TrajectoryError: no GSD file of the schema hoomd, a damaged one, no such frame, a tilted box, or an
            array that a frame lacks, or holds in a wrong shape.
        OSError: the file cannot be read.
    """
    with _opened(path) as file:
        count = file.nframes
        if not -count <= frame < count:
            raise TrajectoryError(
                f"{path}: frame = {frame}; allowed: {-count} to {count - 1}, of {count} frames"
            )
        index = frame % count
        return _frame(path, file, index), _frame(path, file, index - 1) if index else None


def write_ordered(path: Path, order: np.ndarray, target: Path) -> None:
    """Write a GSD file with its particles in another order, in all frames, with all chunks.

    Groups (bonds, angles, ...) name the new places, and are sorted by the least place of their particles.

    Args:
        path: of the file to be read.
        order: (n,) permutation; particle order[i] is put at place i.
        target: path of the new file.

    Raises:
        TrajectoryError: a damaged file, or a frame of another number of particles.
        OSError: a file cannot be read or written.
    """
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    with _opened(path) as file:
        names = file.find_matching_chunk_names("")
        with gsd.fl.open(str(target), "w", file.application, file.schema, file.schema_version) as new:
            for index in range(file.nframes):
                if (n := _count(path, file, index)) != len(order):
                    raise TrajectoryError(
                        f"{path}: frame {index} has {n} particles; allowed: {len(order)}, as in the order; "
                        "give a file with the same particles in all frames"
                    )
                with _named(path, index):
                    for name, chunk in _ordered(file, index, names, order, rank):
                        new.write_chunk(name, chunk)
                new.end_frame()


def check_blocks(path: Path) -> None:
    """Raise an error for a GSD file with blocks beyond its end, or over each other, by its header.

    gsd computes the ends of blocks in 64 bits: if that overflows, it reads outside the file, and the process
    is killed. Where blocks overlap, an appended frame may replace others. A file that is not GSD passes.

    Raises:
        RuntimeError: such a header, with an error like those of gsd.
    """
    with open(path, "rb") as file:
        head, size = file.read(HEADER), os.fstat(file.fileno()).st_size
    if len(head) < HEADER or not head.startswith(MAGIC):
        return
    places = PLACES.unpack_from(head, len(MAGIC))
    blocks = []
    for (name, each), start, count in zip(ENTRIES.items(), places[::2], places[1::2], strict=True):
        blocks.append(range(start, start + each * count))
        if not count or start < HEADER or blocks[-1].stop > size:
            raise RuntimeError(
                f"Corrupt GSD file: {name} of {count} entries of {each} bytes from byte {start} on, in a "
                f"file of {size} bytes"
            )
    index, names = blocks
    if index.start < names.stop and names.start < index.stop:
        raise RuntimeError(f"Corrupt GSD file: index in the bytes of {index}, namelist in those of {names}")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file for reading; convert errors of gsd.

    Raises:
        TrajectoryError: no GSD file of the schema hoomd, or without frames.
    """
    try:
        check_blocks(path)
        file = gsd.fl.open(str(path), "r")
    except BROKEN as error:
        raise TrajectoryError(f"{path} cannot be read as GSD ({error}); {WHOLE}") from error
    with file:
        if file.schema != "hoomd" or not file.nframes:
            raise TrajectoryError(f"{path}: schema {file.schema!r}, {file.nframes} frames; {WHOLE}")
        yield file


@contextmanager
def _named(path: Path, index: int) -> Iterator[None]:
    """Convert an error of gsd to one that names the file and the frame.

    Raises:
        TrajectoryError: the frame cannot be read.
    """
    try:
        yield
    except TrajectoryError:
        raise
    except BROKEN as error:
        raise TrajectoryError(f"{path}: frame {index} cannot be read ({error!r:.200}); {WHOLE}") from error


def _frame(path: Path, file: Any, index: int) -> StoredFrame:
    """Read a frame.

    Raises:
        TrajectoryError: what `read_frames` raises of a frame.
    """
    n = _count(path, file, index)
    with _named(path, index):
        chunks = {
            name: chunk
            for name in file.find_matching_chunk_names("")
            if (chunk := _chunk(file, index, name)) is not None
        }
    dim = int(_first(chunks, "configuration/dimensions", 3))
    lengths = _lengths(path, index, chunks, dim)
    arrays = {}
    for name, chunk in chunks.items():
        if name.startswith(OF_PARTICLES) and name not in ("particles/N", "particles/types"):
            if len(chunk) == n:
                arrays[name.replace("particles/", "", 1)] = chunk
            elif name != "particles/type_shapes":
                raise _refused(path, index, f"{name} of {len(chunk)} rows", f"{n}, one a particle")
    if "position" not in arrays:
        raise _refused(path, index, "no particles/position", "positions in this frame or in frame 0")
    vectors: list[np.ndarray | None] = []
    for name in ("position", "velocity"):
        found = arrays.pop(name, None)
        if found is not None and found.shape != (n, 3):
            raise _refused(path, index, f"particles/{name} of shape {found.shape}", f"({n}, 3)")
        vectors.append(None if found is None else found.astype(np.float64))
    position, velocity = vectors
    assert position is not None
    if dim == 2 and (position[:, 2] != 0).any():
        raise _refused(path, index, "dimensions = 2 and a z that is not 0", "z = 0 in two dimensions")
    diameter = arrays.pop("diameter", np.ones(n) if OWN in chunks else None)
    if diameter is not None and diameter.shape != (n,):
        raise _refused(path, index, f"particles/diameter of shape {diameter.shape}", f"({n},)")
    return StoredFrame(
        index,
        int(_first(chunks, "configuration/step", 0)),
        position[:, :dim],
        None if velocity is None else velocity[:, :dim],
        None if diameter is None else diameter.astype(np.float64),
        lengths,
        _flags(path, index, chunks, dim),
        _groups(path, index, chunks, n),
        arrays,
    )


def _lengths(path: Path, index: int, chunks: dict[str, np.ndarray], dim: int) -> np.ndarray:
    """Return the lengths of the box of a frame, (dim,) float64.

    Raises:
        TrajectoryError: no box, a tilted one, another number of dimensions, or a length that is not positive.
    """
    box = chunks.get("configuration/box", DEFAULT_BOX).ravel().astype(np.float64)
    if len(box) != 6 or dim not in (2, 3):
        raise _refused(path, index, f"a box of {len(box)} numbers, dimensions = {dim}", "6, and 2 or 3")
    if (box[3:] != 0).any():
        raise _refused(path, index, f"a tilted box, {box.tolist()}", "tilts xy, xz, yz of 0")
    lengths = box[:dim]
    if not np.all(np.isfinite(lengths) & (lengths > 0)):
        raise _refused(path, index, f"a box of lengths {lengths.tolist()}", "positive finite lengths")
    return lengths


def _flags(path: Path, index: int, chunks: dict[str, np.ndarray], dim: int) -> tuple[bool, ...] | None:
    """Return the logged flags of periodic axes; None if there are none.

    Raises:
        TrajectoryError: other values than 0 and 1, or another number of them.
    """
    flags = chunks.get(OWN)
    if flags is not None and (flags.shape != (dim,) or not np.isin(flags, (0, 1)).all()):
        raise _refused(path, index, f"{OWN} = {flags.tolist()!r:.80}", f"{dim} flags, 0 or 1")
    return None if flags is None else tuple(map(bool, flags))


def _groups(path: Path, index: int, chunks: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Return the groups of particles of a frame.

    Raises:
        TrajectoryError: another number of columns, or a particle that the frame does not have.
    """
    found = {}
    for name, size in GROUPS.items():
        group = chunks.get(f"{name}/group")
        if group is None or not len(group):
            continue
        if group.ndim != 2 or group.shape[1] != size or group.dtype.kind not in "iu":
            raise _refused(path, index, f"{name}/group of shape {group.shape}", f"integers, (m, {size})")
        if int(group.min()) < 0 or int(group.max()) >= n:
            raise _refused(path, index, f"{name}/group with particle {group.max()}", f"0 to {n - 1}")
        found[name] = group.astype(np.int64)
    return found


def _refused(path: Path, index: int, found: str, allowed: str) -> TrajectoryError:
    """Return the error for what a frame holds."""
    return TrajectoryError(f"{path}: frame {index} has {found}; allowed: {allowed}; {WHOLE}")


def _count(path: Path, file: Any, index: int) -> int:
    """Return the number of particles of a frame; by default that of frame 0.

    Raises:
        TrajectoryError: none, or no number.
    """
    with _named(path, index):
        of = index if file.chunk_exists(index, "particles/N") else 0
        n = int(file.read_chunk(of, "particles/N").ravel()[0]) if file.chunk_exists(of, "particles/N") else 0
    if n < 1:
        raise _refused(path, index, f"{n} particles", "at least 1")
    return n


def _chunk(file: Any, index: int, name: str) -> np.ndarray | None:
    """Read a chunk of a frame, or of frame 0 if both have as many particles; None if neither stores it."""
    if file.chunk_exists(index, name):
        return file.read_chunk(index, name)
    if not index or not file.chunk_exists(0, name) or name == "configuration/step":
        return None
    if name.startswith(OF_PARTICLES) and file.chunk_exists(index, "particles/N"):
        counts = [int(file.read_chunk(k, "particles/N").ravel()[0]) for k in (0, index)]
        if counts[0] != counts[1]:
            return None
    return file.read_chunk(0, name)


def _first(chunks: dict[str, np.ndarray], name: str, default: int) -> int:
    """Return the number that a chunk holds, or a default."""
    found = chunks.get(name)
    return default if found is None or not found.size else int(found.ravel()[0])


def _ordered(
    file: Any, index: int, names: list[str], order: np.ndarray, rank: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and content of the chunks that a frame stores, in another order of the particles."""
    sorts = {}
    for group in GROUPS:
        if (found := _chunk(file, index, f"{group}/group")) is not None and len(found):
            sorts[group] = np.argsort(rank[found].min(axis=1), kind="stable")
    for name in names:
        if not file.chunk_exists(index, name):
            continue
        chunk = file.read_chunk(index, name)
        room, _, rest = name.removeprefix("log/").partition("/")
        if room == "particles" and len(chunk) == len(order) and rest not in ("N", "types", "type_shapes"):
            chunk = chunk[order]
        elif room in sorts and len(chunk) == len(sorts[room]) and rest not in ("N", "types"):
            chunk = rank[chunk].astype(chunk.dtype) if rest == "group" else chunk
            chunk = chunk[sorts[room]]
        yield name, np.ascontiguousarray(chunk)
