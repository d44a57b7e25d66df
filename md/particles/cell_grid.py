"""Cell grid of a box, shared by searches and orderings, and sort keys of particles."""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable

import numba
import numpy as np

from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.backend.prelude import cell_number, home_cell, load
from md.particles.box import Box
from sfc.compile import kernel

MAX_CELLS = 2**31 - 1024  # cell numbers are int32, also after the size of a launch is rounded up


def record_dtype(dim: int, precision: np.dtype) -> np.dtype:
    """Make the dtype of the grid record of kernels; a CUDA kernel gets the same bytes by value."""
    real = np.dtype(precision)
    return np.dtype(
        [
            ("length", real, (dim,)),
            ("half", real, (dim,)),  # half the length on a periodic axis, else infinite
            ("image", real, (dim,)),  # the length on a periodic axis, else 0
            ("lowest", real, (dim,)),  # bounds of a position: 0 and the length, except on open axes
            ("highest", real, (dim,)),
            ("per_side", real, (dim,)),  # cells per unit of length
            ("per_image", real, (dim,)),  # 1 / length on a periodic axis, else 0
            ("nearest2", real),  # square of half the shortest periodic axis, somewhat less; else infinite
            ("cells", np.int32, (3,)),  # 1 along z in 2D
            ("periodic", np.int32, (3,)),
        ],
        align=True,
    )


class CellGrid:
    """Grid of cells over a box with sides of at least the cutoff, so that partners are in adjacent cells.

    Args:
        box: the box.
        cutoff: largest distance of interaction in d.
        precision: numpy dtype of positions in kernels.
        backend: on which keys and tables are stored.
        division: cells per cutoff: sides are at least cutoff / division, and partners are at most so many
            cells apart along each axis.

    Attributes:
        cutoff: division times the least side of a cell, in d.
        shape: cells along each axis.
        size: number of cells.
        record: (1,) structured array of `record_dtype`, an argument of the kernels.

    Raises:
        ValueError: a periodic axis shorter than two cutoffs, or more cells than int32 counts.
    """

    def __init__(self, box: Box, cutoff: float, precision: np.dtype, backend: Backend, division: int = 1):
        cutoff = checks.number("cutoff", cutoff, above=0, unit="d")
        for axis, (length, periodic) in enumerate(zip(box.lengths, box.periodic, strict=True)):
            if periodic and length < 2 * cutoff:
                raise ValueError(
                    f"box length {length} along axis {axis} with cutoff {cutoff}; allowed on a periodic "
                    f"axis: at least {2 * cutoff}{rounded(length, 2 * cutoff)}, or a particle interacts with "
                    "two images of another; enlarge the box"
                )
        precision = np.dtype(precision)
        self.box, self.cutoff, self.backend, self.precision = box, cutoff, backend, precision
        side = cutoff / division
        self.shape = tuple(_cells_along(length, side, precision) for length in box.lengths)
        self.size = math.prod(self.shape)
        if self.size > MAX_CELLS:
            raise ValueError(
                f"{checks.shown(self.size)} cells of side {side} in a box of {box.lengths}, which take "
                f"{checks.bytes_shown(4 * self.size)}; allowed: up to {MAX_CELLS} (int32 cell numbers); take "
                "a smaller box, or another unit of length, in which particles are larger"
            )
        lengths, wraps = np.array(box.lengths), np.array(box.periodic)
        half = np.where(wraps, lengths / 2, np.inf)
        self.record = np.zeros(1, record_dtype(box.dim, precision))
        self.record["length"], self.record["per_side"] = lengths, self.shape / lengths
        self.record["half"], self.record["image"] = half, wraps * lengths
        self.record["per_image"] = wraps / lengths
        self.record["lowest"], self.record["highest"] = np.transpose(box.ends)
        self.record["cells"] = (*self.shape, 1)[:3]
        self.record["periodic"][0, : box.dim] = wraps
        with np.errstate(over="ignore"):  # inf where squares of distances overflow too
            self.record["nearest2"] = np.square(half.min()) * (1 - 8 * np.finfo(precision).eps)

    def on(self, backend: Backend) -> CellGrid:
        """Copy the grid for kernels and arrays of another backend."""
        other = copy.copy(self)
        other.backend = backend
        return other

    def with_finer_rows(self, parts: int) -> CellGrid:
        """Copy the grid with every cell divided into so many along axis 0; it must have at most MAX_CELLS."""
        other = copy.copy(self)
        other.shape = (parts * self.shape[0], *self.shape[1:])
        other.size = parts * self.size
        other.record = self.record.copy()
        other.record["cells"][0, 0] *= parts
        other.record["per_side"][0, 0] *= parts
        return other

    def require_memory(self, each: int, free: Callable[[], int]) -> None:
        """Raise an error if the cells need more memory than is free, as in a large box with few particles.

        Args:
            each: bytes of a cell.
            free: returns the free bytes; not called for cells of up to `sfc.checks.SMALL` bytes in all.

        Raises:
            ValueError: the cells need more memory.
        """
        remedy = (
            "take a smaller box, or search='lbvh' without a reorder, which needs memory for particles alone"
        )
        checks.require_allocatable(
            f"{self.size} cells of a box of {self.box.lengths}", each * self.size, remedy, free
        )

    def keys(self, pos: Array, table: Array, keys: Array) -> None:
        """Compute the sort key of each particle: the entry of a table for the cell of the particle.

        Args:
            pos: (n, dim) positions inside the box.
            table: (size,) int32 rank of each cell by row-major number; (0,) for that number itself.
            keys: (n,) int32, filled.
        """
        self.backend.kernels(__name__).cell_keys(len(keys), pos, table, self.record, keys)


def rounded(length: float, least: float) -> str:
    """Say that float32 rounds radii, if only that makes a length too short; empty otherwise.

    Args:
        length: of a box, in d.
        least: needed by the largest particle, in d.
    """
    return " (float32 rounds radii; in float64 this may do)" if float(np.float32(length)) == least else ""


def _cells_along(length: float, cutoff: float, precision: np.dtype) -> int:
    """Compute the largest number of cells along an axis that are at least the cutoff wide despite rounding.

    The kernel computes floor(x * per_side). That is exact if per_side is exactly 1/cutoff and a power of two.
    Else the product may round across a face of a cell, so that cells must be wider than the cutoff by that
    rounding.
    """
    count = max(1, math.floor(min(length / cutoff, 2**62)))  # so many are refused, whatever their number
    if math.frexp(cutoff)[0] == 0.5 and count * cutoff == length:
        return count
    least = cutoff * (1 + 4 * np.finfo(precision).eps * count)
    # The width of a cell never increases with their number, from 2 on to `count`.
    return 1 + bisect_left(range(2, count + 1), True, key=lambda cells: length / cells < least)


@kernel(parallel=True)
def cell_keys(n, pos, table, grid, keys):
    """Store table[number of the cell of particle i] in keys[i]; the number itself for an empty table."""
    for i in numba.prange(n):
        g = grid[0]
        number = cell_number(g, home_cell(g, load(pos, i, g)))
        keys[i] = table[number] if len(table) else number
