"""Sort of a file of points: all its columns and arrays, written to another file."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from sfc import checks
from sfc.files.arrays import ArrayFile, ArraysFile
from sfc.files.text import TextTable
from sfc.point_keys import argsort

OTHERS = "`python -m experiments.advise --write` sorts files of other formats"


class PointFile(Protocol):
    """File of points that has been read.

    Attributes:
        notes: what is not sorted, in words; known once the coordinates are.
    """

    notes: list[str]

    def coordinates(self, columns: Sequence[str] | None) -> np.ndarray:
        """Return the coordinates, (n, dim)."""

    def write(self, order: np.ndarray, stream: BinaryIO) -> None:
        """Write the file with its rows in an order."""


READERS: Mapping[str, Callable[[Path], PointFile]] = {
    ".npy": ArrayFile,
    ".npz": ArraysFile,
    ".csv": TextTable,
}


class Sorted(NamedTuple):
    """Outcome of `sort_file`.

    Attributes:
        order: (n,) int64: row k of the new file was row `order[k]` of the old one.
        dim: number of coordinates.
        notes: what was not sorted, in words.
    """

    order: np.ndarray
    dim: int
    notes: list[str]


def sort_file(
    path: str | Path,
    out: str | Path | None = None,
    permutation: str | Path | None = None,
    columns: Sequence[str] | None = None,
    overwrite: bool = False,
    **how: Any,
) -> Sorted:
    """Sort the points of a file, with all that belongs to them, and write another file.

    All columns of a .csv or .npy file, and all arrays of a .npz file with as many rows as points, are sorted.
    Rows of text stay as they are written. Files are complete or absent: an error leaves none behind.

    Args:
        path: of the file: .npy, .npz or .csv.
        out: path of the sorted file, of the same format; None to write the permutation alone.
        permutation: path of a .npy file for the order, (n,) int64; None for none.
        columns: names, or numbers from 0, of the coordinates; in a .npz file also the name of one (n, dim)
            array. None for columns or arrays named x, y and z, for all of two or three columns without names,
            and for an array of a .npz named points, pos, position, positions or coordinates.
        overwrite: whether files at `out` and `permutation` may be replaced.
        how: arguments of `sfc.argsort`.

    Returns:
        The order, the number of coordinates, and notes.

    Raises:
        OSError: a file that cannot be read or written.
        TypeError, ValueError: as `sfc.argsort`.
        ValueError: another format; no place to write to, or one that is taken; coordinates that are not
            found, or are no numbers.
    """
    path = checks.path("file", path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise checks.refuse_value("file", str(path), f"a name ending in {', '.join(READERS)}", OTHERS)
    if not path.is_file():
        raise checks.refuse_value("file", str(path), "a file that exists")
    targets = _targets(path, out, permutation, checks.flag("overwrite", overwrite))
    opened = reader(path)
    points = opened.coordinates(columns)
    order = argsort(points, **how)
    contents: dict[str, Callable[[BinaryIO], None]] = {
        "out": lambda stream: opened.write(order, stream),
        "permutation": lambda stream: np.save(stream, order),
    }
    _write({target: contents[name] for name, target in targets.items()})
    return Sorted(order, points.shape[1], opened.notes)


def _targets(path: Path, out: Any, permutation: Any, overwrite: bool) -> dict[str, Path]:
    """Check where to write, before anything is read; return the paths by the names of the arguments."""
    given = {"out": (out, path.suffix.lower()), "permutation": (permutation, ".npy")}
    found = {name: checks.path(name, value) for name, (value, _) in given.items() if value is not None}
    if not found:
        raise checks.refuse_value("out", None, "a path, here or as permutation", "give --out FILE")
    for name, target in found.items():
        if target.suffix.lower() != given[name][1]:
            raise checks.refuse_value(name, str(target), f"a name ending in {given[name][1]}")
        if not target.parent.is_dir():
            raise checks.refuse_value(f"folder of {name}", str(target.parent), "a folder that exists")
        if target.is_dir() or (target.exists() and not overwrite):
            which = "the file itself" if target.exists() and target.samefile(path) else "taken"
            remedy = f"the name is {which}; give another, or --overwrite"
            raise checks.refuse_value(name, str(target), "a name that no file has", remedy)
    if len({target.resolve() for target in found.values()}) < len(found):
        raise checks.refuse_value("permutation", str(found["permutation"]), "another name than out")
    if "permutation" in found and found["permutation"].resolve() == path.resolve():
        raise checks.refuse_value("permutation", str(found["permutation"]), "another name than the file")
    return found


def _write(contents: Mapping[Path, Callable[[BinaryIO], None]]) -> None:
    """Write files beside their places, and move them there once all are complete."""
    with ExitStack() as undo:
        parts = {}
        for target, write in contents.items():
            part = target.with_name(f".{target.name}.{os.getpid()}.part")
            undo.callback(part.unlink, missing_ok=True)
            with part.open("xb") as stream:
                write(stream)
            parts[part] = target
        for part, target in parts.items():
            part.replace(target)
