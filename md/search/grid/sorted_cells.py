"""Base of the searches that sort by cell at every step: the particles in memory, or a list of slots.

Green, Particle Simulation using CUDA, NVIDIA (2010). A derived class is in the file of its kernels,
which fold a law over the cells around a particle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from md import checks
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
from md.particles.cell_rows import at, checked, divided, reach_of, slots_within
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc import Curve
from sfc.compile import inlined


class SortedCells(SearchConfig):
    """Configuration of a search that sorts by the rank of the cell at every step.

    Attributes:
        cell_order: order of the cells: a name of `sfc.orderings(dim)` or a curve.
        division: None for cells of the cutoff, of which all around a particle are visited; 1 to 4 for so many
            cells per cutoff, of which those within the cutoff are visited, as few long ranges.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a division that is no integer.
        ValueError: a division outside its range.
    """

    cell_order: str | Curve
    division: int | None

    def __post_init__(self):
        self._check("cell_order", checks.order_of_cells)
        self._check("division", checked)


class SortedCellsSearch(Search):
    """Search over the particles of a system, or over their slots, sorted by cell."""

    config: SortedCells

    def __init__(self, config: SortedCells, system: System):
        super().__init__(config, system, divided(system.grid, config.division))
        if system.rows_stay:
            self.capabilities = replace(self.capabilities, moves_particles=False)
        rows, region = self.particles.rows, self.particles.region
        self._sort = CellSort(config.cell_order, rows, self.grid, self.backend, region)
        if config.division is not None:
            self._kernel = "force_rows"

    def rows_changed(self) -> None:
        """Make room for the slots of all rows."""
        self._sort.make_room(self.particles.rows, region=self.particles.region)

    def build(self) -> None:
        """Sort the particles in memory, or the list of their slots, by the rank of the cell."""
        if self.capabilities.moves_particles:
            self._sort.apply(self.particles)
        else:
            self._sort.find(self.particles.pos)

    def structure(self) -> tuple[Any, ...]:
        """Return the first entry of each cell by rank, the ranks of the cells, and the slots if in a list.

        With a division also: the division, the distance up to which cells are visited, the square of that up
        to which the CPU lists slots, and number of parts on the CPU.
        """
        s, division = self._sort, self.config.division
        order = () if self.capabilities.moves_particles else (s.order,)
        if division is None:
            return s.start, s.rank if order else s.table, *order
        reach = reach_of(self.grid)
        keep2 = type(reach)(np.inf) if self._reads_all else reach * reach
        return s.start, s.table, *order, division, reach, keep2, 4 * self.backend.workers


@inlined
def fold_cells(grid, i, pos, vel, start, rank, order, law, out):
    """Compute out[i], the law folded over the particles of the home cell and of the cells around it.

    `rank` is the rank of each cell by its number; (0,) if it is that number. `order` is the slot of each
    entry; None if it is the number of the entry.
    """
    ri, vi = load(pos, i, grid), load(vel, i, grid)
    acc, home = initial(law, ri), home_cell(grid, ri)
    for row in neighbour_rows(grid, home):
        if row < 0:
            continue
        for x in axis_neighbours(grid, 0, home[0]):
            if x < 0:
                continue
            cell = rank[row + x] if len(rank) else row + x
            for k in range(start[cell], start[cell + 1]):
                j = k if order is None else order[k]
                if j != i:
                    dr = displacement(grid, ri, load(pos, j, grid))
                    acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    finish(out, grid, i, ri, vi, result(law, ri, vi, acc))


@inlined
def fold_rows(grid, i, pos, vel, start, rank, order, division, reach, keep2, near, law, out):
    """Compute out[i], the law folded over the particles in the rows of cells within reach.

    `near` has room for all rows and `WIDTH` more: the slots closer than the square root of `keep2` are
    listed in it first. The other arguments are those of `slots_within`.
    """
    ri, vi = load(pos, i, grid), load(vel, i, grid)
    acc = initial(law, ri)
    found, plain = slots_within(grid, division, reach, keep2, i, ri, pos, start, rank, order, near)
    for k in range(found):
        j = near[at(k)]
        dr = separation(grid, plain, ri, load(pos, at(j), grid))
        acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    finish(out, grid, i, ri, vi, result(law, ri, vi, acc))
