"""Partition of a box among ranks: chunks of cells along an ordering, cut by prefix sums of weights.

Or any owners of the cells, by a function of their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse.csgraph import shortest_path

from md.particles.box import Box
from md.particles.cell_grid import CellGrid
from sfc import Curve, covering

Owners = Callable[[tuple[int, ...], Box, np.ndarray, int], np.ndarray]  # see `md.Division`


class Partition:
    """Owner of each cell of a box.

    The cells are in the order of a curve or another ordering, and each rank owns a chunk of them. Slabs are
    chunks of the order "row".

    Args:
        order: of the cells: a name of `sfc.orderings(dim)` or a curve.
        grid: the cells.
        ranks: number of ranks.
        owners: function that divides the cells, as in `md.Division`; None for chunks of the order.

    Attributes:
        grid, ranks: as given.
        place: (cells,) int64, place of each cell along the order, by row-major number.
        owner: (cells,) int32, rank that owns each cell; by `cut`.

    Raises:
        TypeError: owners that are no integers.
        ValueError: more ranks than cells, an unknown ordering, one of another dimension, or owners out of
            range.
    """

    def __init__(self, order: str | Curve, grid: CellGrid, ranks: int, owners: Owners | None = None):
        if ranks > grid.size:
            raise ValueError(
                f"{ranks} ranks for {grid.size} cells of side {grid.cutoff:g} in a box of "
                f"{grid.box.lengths}; allowed: up to {grid.size} ranks; take fewer, or a larger box"
            )
        self.grid, self.ranks, self._owners = grid, ranks, owners
        self._diameter: int | None = None
        self.place = covering(order, grid.shape).dense_ranks().astype(np.int64)
        self.cut()

    def cut(self, weights: np.ndarray | None = None) -> None:
        """Give each rank cells of about the same weight, and one at least.

        Args:
            weights: (cells,) of each cell by row-major number, 0 or more: of its particles, or their time;
                None for equal ones.
        """
        self._diameter = None
        if self._owners is None:
            self.owner = chunks(self.place, weights, self.ranks)
        else:
            weights = np.ones(self.grid.size) if weights is None else weights
            found = self._owners(self.grid.shape, self.grid.box, weights, self.ranks)
            self.owner = checked_owners(found, self.grid.size, self.ranks)

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


def chunks(place: np.ndarray, weights: np.ndarray | None, ranks: int) -> np.ndarray:
    """Return the owners of chunks of about the same weight along an order, of one cell at least.

    Args:
        place: (cells,) integers, place of each cell along the order, by row-major number.
        weights: (cells,) of each cell, 0 or more; None for equal ones.
        ranks: number of chunks, up to that of cells.

    Returns:
        (cells,) int32 rank of each cell, by row-major number.
    """
    first = np.arange(1, ranks)
    if weights is None:
        cuts = np.ceil(len(place) * first / ranks - 0.5).astype(np.int64)
    else:
        along = np.empty(len(place))
        along[place] = weights
        ends = np.cumsum(along)
        cuts = np.searchsorted(ends - along / 2, along.sum() * first / ranks)
    cuts = np.maximum.accumulate(np.maximum(cuts, first) - first) + first  # one cell each
    cuts = np.minimum(cuts, len(place) - ranks + first)
    return np.repeat(np.arange(ranks, dtype=np.int32), np.diff([0, *cuts, len(place)]))[place]


def checked_owners(found: np.ndarray, cells: int, ranks: int) -> np.ndarray:
    """Return owners of cells as (cells,) int32, if each cell has one, and each rank a cell.

    Args:
        found: what a function of `md.Division(owners=)` has returned.
        cells: number of cells.
        ranks: number of ranks.

    Raises:
        TypeError: no integers.
        ValueError: another shape, a rank that does not exist, or one without a cell.
    """
    owner, name = np.asarray(found), "owners of Division"
    if owner.dtype.kind not in "iu":
        allowed = f"({cells},) integers, the rank of each cell by row-major number"
        raise TypeError(f"{name} returned {owner.dtype}; allowed: {allowed}")
    if owner.shape != (cells,):
        raise ValueError(f"{name} returned shape {owner.shape}; allowed: ({cells},), a rank for each cell")
    if owner.min() < 0 or owner.max() >= ranks:
        wrong = int(owner[(owner < 0) | (owner >= ranks)][0])
        raise ValueError(f"{name} returned rank {wrong}; allowed: 0 to {ranks - 1}, of {ranks} ranks")
    if (empty := np.flatnonzero(np.bincount(owner, minlength=ranks) == 0)).size:
        raise ValueError(
            f"{name} returned no cell of rank {empty[0]}; allowed: one cell or more of each of {ranks} "
            "ranks; give it one that is empty"
        )
    return owner.astype(np.int32)


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
