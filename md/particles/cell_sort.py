"""Sort of particles in memory by the rank of their cell."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numba
import numpy as np

from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.backend.sorting.counting import MAX_PARTS
from md.particles.arrays import ROOM, ParticleArrays
from md.particles.cell_grid import CellGrid
from sfc import Curve, covering
from sfc.compile import kernel
from sfc.orderings.scans import TILE

RANKING = 24  # bytes on the host to compute the rank of a cell
SORTING = 8  # bytes on the backend for rank and start of a cell, without the counts of the sort


class Keys(Protocol):
    """Sort keys of rows of which some have no particle, and keys behind those of the cells.

    Attributes:
        borders: rows that may have partners among the rows that are not owned: the first ones.
    """

    borders: int

    @property
    def more(self) -> int:
        """Number of these keys."""

    def find(self, pos: Array, table: Array, grid: np.ndarray, cells: int, keys: Array) -> None:
        """Find the sort key of each row.

        Args:
            pos: (n, dim) positions.
            table: (cells,) int32 rank of each cell; or (0,) if it is its number.
            grid: record of the cells.
            cells: number of cells.
            keys: (n,) int32, filled.
        """


class Region(Protocol):
    """Part of a box, outside of which no particles are."""

    def cells_of(self, grid: CellGrid) -> np.ndarray:
        """Return which cells of a grid of the box it overlaps: (cells,) bool by row-major number."""


class CellSort:
    """Stable counting sort of particles by the rank of their cell, with its buffers.

    Args:
        order: of the cells: a name of `sfc.orderings(dim)` or a curve; covers any grid (`sfc.covering`). A
            device ranks the cells of "row" and "tiled" itself, the host those of others.
        n: number of particles.
        grid: the cells.
        backend: on which the particles are stored.
        region: in which the particles of a rank on the CPU are, until it is cut again: the sort takes time
            for its cells alone, which have ranks of their own; all other cells have the next one. If a
            particle is outside, all cells are ranked. None for the whole box.

    Attributes:
        table: (cells,) int32 rank of each cell by row-major number; or (0,) if it is that number.
        start: (ranks + 1,) int32; sorted, the particles of the cell of rank k are at start[k] ..
            start[k + 1] - 1. After `find` by number, k is the row-major number of the cell.
        order: (n,) int32; the slot before the sort of each sorted particle.
        scratch: int32 array that is free between two sorts, of n entries and up to 3 more: its length is a
            multiple of 4.

    Raises:
        ValueError: an unknown ordering, one of another dimension, or more cells than there is memory for.
    """

    _kept: tuple[Array, ...]  # memory of `order` and `scratch`

    def __init__(
        self, order: str | Curve, n: int, grid: CellGrid, backend: Backend, region: Region | None = None
    ):
        self._grid, self._backend = grid.on(backend), backend
        grid.require_memory(SORTING + 4 * min(backend.workers, MAX_PARTS), backend.free_memory)
        self._unranked = self.table = backend.empty(0, np.int32)
        if order == "tiled" and backend.runs_ahead:
            self.table = backend.empty(grid.size, np.int32)
            backend.kernels(__name__).tiled_ranks(grid.size, grid.record, TILE, self.table)
        elif order != "row":  # a row-major table would change nothing
            grid.require_memory(RANKING, checks.host_memory)
            ranks = covering(order, grid.shape).dense_ranks().astype(np.int32)
            if (ranks != np.arange(grid.size)).any():
                self.table = backend.upload(ranks)
        self._ranks, self._cells, self._is_part = self.table, grid.size, False
        self._region: Region | None = None
        self._starts, self._kept = backend.empty(0, np.int32), ()
        self.make_room(n, region=region)

    def make_room(self, n: int, keys: Keys | None = None, region: Region | None = None) -> None:
        """Allocate what depends on the number of particles, n, or keep it where it has room for them.

        Args:
            n: number of rows.
            keys: finds the sort keys; None for those of the cells.
            region: as for the constructor.
        """
        backend, kept = self._backend, self._kept
        has_other_cells = region is not self._region
        if has_other_cells:
            self._region = region
            self._rank_cells(region)
        self._finder, bins = keys, self._cells if keys is None else self._cells + keys.more
        has_room = len(kept) > 0 and len(kept[0]) >= n
        if not has_room:
            room = n + n // ROOM if kept else n
            self._kept = kept = backend.empty(room, np.int32), backend.empty(-(-room // 4) * 4, np.int32)
        if not has_room or len(self._starts) <= bins or has_other_cells:
            self._starts = backend.empty(bins + 1, np.int32)
            self._scratch = backend.sort_scratch(len(kept[0]), bins)
        self.order, self.scratch = kept[0][:n], kept[1][: -(-n // 4) * 4]
        self.start, self._keys = self._starts[: bins + 1], self.scratch[:n]

    def _rank_cells(self, region: Region | None) -> None:
        """Rank all cells, or those of a region alone, as they follow each other in the order."""
        self.table, self._cells, self._is_part = self._ranks, self._grid.size, False
        self.__dict__.pop("rank", None)
        is_inside = None if region is None else region.cells_of(self._grid)
        if is_inside is None or is_inside.all():
            return
        self._is_part = True
        ranks = self._ranks if len(self._ranks) else slice(None)
        is_taken = np.empty_like(is_inside)
        is_taken[ranks] = is_inside
        place = np.cumsum(is_taken, dtype=np.int32) - 1
        self._cells = int(place[-1]) + 2  # the last one is of all others
        self.table = np.where(is_inside, place[ranks], np.int32(self._cells - 1))

    @cached_property
    def rank(self) -> Array:
        """(cells,) int32 rank of each cell by row-major number, also if it is that number."""
        return self.table if len(self.table) else self._backend.arange(self._grid.size)

    def store_starts(self, every: int, starts: Array) -> None:
        """Store every so-manyth of `start`, from the first on.

        Args:
            every: ranks from one to the next.
            starts: int32, filled.
        """
        if self._backend.runs_ahead:
            self._backend.kernels(__name__).store_starts(len(starts), self.start, every, starts)
        else:
            starts[...] = self.start[::every]

    def find(self, pos: Array, by_number: bool = False) -> None:
        """Fill `start` and `order` without moving the particles.

        Args:
            pos: (n, dim) positions inside the box, on the backend.
            by_number: sort by the row-major number of the cells instead of their rank.
        """
        backend, keys, scratch = self._backend, self._keys, self._scratch
        if by_number and self._is_part:
            raise ValueError("a sort by number within a region; allowed: by rank, or in the whole box")
        table = self._unranked if by_number else self.table
        if self._finder is not None:
            self._finder.find(pos, table, self._grid.record, self._grid.size, keys)
            backend.sort(keys, self.start, self.order, scratch, stable_bins=self._grid.size)
            return
        if backend.runs_ahead:
            backend.count_cells(pos, table, self._grid.record, keys, scratch)
        else:
            self._grid.keys(pos, table, keys)
        backend.sort(keys, self.start, self.order, scratch, are_counted=backend.runs_ahead)
        if self._is_part and self.start[-2] != self.start[-1]:
            # Particles are outside the region, as in a run that will end with `HaloOutrun`. Cells that share
            # a rank would be visited several times.
            self._rank_cells(None)
            self._starts = backend.empty(self._cells + 1, np.int32)
            self._scratch = backend.sort_scratch(len(self._kept[0]), self._cells)
            self.start = self._starts
            self.find(pos)

    def apply(self, particles: ParticleArrays, keep_roles: bool = False) -> Array | None:
        """Sort the particles in memory; particles of one cell keep their order.

        Ghosts of a rank on the CPU are sorted among themselves, after the owned particles. `order` then has
        the row of each sorted particle after the sort.

        Args:
            particles: the particles.
            keep_roles: as in `ParticleArrays.permute`.

        Returns:
            (rows,) int32 row, after the sort, of the particle of each row before it; None of one rank alone.
        """
        self.find(particles.pos)
        if particles.region is None:
            particles.permute(self.order, keep_roles)
            return None
        moved, before = self._backend.empty(particles.rows, np.int32), self._keys
        _owned_first(particles.n, self._backend.workers, self.order, before, moved)
        particles.permute(before, keep_roles)
        return moved


@kernel(parallel=True)
def _owned_first(owned, parts, order, before, moved):
    """Order the owned particles before the ghosts, and each of them as they are sorted.

    Args:
        owned: number of owned particles, the first rows.
        parts: ranges of `order` that are read side by side.
        order: (rows,) int32 row of each sorted particle; overwritten by its new row.
        before: (rows,) int32, filled: old row of each new one.
        moved: (rows,) int32, filled: new row of each old one.
    """
    rows = len(order)
    first = np.zeros(parts + 1, np.int64)
    for p in numba.prange(parts):
        for k in range(p * rows // parts, (p + 1) * rows // parts):
            first[p + 1] += order[k] < owned
    first = np.cumsum(first)
    for p in numba.prange(parts):
        begin = p * rows // parts
        row_owned, row_ghost = first[p], owned + begin - first[p]
        for k in range(begin, (p + 1) * rows // parts):
            old = order[k]
            row = row_owned if old < owned else row_ghost
            row_owned += old < owned
            row_ghost += old >= owned
            before[row], moved[old], order[k] = old, row, row
