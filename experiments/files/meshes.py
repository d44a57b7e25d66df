"""Meshes and point clouds: PLY, and VTK's legacy and XML unstructured grids, by meshio."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.files.columns import with_positions
from experiments.files.data import Data, check_order, dimensions_of, no_columns, no_frames, ranks, refused
from experiments.files.opening import library, module, write_whole
from experiments.files.text_rows import whole_number

COUNTS = re.compile(  # of items in the headers of PLY, VTK and VTU
    rb"^element\s+\w+\s+(\d+)|^(?:POINTS|CELLS|CELL_TYPES|POINT_DATA|CELL_DATA)\s+(\d+)|"
    rb"(?:NumberOfPoints|NumberOfCells)=[\"'](\d+)",
    re.MULTILINE,
)
HEAD = 2**16  # bytes in which the first counts stand
NAMES = {"line": "edges"}  # cells of meshio by another name
FORMS = {".ply": "ply", ".vtk": "vtk", ".vtu": "vtu"}


def read_mesh(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read the nodes and cells of a mesh, or the points of a cloud.

    Raises:
        FileError: as `read` of this package; meshio is absent, or cells name absent points.
    """
    no_columns(path, columns)
    no_frames(path, frame)
    mesh = _mesh(path)
    with library(path, "a mesh"):
        points = np.asarray(mesh.points, np.float64)
        said: list[str] = []
        if dimensions_of(points, said) == 2:
            points = np.ascontiguousarray(points[:, :2])
        cells: dict[str, list[np.ndarray]] = {}
        for block in mesh.cells:
            if block.type != "vertex":
                cells.setdefault(NAMES.get(block.type, block.type), []).append(_named(path, block))
        kind = {"kind": "mesh"} if cells else {}
        joined = {name: np.concatenate(blocks) for name, blocks in cells.items()}
        columns_of = {name: np.asarray(array) for name, array in mesh.point_data.items()}
        return with_positions(path, points, columns_of, said, cells=joined, **kind)


def write_mesh(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write a mesh with its nodes in another order, cells renumbered and sorted by their least node.

    Raises:
        FileError: an array that meshio does not write in this format.
    """
    meshio = module(data.path, "meshio")
    mesh = _mesh(data.path)
    order = check_order(order, len(mesh.points))
    rank, sorts, cells = ranks(order), [], []
    with library(data.path, "a mesh"):
        for block in mesh.cells:
            moved = rank[_named(data.path, block)]
            sorts.append(np.argsort(moved.min(axis=1), kind="stable"))
            cells.append((block.type, moved[sorts[-1]].astype(np.asarray(block.data).dtype)))
        new = meshio.Mesh(
            np.asarray(mesh.points)[order],
            cells,
            point_data={name: np.asarray(array)[order] for name, array in mesh.point_data.items()},
            cell_data={
                name: [np.asarray(part)[rows] for part, rows in zip(parts, sorts, strict=True)]
                for name, parts in mesh.cell_data.items()
            },
            field_data=mesh.field_data,
        )

    def write(partial: Path) -> None:
        with library(target, "a mesh"):
            meshio.write(str(partial), new, file_format=FORMS[target.suffix.lower()])
        _check_written(target, new, _mesh(partial))

    return write_whole(target, write)


def _mesh(path: Path) -> Any:
    """Read a mesh.

    Raises:
        FileError: meshio is absent; a damaged file, or counts of more items than it has bytes.
    """
    meshio = module(path, "meshio")
    with library(path, "a mesh"):
        size = path.stat().st_size
        with open(path, "rb") as file:
            head = file.read(HEAD)
        if size > HEAD:  # counts of legacy files stand anywhere
            head = path.read_bytes() if path.suffix.lower() == ".vtk" else head
        counts = [int(next(filter(None, found))) for found in COUNTS.findall(head)]
        packed = path.suffix.lower() == ".vtu"
        if counts and max(counts) > size * (1000 if packed else 1):
            raise refused(path, f"{max(counts)} items in {size} bytes", "as many as the file holds")
        ply = _ply_header(path, head) if path.suffix.lower() == ".ply" else None
        mesh = meshio.read(str(path), file_format=FORMS[path.suffix.lower()])
        if ply is not None:
            _check_ply(path, ply, mesh)
        if not len(mesh.points):
            raise refused(path, "no points", "at least one")
        return mesh


class PlyHeader(NamedTuple):
    """Header of a PLY file.

    Attributes:
        nodes: stated.
        faces: stated.
        bytes_of: names of the properties of nodes that are unsigned bytes.
    """

    nodes: int
    faces: int
    bytes_of: list[str]


def _ply_header(path: Path, head: bytes) -> PlyHeader:
    """Read and check the header of a PLY file; meshio reads on forever without an end of it.

    Raises:
        FileError: no end, or properties of faces that meshio does not read.
    """
    end = re.search(rb"^end_header\s*$", head, re.MULTILINE)
    if end is None or not head.startswith(b"ply"):
        raise refused(path, "no line end_header", f"a header of ply in the first {HEAD} bytes")
    counts, bytes_of, element = {"vertex": 0, "face": 0}, list[str](), ""
    binary = b"format ascii" not in head[: end.start()]
    for k, line in enumerate(head[: end.start()].decode("latin-1").split("\n"), 1):
        words = line.split()
        if words[:1] == ["element"] and len(words) == 3:
            element = words[1]
            counts[element] = whole_number(path, k, words[2], f"number of {element}")
        elif words[:1] == ["property"] and element == "face":
            whole = words[1:2] == ["list"] and words[-1] == "vertex_indices"
            if not whole and (binary or words[1:2] == ["list"]):
                raise refused(
                    path, f"{line!r:.60} of faces", "a list vertex_indices alone", "convert it to .vtu"
                )
        elif words[:1] == ["property"] and words[1:2] == ["uchar"]:
            bytes_of.append(words[-1])
    return PlyHeader(counts["vertex"], counts["face"], bytes_of)


def _check_ply(path: Path, head: PlyHeader, mesh: Any) -> None:
    """Check the numbers of nodes and faces of a PLY file, and make unsigned bytes of its signed ones.

    Raises:
        FileError: other numbers than stated.
    """
    nodes, faces = len(mesh.points), sum(len(block.data) for block in mesh.cells)
    if (nodes, faces) != (head.nodes, head.faces):
        raise refused(
            path,
            f"{head.nodes} nodes and {head.faces} faces stated, {nodes} and {faces} found",
            "as many",
            "give a whole file",
        )
    for name in head.bytes_of:
        if (array := mesh.point_data.get(name)) is not None and array.dtype == np.int8:
            mesh.point_data[name] = array.view(np.uint8)


def _named(path: Path, block: Any) -> np.ndarray:
    """Return the nodes of a block of cells, (m, k) int64.

    Raises:
        FileError: cells of different numbers of nodes, or that name absent ones.
    """
    cells = np.asarray(block.data)
    if cells.ndim != 2 or cells.dtype.kind not in "iu":
        raise refused(path, f"cells {block.type!r} of {cells.dtype}, shape {cells.shape}", "(m, k) integers")
    return cells.astype(np.int64)


def _check_written(target: Path, wanted: Any, found: Any) -> None:
    """Check that a format holds all arrays of a mesh.

    Raises:
        FileError: one is absent; the file is not written.
    """
    for name in ("point_data", "cell_data"):
        lost = sorted(getattr(wanted, name).keys() - getattr(found, name).keys())
        if lost:
            raise refused(target, f"{name} {lost} that the format does not hold", "none lost", "use .vtu")
    counts = [sum(len(block.data) for block in mesh.cells) for mesh in (wanted, found)]
    if counts[0] != counts[1] or not np.array_equal(np.asarray(wanted.points), np.asarray(found.points)):
        raise refused(target, f"{counts[1]} cells of {counts[0]}, or other points", "all", "use .vtu")
