"""Halo: copies (ghosts) of the particles around those that a rank owns, and their update at each step.

Which cells are ghosts of which rank follows from the partition alone. The rows of a rank are in this order:
owned particles of border cells, which other ranks have as ghosts; other owned particles; ghosts by owner.
Those of an owner are in the order in which it has them, so that what it sends is copied as a whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from md.domain.communicator import Communicator
from md.domain.partition import Partition, around
from md.particles.arrays import ParticleArrays
from sfc.compile import kernel


class Message(NamedTuple):
    """What ranks say beside the rows: the first row of each message.

    Attributes:
        stride: largest displacement of an owned particle in the last step, in d.
        deadline: steps until all ranks migrate.
        build: steps until all ranks build the structure of their search, in one step, since each waits for
            the others; before it all ghosts are updated.
        end: steps until all ranks end with an error of one.
    """

    stride: float
    deadline: int
    build: int
    end: int


class Halo:
    """Border and ghosts of a rank.

    Args:
        partition: of the box.
        communicator: of the ranks.
        place: (cells,) place of each cell in memory; None for that along the order of the partition.

    Attributes:
        peers: ranks that have ghosts of this one, and it of them; ascending.
        table: (cells,) int32 key by which owned particles are sorted: the place of their cell among the owned
            ones, those of border cells first, together if they are ghosts of the same peers; the number of
            cells for those of other ranks.
        borders: number of border cells.
        rows: peer -> (m,) rows of the particles that it has as ghosts.
        ghosts: peer -> rows of its particles that are ghosts here.
    """

    def __init__(self, partition: Partition, communicator: Communicator, place: np.ndarray | None = None):
        self._communicator, grid, me = communicator, partition.grid, communicator.rank
        shape, periodic = grid.shape, grid.box.periodic
        own = partition.owner == me
        near = around(own, shape, periodic) & ~own
        self.peers = np.flatnonzero(np.bincount(partition.owner[near])).tolist()
        self._borders = {rank: around(partition.owner == rank, shape, periodic) & own for rank in self.peers}
        is_border = np.zeros(grid.size, bool)
        for border in self._borders.values():
            is_border |= border
        self.borders = int(is_border.sum())
        along = np.empty(grid.size, np.int32)
        along[partition.place if place is None else place] = np.arange(grid.size, dtype=np.int32)
        along = along[own[along]]
        cells = along[is_border[along]]
        if len(self.peers):
            # Border cells of the same peers are together: what a peer gets is in few pieces of memory.
            of_peers = np.packbits([self._borders[rank][cells] for rank in self.peers], axis=0)
            cells = cells[np.argsort(np.unique(of_peers, axis=1, return_inverse=True)[1], kind="stable")]
        self.table = np.full(grid.size, grid.size, np.int32)
        self.table[cells] = np.arange(len(cells), dtype=np.int32)
        self.table[along[~is_border[along]]] = np.arange(len(cells), len(along), dtype=np.int32)
        self.rows: dict[int, np.ndarray] = {}
        self.ghosts: dict[int, np.ndarray] = {}

    def places(self, rank: int) -> np.ndarray:
        """Return the places, in the order of `table`, of the border cells that a peer has as ghosts."""
        return np.sort(self.table[self._borders[rank]])

    def list_border(self, cells: np.ndarray) -> None:
        """List the rows that each peer has as ghosts.

        Args:
            cells: row-major number of the cell of each particle of the border, the first rows.
        """
        self.rows = {rank: np.flatnonzero(border[cells]) for rank, border in self._borders.items()}

    def place_ghosts(self, owned: int, counts: dict[int, int], particles: ParticleArrays) -> None:
        """Place the ghosts after the owned particles.

        Args:
            owned: number of owned particles.
            counts: peer -> number of its particles that are ghosts here.
            particles: of the rank.
        """
        self._owned, row = owned, owned
        for rank in self.peers:
            self.ghosts[rank] = np.arange(row, row + counts.get(rank, 0))
            row += counts.get(rank, 0)
        dim, precision = particles.box.dim, particles.pos.dtype
        self._every = Rows(self.rows, self.ghosts, dim, precision)
        self._named: Rows | None = None

    def rows_moved(self, moved: np.ndarray) -> None:
        """Find the rows again after they were permuted; what is sent keeps its order.

        Args:
            moved: (rows,) int32 new row of each row.
        """
        every = [self._every] if self._named is None else [self._every, self._named]
        for some in every:
            for rows in (some.rows, some.ghosts):
                rows.update({rank: moved[one] for rank, one in rows.items()})

    def name(self, is_named: np.ndarray) -> None:
        """Tell the peers which ghosts are needed until the search is built again.

        Args:
            is_named: (ghosts,) uint8, 1 for the rows that are needed.
        """
        asked = {rank: is_named[rows - self._owned] for rank, rows in self.ghosts.items()}
        found = {rank: np.empty(len(rows), np.uint8) for rank, rows in self.rows.items()}
        self._communicator.exchange(asked, found)
        rows = {rank: rows[found[rank] == 1] for rank, rows in self.rows.items()}
        ghosts = {rank: rows[asked[rank] == 1] for rank, rows in self.ghosts.items()}
        self._named = Rows(rows, ghosts, self._every.dim, self._every.precision)

    def refresh(self, particles: ParticleArrays, said: Message, is_whole: bool) -> Message:
        """Send positions and velocities of border rows, and store those of the ghosts.

        Args:
            particles: of this rank; the ghosts are updated.
            said: by this rank.
            is_whole: whether all ghosts are updated, on all ranks, and not those alone that were named.

        Returns:
            The largest stride of this rank and its peers, and the nearest deadline, build and end.
        """
        pos, vel = particles.pos, particles.vel
        some = self._every if is_whole or self._named is None else self._named
        for rank, rows in some.rows.items():
            some.sent[rank][0, :4] = said
            pack(rows, pos, vel, some.sent[rank])
        self._communicator.exchange(some.sent, some.found)
        stride, *steps = said
        for rank, rows in some.ghosts.items():
            found = some.found[rank]
            stride = max(stride, float(found[0, 0]))
            steps = [min(one, int(other)) for one, other in zip(steps, found[0, 1:4], strict=True)]
            unpack(found, rows, pos, vel)
        return Message(stride, *steps)


class Rows:
    """Rows that are sent to peers, and ghosts that are received, with their messages.

    Args:
        rows: peer -> rows that it has as ghosts.
        ghosts: peer -> rows of the ghosts that it owns.
        dim: of the box.
        precision: of positions.
    """

    def __init__(self, rows: dict[int, np.ndarray], ghosts: dict[int, np.ndarray], dim: int, precision: Any):
        self.rows, self.ghosts, self.dim, self.precision = rows, ghosts, dim, precision
        self.sent, self.found = (
            {rank: np.empty((1 + len(some), 2 * dim), precision) for rank, some in them.items()}
            for them in (rows, ghosts)
        )


@kernel(parallel=True)
def pack(rows, pos, vel, out):
    """Copy rows of positions and velocities to `out`, after its first row."""
    for k in numba.prange(len(rows)):
        for axis in range(pos.shape[1]):
            out[k + 1, axis] = pos[rows[k], axis]
            out[k + 1, pos.shape[1] + axis] = vel[rows[k], axis]


@kernel(parallel=True)
def unpack(found, rows, pos, vel):
    """Copy positions and velocities after the first row of `found` to rows."""
    for k in numba.prange(len(rows)):
        for axis in range(pos.shape[1]):
            pos[rows[k], axis] = found[k + 1, axis]
            vel[rows[k], axis] = found[k + 1, pos.shape[1] + axis]
