"""Files of a user: particles, points, meshes, sparse matrices and traces, read and written in another order.

`read` makes one class of any of them, `write` puts the items of a file into another order. What is damaged,
ambiguous or unknown is refused with a `FileError`; nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.files import arrays, gsd_files, lammps_data, lammps_dump, las, matrices, meshes, tables, xyz
from experiments.files.data import Data, FileError, check_order, require_file
from sfc import checks

__all__ = ["FORMATS", "Data", "FileError", "Format", "read", "write"]


class Format(NamedTuple):
    """Functions of the files of an ending.

    Attributes:
        read: of path, names of columns, frame; returns the data.
        write: of data, order, path; returns the path.
    """

    read: Callable[[Path, Sequence[str], int], Data]
    write: Callable[[Data, np.ndarray, Path], Path]


_DATA = Format(lammps_data.read_data, lammps_data.write_data)
_DUMP = Format(lammps_dump.read_dump, lammps_dump.write_dump)
_SCAN = Format(las.read_las, las.write_las)
_MESH = Format(meshes.read_mesh, meshes.write_mesh)
FORMATS: dict[str, Format] = {  # by ending
    ".gsd": Format(gsd_files.read_gsd, gsd_files.write_gsd),
    ".data": _DATA,
    ".lmp": _DATA,
    ".dump": _DUMP,
    ".lammpstrj": _DUMP,
    ".xyz": Format(xyz.read_xyz, xyz.write_xyz),
    ".csv": Format(tables.read_csv, tables.write_csv),
    ".txt": Format(tables.read_csv, tables.write_csv),
    ".parquet": Format(tables.read_parquet, tables.write_parquet),
    ".npy": Format(arrays.read_npy, arrays.write_npy),
    ".npz": Format(arrays.read_npz, arrays.write_npz),
    ".las": _SCAN,
    ".laz": _SCAN,
    ".ply": _MESH,
    ".vtk": _MESH,
    ".vtu": _MESH,
    ".mtx": Format(matrices.read_mtx, matrices.write_mtx),
}


def read(path: str | Path, *, columns: Sequence[str] = (), frame: int = -1) -> Data:
    """Read a file by its ending (`FORMATS`).

    Args:
        path: of the file.
        columns: two or three names of the columns x, y and z; empty to find them by name.
        frame: of a trajectory, from 0, or from -1 backwards.

    Returns:
        The data, checked: finite, in the box, with cells that name items.

    Raises:
        TypeError: an argument of another class.
        FileError: no such file, an unknown ending, or a file that is empty, damaged or of a form that is not
            read. Names the file, what was found, and what to give.
    """
    path = checks.path("path", path)
    frame = checks.integer("frame", frame, -(2**62), 2**62)
    names = tuple(checks.text("columns", name) for name in checks.sequence("columns", columns, "names"))
    form = _format(path)
    require_file(path)
    return form.read(path, names, frame)


def write(data: Data, order: Sequence[int] | np.ndarray, path: str | Path) -> Path:
    """Write a file like the one that was read, with its items in another order.

    All columns, arrays and frames of the file are kept. Connectivity and traces name the new places;
    cells are sorted by the least of their items.

    Args:
        data: as `read` has returned it; its file is read again.
        order: (n,) permutation; item order[i] goes to place i.
        path: of the new file, with the ending of the old one.

    Returns:
        The path.

    Raises:
        TypeError: an argument of another class.
        FileError: no permutation, another ending, or a file that cannot be read or written.
    """
    path = checks.path("path", path)
    checks.instance("data", data, Data, "what experiments.files.read returns")
    if path.suffix.lower() != data.path.suffix.lower():
        raise FileError(
            f"{path}: ending {path.suffix!r}; allowed: {data.path.suffix!r}, that of {data.path}; name it so"
        )
    order = check_order(order, data.n)
    require_file(data.path)
    return _format(data.path).write(data, order, path)


def _format(path: Path) -> Format:
    """Return the format of an ending.

    Raises:
        FileError: an unknown ending; names the known ones.
    """
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise FileError(f"{path}: ending {path.suffix!r}; allowed: {', '.join(FORMATS)}; convert the file")
    return found
