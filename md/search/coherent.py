"""Particles sorted by cell at every step: the partners in a cell are one contiguous stretch of memory.

The cells may stand in any order. Green, Particle Simulation using CUDA, NVIDIA (2010); "coherent grid" in
seed 004.
"""

import numba

from md import checks
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    finish,
    home_cell,
    load,
    neighbour_rows,
)
from md.laws.pair import initial, interact, result
from md.particles.cell_sort import CellSort
from md.search.base import Search
from sfc import Curve
from sfc.compile import kernel


class Coherent(Search):
    """Counting sort by the rank of the cell, then contiguous stretches.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve.
    """

    name = "coherent"
    sorts_data = True

    def __init__(self, cell_order: str | Curve = "row"):
        self.cell_order = checks.order_of_cells("cell_order of Coherent", cell_order)

    def _allocate(self) -> None:
        self._sort = CellSort(self.cell_order, self.particles.n, self.grid, self.backend)

    def build(self) -> None:
        """Sort the particles by the rank of their cell and move them there."""
        self._sort.apply(self.particles)

    def _structure(self):
        return self._sort.start, self._sort.rank


@kernel(parallel=True)
def force(n, pos, vel, start, rank, grid, law, out):
    """out[i] = the law folded over the stretches of the home cell and those around it."""
    for i in numba.prange(n):
        g = grid[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = initial(law, ri)
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
        finish(out, g, i, ri, vi, result(law, ri, vi, acc))
