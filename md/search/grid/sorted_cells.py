"""Base classes of the searches that sort by cell at every step: the particles in memory, or a list of slots.

Green, Particle Simulation using CUDA, NVIDIA (2010). A derived class stands in the file of its kernels.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from md import checks
from md.particles.cell_rows import checked, divided, reach_of
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.search.base import Search, SearchConfig
from md.search.partners import CollectPartners
from sfc import Curve


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

    def __init__(self, config: SortedCells, system: System):
        super().__init__(config, system, divided(system.grid, config.division))
        self._sort = CellSort(config.cell_order, self.particles.n, self.grid, self.backend)

    def build(self) -> None:
        """Sort the particles in memory, or the list of their slots, by the rank of the cell."""
        if self.capabilities.moves_particles:
            self._sort.apply(self.particles)
        else:
            self._sort.find(self.particles.pos)

    def structure(self) -> tuple[Any, ...]:
        """Return the first entry of each cell by rank, the ranks of the cells, and the slots if in a list."""
        s = self._sort
        return (s.start, s.table) if self.capabilities.moves_particles else (s.start, s.rank, s.order)

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        division = cast(SortedCells, self.config).division
        if division is None:
            super()._fold(law, parameters, out)
            return
        p, s, g = self.particles, self._sort, self.grid
        vel, constants = self._velocities(law)
        reach = reach_of(g)
        keep2 = type(reach)(np.inf) if isinstance(law, CollectPartners) else reach * reach
        work, order = ((), ()) if self.capabilities.moves_particles else ((p.work,), (s.order,))
        self.backend.kernels(type(self).__module__, law, constants).force_rows(
            p.n, p.pos, vel, *work, s.start, s.table, *order, division, reach, keep2,
            4 * self.backend.workers, g.record, parameters, out,
        )  # fmt: skip
