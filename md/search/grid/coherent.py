"""Search that sorts the particles by cell at every step: the particles of a cell are contiguous in memory.

The cells may be in any order. Green, Particle Simulation using CUDA, NVIDIA (2010); "coherent grid" in
[flock].
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md.backend import OnDevice
from md.particles.capabilities import SearchCapabilities
from md.particles.cell_rows import WIDTH
from md.particles.system import System
from md.search.grid.scattered import ScatteredSearch
from md.search.grid.sorted_cells import SortedCells, SortedCellsSearch, fold_cells, fold_rows
from sfc import Curve
from sfc.compile import kernel


@dataclass(frozen=True)
class Coherent(SortedCells):
    """Configuration of the search that sorts the particles by the rank of their cell at every step.

    Partners are then in few contiguous ranges of memory. On several ranks, which sort their particles by cell
    when they migrate, slots are sorted in between.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve.
        division: None for cells of the cutoff, of which all around a particle are visited; 1 to 4 for so many
            cells per cutoff, of which those within the cutoff are visited, as few long ranges. That is faster
            with many partners, as in a flock, and slower with few, as in a gas.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a division that is no integer.
        ValueError: a division outside its range.
    """

    name = "coherent"
    capabilities = SearchCapabilities(
        fusable=True, capturable=True, divisible=True, moves_particles=True, packs=True
    )
    cell_order: str | Curve = "row"
    division: int | None = None

    def build(self, system: System) -> SortedCellsSearch:
        """Make the search for a system.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than fit in memory.
        """
        return ScatteredSearch(self, system) if system.rows_stay else CoherentSearch(self, system)


class CoherentSearch(SortedCellsSearch):
    """Search over the particles of a system, sorted by cell."""


@OnDevice(threads=128, registers=(40, 72), of_boids=(40, 80), static=(13312, 13312))  # of packed rows
@kernel(parallel=True)
def force(n, pos, vel, start, rank, grid, law, out):
    """Compute out[i], the law folded over the particles of the home cell and of the cells around it.

    `rank` is the rank of each cell by its number; (0,) if it is that number.
    """
    for i in numba.prange(n):
        fold_cells(grid[0], i, pos, vel, start, rank, None, law, out)


@kernel(parallel=True)
def force_rows(n, pos, vel, start, rank, division, reach, keep2, parts, grid, law, out):
    """Compute out[i], the law folded over the particles in the rows of cells within reach.

    Each part takes a range of the particles and lists the slots closer than the square root of `keep2` first.
    """
    for p in numba.prange(parts):
        near, none = np.empty(n + WIDTH, np.uint32), np.empty(0, np.int32)
        for i in range(p * n // parts, (p + 1) * n // parts):
            fold_rows(grid[0], i, pos, vel, start, rank, none, division, reach, keep2, near, law, out)
