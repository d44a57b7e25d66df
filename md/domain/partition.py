"""Partition of a box among ranks: chunks of cells along an ordering, cut by prefix sums of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse.csgraph import shortest_path

from md.particles.cell_grid import CellGrid
from sfc import Curve, covering


class Partition:
    """Owner of each cell of a box.

    The cells are in the order of a curve or another ordering, and each rank owns a chunk of them. Slabs are
    chunks of the order "row".

    Args:
        order: of the cells: a name of `sfc.orderings(dim)` or a curve.
        grid: the cells.
        ranks: number of ranks.

    Attributes:
        grid, ranks: as given.
        place: (cells,) int64, place of each cell along the order, by row-major number.
        owner: (cells,) int32, rank that owns each cell; by `cut`.

    Raises:
        ValueError: more ranks than cells, an unknown ordering, or one of another dimension.
    """

    def __init__(self, order: str | Curve, grid: CellGrid, ranks: int):
        if ranks > grid.size:
            raise ValueError(
                f"{ranks} ranks for {grid.size} cells of side {grid.cutoff:g} in a box of "
                f"{grid.box.lengths}; allowed: up to {grid.size} ranks; take fewer, or a larger box"
            )
        self.grid, self.ranks = grid, ranks
        self._diameter: int | None = None
        self.place = covering(order, grid.shape).dense_ranks().astype(np.int64)
        self.cut(np.ones(grid.size))

    def cut(self, weights: np.ndarray) -> None:
        """Give each rank a chunk of about the same weight, and one cell at least.

        Args:
            weights: (cells,) of each cell by row-major number, 0 or more: of its particles, or their time.
        """
        along = np.empty(self.grid.size)
        along[self.place] = weights
        middles = np.cumsum(along) - along / 2
        wanted = along.sum() * np.arange(1, self.ranks) / self.ranks
        cuts = np.searchsorted(middles, wanted)
        first = np.arange(1, self.ranks)
        cuts = np.maximum.accumulate(np.maximum(cuts, first) - first) + first  # one cell each
        cuts = np.minimum(cuts, self.grid.size - self.ranks + first)
        sizes, self._diameter = np.diff([0, *cuts, self.grid.size]), None
        self.owner = np.repeat(np.arange(self.ranks, dtype=np.int32), sizes)[self.place]

    @property
    def diameter(self) -> int:
        """Number of times that ranks tell their neighbours what one says, until all have heard of it."""
        if self._diameter is None:
            shape, periodic = self.grid.shape, self.grid.box.periodic
            links = np.zeros((self.ranks, self.ranks))
            for rank in range(self.ranks):
                links[rank, self.owner[around(self.owner == rank, shape, periodic)]] = 1
            self._diameter = int(shortest_path(links, unweighted=True).max())
        return self._diameter

    @property
    def ghosts(self) -> int:
        """Number of cells with ghosts, of the rank with most."""
        shape, periodic = self.grid.shape, self.grid.box.periodic
        own = (self.owner == rank for rank in range(self.ranks))
        return max(int((around(one, shape, periodic) & ~one).sum()) for one in own)


def around(cells: np.ndarray, shape: Sequence[int], periodic: Sequence[bool]) -> np.ndarray:
    """Return the cells that are among some, or adjacent to one: on a face, an edge or a corner.

    Args:
        cells: (cells,) bools by row-major number.
        shape: cells along each axis.
        periodic: by axis.
    """
    found = cells.reshape(tuple(shape)[::-1])  # axis 0 of the box is the last
    for axis, wraps in zip(range(found.ndim - 1, -1, -1), periodic, strict=True):
        before, after = np.roll(found, 1, axis), np.roll(found, -1, axis)
        if not wraps:
            np.moveaxis(before, axis, 0)[0] = False
            np.moveaxis(after, axis, 0)[-1] = False
        found = found | before | after
    return found.reshape(-1)
