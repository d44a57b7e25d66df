"""Search that sorts the particles by cell at every step: the particles of a cell are contiguous in memory.

The cells may be in any order. Green, Particle Simulation using CUDA, NVIDIA (2010); "coherent grid" in
[flock].
"""

from __future__ import annotations

from dataclasses import dataclass

import numba

from md import checks
from md.backend.base import Array
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
from md.particles.capabilities import Capabilities
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc import Curve
from sfc.compile import kernel


@dataclass(frozen=True)
class Coherent(SearchConfig):
    """Configuration of the search that sorts the particles by the rank of their cell at every step.

    Partners are then in few contiguous ranges of memory.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve.

    Raises:
        TypeError: an order that is neither a name nor a curve.
    """

    name = "coherent"
    capabilities = Capabilities(fusable=True, capturable=True, moves_particles=True)
    cell_order: str | Curve = "row"

    def __post_init__(self):
        object.__setattr__(
            self, "cell_order", checks.order_of_cells("cell_order of Coherent", self.cell_order)
        )

    def build(self, system: System) -> CoherentSearch:
        """Make the search for a system.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than fit in memory.
        """
        return CoherentSearch(self, system)


class CoherentSearch(Search):
    """Search over the particles of a system, sorted by cell."""

    def __init__(self, config: Coherent, system: System):
        super().__init__(config, system)
        self._sort = CellSort(config.cell_order, self.particles.n, self.grid, self.backend)

    def build(self) -> None:
        """Sort the particles by the rank of their cell, in memory."""
        self._sort.apply(self.particles)

    def structure(self) -> tuple[Array, Array]:
        """Return the first slot of each cell, by rank, and the rank of each cell."""
        return self._sort.start, self._sort.rank


@kernel(parallel=True)
def force(n, pos, vel, start, rank, grid, law, out):
    """Compute out[i], the law folded over the particles of the home cell and of the cells around it."""
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
