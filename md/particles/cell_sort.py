"""Sorting particles in memory by the rank of their cell."""

from __future__ import annotations

import numpy as np

from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.backend.sorting.counting import MAX_PARTS
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from sfc import Curve, covering

RANKING = 24  # bytes of the host that finding the rank of a cell takes
SORTING = 8  # bytes of the backend for rank and start of a cell, without what sorting counts in


class CellSort:
    """A stable counting sort of particles by the rank of their cell, with its buffers.

    Args:
        order: of the cells: a name of `sfc.orderings(dim)` or a curve; laid over any grid by `sfc.covering`.
        n: number of particles.
        grid: the cells.
        backend: where the particles to sort live.

    Attributes:
        rank: (cells,) int32 rank of each cell by row-major number.
        table: the same; or (0,) where each cell's rank is its number.
        start: (cells + 1,) int32; the particles of the cell of rank k are those at the places start[k] ..
            start[k + 1] - 1 of the sorted order.
        order: (n,) int32; the slot that the particle of each place had before it was sorted.

    Raises:
        ValueError: an unknown ordering, one of another dimension, or more cells than there is memory for.
    """

    def __init__(self, order: str | Curve, n: int, grid: CellGrid, backend: Backend):
        self._grid, self._backend = grid.on(backend), backend
        grid.require_memory(RANKING, checks.host_memory)
        grid.require_memory(SORTING + 4 * min(backend.workers, MAX_PARTS), backend.free_memory)
        ranks = covering(order, grid.shape).dense_ranks().astype(np.int32)
        self.rank = backend.upload(ranks)
        row_major = bool((ranks == np.arange(grid.size)).all())
        self.table = backend.empty(0, np.int32) if row_major else self.rank
        self.start = backend.empty(grid.size + 1, np.int32)
        self.order = backend.empty(n, np.int32)
        self._keys = backend.empty(n, np.int32)
        self._scratch = backend.sort_scratch(n, grid.size)

    def find(self, pos: Array) -> None:
        """Fill `start` and `order`, and leave the particles where they are.

        Args:
            pos: (n, dim) positions inside the box, on the backend.
        """
        self._grid.keys(pos, self.table, self._keys)
        self._backend.sort(self._keys, self.start, self.order, self._scratch)

    def apply(self, particles: ParticleArrays) -> None:
        """Sort the particles; those of one cell keep their order."""
        self.find(particles.pos)
        particles.permute(self.order)
