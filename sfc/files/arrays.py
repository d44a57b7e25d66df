"""Files of numpy: one array (.npy), or several by name (.npz)."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sfc import checks
from sfc.files.columns import GIVE, coordinate_columns

POINTS = ("points", "pos", "positions", "position", "coordinates")  # names of an array of points in a .npz
NO_ARRAY = "a file of arrays that numpy wrote without objects"


class ArrayFile:
    """One array of a .npy file: (n, columns) numbers, or (n,) of a structured dtype.

    Args:
        path: of the file.

    Raises:
        OSError: a file that cannot be read.
        ValueError: no such file of numpy, or an array of another shape.
    """

    def __init__(self, path: Path):
        self._values = _load(path)
        names = self._values.dtype.names
        if self._values.ndim != (1 if names else 2):
            found = f"shape of the array in {path}"
            allowed = "(n, columns), or (n,) of a structured dtype"
            raise checks.refuse_value(found, self._values.shape, allowed)
        self.notes: list[str] = []

    def coordinates(self, columns: Sequence[str] | None) -> np.ndarray:
        """Return the coordinates, (n, dim).

        Args:
            columns: numbers from 0; of a structured dtype names, as for `ArraysFile`. None for all of two or
                three.

        Raises:
            ValueError: a column that is not there, or of another shape.
        """
        values, names = self._values, self._values.dtype.names
        if names:
            return _points_among({name: values[name] for name in names}, columns)
        return values[:, coordinate_columns(columns, None, values.shape[1])]

    def write(self, order: np.ndarray, stream: BinaryIO) -> None:
        """Write all columns with their rows in an order, (n,) int64."""
        np.save(stream, self._values[order], allow_pickle=False)


class ArraysFile:
    """Arrays of a .npz file, by name: those with as many rows as points are sorted, the others kept.

    Args:
        path: of the file.

    Raises:
        OSError: a file that cannot be read.
        ValueError: no such file of numpy.
    """

    def __init__(self, path: Path):
        self._arrays: dict[str, np.ndarray] = _load(path)
        with zipfile.ZipFile(path) as archive:
            self._is_compressed = any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist())
        self.notes: list[str] = []

    def coordinates(self, columns: Sequence[str] | None) -> np.ndarray:
        """Return the coordinates, (n, dim).

        Args:
            columns: the name of one (n, dim) array, or the names of one (n,) array for each axis; None for
                the only array of a name of `POINTS`, or for arrays named x, y and z.

        Raises:
            ValueError: an array that is not there, or of another shape.
        """
        found = _points_among(self._arrays, columns)
        kept = [f"{name} {one.shape}" for name, one in self._arrays.items() if one.shape[:1] != (len(found),)]
        self.notes = [f"kept as they are: {', '.join(kept)}"] if kept else []
        return found

    def write(self, order: np.ndarray, stream: BinaryIO) -> None:
        """Write all arrays, those of n rows with their rows in an order, (n,) int64."""
        n = len(order)
        arrays = {name: one[order] if one.shape[:1] == (n,) else one for name, one in self._arrays.items()}
        save: Any = np.savez_compressed if self._is_compressed else np.savez
        save(stream, **arrays)


def _load(path: Path) -> Any:
    """Read the array of a .npy file, or the dict of arrays of a .npz file."""
    is_one = path.suffix.lower() == ".npy"
    try:
        with path.open("rb") as stream:
            found = np.load(stream, allow_pickle=False)
            values = found if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise checks.refuse_value(str(path), "no array", NO_ARRAY, f"numpy says: {error}") from error
    if isinstance(values, np.ndarray) != is_one:
        kind = "one array" if not is_one else "several arrays"
        raise checks.refuse_value(str(path), kind, "a file that is what its name says", "rename it")
    return values


def _points_among(arrays: Mapping[str, np.ndarray], columns: Sequence[str] | None) -> np.ndarray:
    """Return the points in one array of two axes, or in one array for each axis; arguments as above."""
    names = list(arrays)
    if columns is None and len(named := [name for name in POINTS if name in arrays]) == 1:
        columns = named
    if columns is not None and (missing := [one for one in columns if one not in arrays]):
        raise checks.refuse_value("array", missing[0], f"one of {', '.join(names)}", GIVE)
    if columns is not None and len(columns) == 1:
        found = arrays[columns[0]]
        if found.ndim != 2:
            raise checks.refuse_value(f"shape of {columns[0]}", found.shape, "(n, dim)")
        return found
    chosen = [names[k] for k in coordinate_columns(columns, names, len(names))]
    return _stacked({name: arrays[name] for name in chosen})


def _stacked(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Stack one (n,) array for each axis."""
    first = next(iter(columns.values()))
    for name, one in columns.items():
        if one.ndim != 1 or one.shape != first.shape:
            raise checks.refuse_value(
                f"shape of {name}", one.shape, f"({len(first) if first.ndim else 'n'},)"
            )
        if one.dtype.kind not in "fiu":
            raise checks.refuse_value(f"dtype of {name}", str(one.dtype), "floats or integers")
    found = np.stack(list(columns.values()), axis=1)
    if found.dtype.kind == "f" and any(one.dtype.kind in "iu" for one in columns.values()):
        for name, one in columns.items():
            checks.array(name, one, "fiu", "numbers", ("n",))  # refuses integers that a float rounds
    return found
