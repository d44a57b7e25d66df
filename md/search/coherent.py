"""Particles sorted by cell at every step: the partners in a cell are one contiguous stretch of memory.

The cells may stand in any order. Green, Particle Simulation using CUDA, NVIDIA (2010); "coherent grid" in
seed 004.
"""

import numba
import numpy as np

from md.backend.jit import kernel
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    finish,
    home_cell,
    load,
    neighbour_rows,
    zero,
)
from md.laws.pair import interact
from md.search.strategy import Search
from sfc import Curve, covering


class Coherent(Search):
    """Counting sort by the rank of the cell, then contiguous stretches.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve.
    """

    name = "coherent"
    sorts_data = True

    def __init__(self, cell_order: str | Curve = "row"):
        self.cell_order = cell_order

    def _allocate(self) -> None:
        backend, n, cells = self.backend, self.particles.n, self.grid.size
        ranks = covering(self.cell_order, self.grid.shape).dense_ranks()
        self._rank = backend.upload(ranks.astype(np.int32))
        self._keys = backend.empty(n, np.int32)
        self._order = backend.empty(n, np.int32)
        self._start = backend.empty(cells + 1, np.int32)
        backend.reserve_sort(n, cells)

    def build(self) -> None:
        """Sort the particles by the rank of their cell and move them there."""
        self.grid.keys(self.particles.pos, self._rank, self._keys)
        self.backend.sort(self._keys, self._start, self._order)
        self.particles.permute(self._order)

    def _structure(self):
        return self._start, self._rank


@kernel(parallel=True)
def force(n, pos, vel, start, rank, grid, law, out):
    """out[i] = the law folded over the stretches of the home cell and those around it."""
    for i in numba.prange(n):
        g = grid[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = zero(ri)
        home = home_cell(g, ri)
        for row in neighbour_rows(g, home):
            if row < 0:
                continue
            for x in axis_neighbours(g, 0, home[0]):
                if x < 0:
                    continue
                cell = rank[row + x]
                for j in range(start[cell], start[cell + 1]):
                    if j != i:
                        dr = displacement(g, ri, load(pos, j, g))
                        acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        finish(out, g, i, ri, vi, acc)
