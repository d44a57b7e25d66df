"""Search that sorts the particles by cell at every step: the particles of a cell are contiguous in memory.

The cells may be in any order. Green, Particle Simulation using CUDA, NVIDIA (2010); "coherent grid" in
[flock].
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md.backend import OnDevice
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    finish,
    home_cell,
    load,
    neighbour_rows,
    separation,
)
from md.laws.pair import initial, interact, result
from md.particles.capabilities import SearchCapabilities
from md.particles.cell_rows import WIDTH, at, slots_within
from md.particles.system import System
from md.search.grid.sorted_cells import SortedCells, SortedCellsSearch
from sfc import Curve
from sfc.compile import kernel


@dataclass(frozen=True)
class Coherent(SortedCells):
    """Configuration of the search that sorts the particles by the rank of their cell at every step.

    Partners are then in few contiguous ranges of memory.

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
    capabilities = SearchCapabilities(fusable=True, capturable=True, moves_particles=True, packs=True)
    cell_order: str | Curve = "row"
    division: int | None = None

    def build(self, system: System) -> CoherentSearch:
        """Make the search for a system.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than fit in memory.
        """
        return CoherentSearch(self, system)


class CoherentSearch(SortedCellsSearch):
    """Search over the particles of a system, sorted by cell."""


@OnDevice(threads=128)
@kernel(parallel=True)
def force(n, pos, vel, start, rank, grid, law, out):
    """Compute out[i], the law folded over the particles of the home cell and of the cells around it.

    `rank` is the rank of each cell by its number; (0,) if it is that number.
    """
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
                cell = rank[row + x] if len(rank) else row + x
                for j in range(start[cell], start[cell + 1]):
                    if j != i:
                        dr = displacement(g, ri, load(pos, j, g))
                        acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        finish(out, g, i, ri, vi, result(law, ri, vi, acc))


@kernel(parallel=True)
def force_rows(n, pos, vel, start, rank, division, reach, keep2, parts, grid, law, out):
    """Compute out[i], the law folded over the particles in the rows of cells within reach.

    Each part takes a range of the particles and lists the slots closer than the square root of `keep2` first.
    """
    for p in numba.prange(parts):
        g = grid[0]
        near = np.empty(n + WIDTH, np.uint32)
        none = np.empty(0, np.int32)
        for i in range(p * n // parts, (p + 1) * n // parts):
            ri = load(pos, i, g)
            vi = load(vel, i, g)
            acc = initial(law, ri)
            found, plain = slots_within(g, division, reach, keep2, i, ri, pos, start, rank, none, near)
            for k in range(found):
                j = near[at(k)]
                dr = separation(g, plain, ri, load(pos, at(j), g))
                acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
            finish(out, g, i, ri, vi, result(law, ri, vi, acc))
