"""Search with a list of slots sorted by cell; the particles are not moved in memory.

The slots of a cell are contiguous in the list, but the particles are wherever the memory order puts them. The
difference to `coherent`, which moves the particles, is the effect of moving them. Green, Particle Simulation
using CUDA, NVIDIA (2010); "uniform grid" in [flock].
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md.backend import OnDevice
from md.backend.prelude import slot_of
from md.particles.cell_rows import WIDTH
from md.particles.system import System
from md.search.grid.sorted_cells import SortedCells, SortedCellsSearch, fold_cells, fold_rows
from sfc import Curve
from sfc.compile import kernel


@dataclass(frozen=True)
class Scattered(SortedCells):
    """Configuration of the search that sorts slots by the rank of the cell at every step.

    Args:
        cell_order: order of the cells in the list: a name of `sfc.orderings(dim)` or a curve.
        division: None for cells of the cutoff, of which all around a particle are visited; 1 to 4 for so many
            cells per cutoff, of which those within the cutoff are visited, as few long ranges. That is faster
            with many partners, as in a flock, and slower with few, as in a gas.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a division that is no integer.
        ValueError: a division outside its range.
    """

    name = "scattered"
    cell_order: str | Curve = "row"
    division: int | None = None

    def build(self, system: System) -> ScatteredSearch:
        """Make the search for a system.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than fit in memory.
        """
        return ScatteredSearch(self, system)


class ScatteredSearch(SortedCellsSearch):
    """Search over the particles of a system, with their slots sorted by cell."""


@OnDevice(registers=(32, 56), of_boids=(40, 64))
@kernel(parallel=True)
def force(n, pos, vel, work, start, rank, order, grid, law, out):
    """Compute out[i], the law folded over the slots of the home cell and of the cells around it."""
    for item in numba.prange(n):
        fold_cells(grid[0], slot_of(work, item), pos, vel, start, rank, order, law, out)


@kernel(parallel=True)
def force_rows(n, pos, vel, work, start, rank, order, division, reach, keep2, parts, grid, law, out):
    """Compute out[i], the law folded over the particles in the rows of cells within reach.

    Each part takes a range of the particles and lists the slots closer than the square root of `keep2` first.
    """
    for p in numba.prange(parts):
        near = np.empty(len(pos) + WIDTH, np.uint32)  # rows of other ranks too
        for item in range(p * n // parts, (p + 1) * n // parts):
            i = slot_of(work, item)
            fold_rows(grid[0], i, pos, vel, start, rank, order, division, reach, keep2, near, law, out)
