"""Region of a rank: cells in which its particles and ghosts are until the box is cut again."""

from __future__ import annotations

import numpy as np

from md.domain.partition import Partition, around
from md.particles.cell_grid import CellGrid


class Region:
    """Cells of a partition in which particles of a rank and its ghosts are, or to which they travel.

    These are its own cells, those of the ghosts around them, and the next ones: a particle travels less than
    the width of a cell before particles migrate, or the run ends with `HaloOutrun` some steps later.

    Args:
        partition: of the box, as it is cut now.
        rank: number of the rank.
    """

    def __init__(self, partition: Partition, rank: int):
        self._shape, periodic = partition.grid.shape, partition.grid.box.periodic
        self._cells = partition.owner == rank
        for _ in range(2):
            self._cells = around(self._cells, self._shape, periodic)

    def cells_of(self, grid: CellGrid) -> np.ndarray:
        """Return which cells of a grid of the same box the region overlaps: (cells,) bool by number."""
        found = self._cells.reshape(self._shape[::-1])  # axis 0 of the box is the last
        for axis, (coarse, fine) in enumerate(zip(self._shape[::-1], grid.shape[::-1], strict=True)):
            cell = np.arange(fine)
            first, last = cell * coarse // fine, ((cell + 1) * coarse - 1) // fine
            over = found.take(first, axis)
            for k in range(1, 1 + int((last - first).max())):
                over |= found.take(np.minimum(first + k, last), axis)
            found = over
        return found.reshape(-1)
