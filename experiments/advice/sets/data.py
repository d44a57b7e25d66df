"""Arrays of a data set, of any kind: one class for all."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy.sparse import csr_array

from sfc import checks

PARTS = ("data", "indices", "indptr")  # arrays of a matrix
DAMAGED = (  # exceptions of numpy and zipfile for files with wrong bytes
    ValueError, EOFError, KeyError, SyntaxError, MemoryError, NotImplementedError, BadZipFile, zlib.error,
)  # fmt: skip
NUMBERS = ("cutoff", "neighbours")
ARRAYS = ("values", "points", "radii", "cells", "trace", "lists")


def arrays_in(path: str | Path) -> dict[str, np.ndarray]:
    """Read a `.npz`, or a `.npy` as one array without a name.

    Args:
        path: of the file.

    Returns:
        Name -> array; that of a `.npy` is "".

    Raises:
        OSError: the file cannot be opened.
        ValueError: a file of another kind, with Python objects, or damaged.
    """
    path = checks.path("path", path)
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return {"": found}
            return {name: found[name] for name in found.files}
    except DAMAGED as error:  # the texts of numpy advise to load objects
        raise ValueError(
            f"{path} cannot be read; allowed: .npz or .npy of numbers, as numpy writes them; write it again"
        ) from error


@dataclass(frozen=True, eq=False)
class SetData:
    """n items in memory, and what refers to them; arrays that a kind of data does not have are None.

    An item is what an order moves: a particle, a point, a row of a matrix with its column, a pixel, an entry
    of a table.

    Attributes:
        values: (n,) or (n, m) numbers of each item: the vector that a matrix is multiplied with, a pixel's
            channels, an entry of a table.
        points: (n, dim) float64 coordinates of the items.
        radii: (n,) float64 radii of the particles.
        cells: (c, corners) int32 items at the corners of each cell; edges have 2 corners.
        matrix: (n, n) `scipy.sparse.csr_array`, float64.
        trace: (t,) int64 items in the order in which a program reads them.
        lists: (n, neighbours) int32 nearest items of each item, for code that does not search them.
        cutoff: distance below which two points are neighbours, in the unit of `points`; 0 for none. Of
            particles with radii, that of two spheres is the sum of their radii.
        neighbours: nearest points of each point that are searched; 0 for none.
    """

    values: np.ndarray | None = None
    points: np.ndarray | None = None
    radii: np.ndarray | None = None
    cells: np.ndarray | None = None
    matrix: csr_array | None = None
    trace: np.ndarray | None = None
    lists: np.ndarray | None = None
    cutoff: float = 0.0
    neighbours: int = 0

    @property
    def n(self) -> int:
        """Number of items."""
        for name in ("points", "values", "radii"):
            if (array := getattr(self, name)) is not None:
                return len(array)
        return 0 if self.matrix is None else self.matrix.shape[0]

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return name -> array that is there; of the matrix `matrix.data`, `.indices`, `.indptr`."""
        found = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        if self.matrix is not None:
            found |= {f"matrix.{part}": getattr(self.matrix, part) for part in PARTS}
        return found

    def required(self, name: str, what: str) -> Any:
        """Return one of the fields.

        Args:
            name: of the field.
            what: needs it, for the message.

        Raises:
            ValueError: the data does not have it.
        """
        found = getattr(self, name)
        if found is None or (name in NUMBERS and not found):
            has = ", ".join(self.arrays())
            raise ValueError(f"{what} of data with {has}; allowed: data with {name}")
        return found

    def save(self, path: str | Path) -> None:
        """Write all arrays to an uncompressed `.npz`, which `load` reads.

        Args:
            path: of the file, ending in `.npz`.

        Raises:
            OSError: the file cannot be written.
        """
        arrays: dict[str, Any] = self.arrays()
        np.savez(checks.path("path", path), cutoff=self.cutoff, neighbours=self.neighbours, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> SetData:
        """Read a file of `save` into new arrays.

        Args:
            path: of the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: a file with other contents, or damaged.
        """
        found: dict[str, Any] = arrays_in(path)
        known = {field.name for field in fields(cls)} | {f"matrix.{part}" for part in PARTS}
        if not set(NUMBERS) <= set(found) <= known:
            raise ValueError(f"{path} holds {', '.join(found)}; allowed: a file written by SetData.save")
        parts = [found.pop(f"matrix.{part}", None) for part in PARTS]
        matrix = None
        if parts[0] is not None:
            rows = len(parts[2]) - 1
            matrix = csr_array(tuple(parts), shape=(rows, rows))
        cutoff, neighbours = float(found.pop("cutoff")), int(found.pop("neighbours"))
        return cls(matrix=matrix, cutoff=cutoff, neighbours=neighbours, **found)
