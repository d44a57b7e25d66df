"""Halo: copies (ghosts) of the particles around those that a rank owns, and their update at each step.

Which cells are ghosts of which rank follows from the partition alone. The ghosts of a rank follow its owned
particles. A migration sorts these by cell, those of border cells first, which other ranks have as ghosts. On
the CPU lists sort the owned rows, and the ghosts, by cells of their own at each build, and later migrations
keep that order. What is sent keeps the order that it had at the migration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from md.domain.communicator import Communicator
from md.domain.partition import Partition, around
from md.particles.arrays import ParticleArrays
from sfc.compile import kernel

HEAD = -1  # in place of the row of the first line of a message


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
            ones, those of border cells first, together if they are ghosts of the same peers; their number for
            those of other ranks.
        cells, borders: number of the own cells, and of the border cells among them.
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
        self.cells, cells = len(along), along[is_border[along]]
        if len(self.peers):
            # Border cells of the same peers are together: what a peer gets is in few pieces of memory.
            of_peers = np.packbits([self._borders[rank][cells] for rank in self.peers], axis=0)
            cells = cells[np.argsort(np.unique(of_peers, axis=1, return_inverse=True)[1], kind="stable")]
        self.table = np.full(grid.size, len(along), np.int32)
        self.table[cells] = np.arange(len(cells), dtype=np.int32)
        self.table[along[~is_border[along]]] = np.arange(len(cells), len(along), dtype=np.int32)

    def places(self, rank: int) -> np.ndarray:
        """Return the places, in the order of `table`, of the border cells that a peer has as ghosts."""
        return np.sort(self.table[self._borders[rank]])

    def border_of(self, cells: np.ndarray) -> dict[int, np.ndarray]:
        """Return which particles each peer has as ghosts, by peer.

        Args:
            cells: row-major number of the cell of each particle.
        """
        return {rank: np.flatnonzero(border[cells]) for rank, border in self._borders.items()}

    def place_ghosts(
        self, border: dict[int, np.ndarray], owned: int, counts: dict[int, int], particles: ParticleArrays
    ) -> None:
        """Place the ghosts after the owned particles.

        Args:
            border: peer -> rows that it has as ghosts.
            owned: number of owned particles.
            counts: peer -> number of its particles that are ghosts here.
            particles: of the rank.
        """
        self._owned, row, ghosts = owned, owned, {}
        for rank in self.peers:
            ghosts[rank] = np.arange(row, row + counts.get(rank, 0))
            row += counts.get(rank, 0)
        self._layout = particles.box.dim, particles.pos.dtype
        self._every = Rows(border, *self._layout), Rows(ghosts, *self._layout)
        self._named: tuple[Rows, Rows] | None = None

    def rows_moved(self, moved: np.ndarray) -> None:
        """Find the rows again after they were permuted; what is sent keeps its order.

        Args:
            moved: (rows,) int32 new row of each row.
        """
        named = self._named or ()  # used again, if this rank alone has sorted its rows
        for some in (*self._every, *named):
            some.move(moved)

    def name(self, is_named: np.ndarray) -> None:
        """Tell the peers which ghosts are needed until the search is built again.

        Args:
            is_named: (ghosts,) uint8, 1 for the rows that are needed.
        """
        border, ghosts = ({rank: some.rows_of(rank) for rank in some.messages} for some in self._every)
        asked = {rank: is_named[rows - self._owned] for rank, rows in ghosts.items()}
        found = {rank: np.empty(len(rows), np.uint8) for rank, rows in border.items()}
        self._communicator.exchange(asked, found)
        border = {rank: rows[found[rank] == 1] for rank, rows in border.items()}
        ghosts = {rank: rows[asked[rank] == 1] for rank, rows in ghosts.items()}
        self._named = Rows(border, *self._layout), Rows(ghosts, *self._layout)

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
        border, ghosts = self._every if is_whole or self._named is None else self._named
        for message in border.messages.values():
            message[0, :4] = said
        pack(border.rows, pos, vel, border.lines)
        self._communicator.exchange(border.messages, ghosts.messages)
        stride, *steps = said
        for message in ghosts.messages.values():
            stride = max(stride, float(message[0, 0]))
            steps = [min(one, int(other)) for one, other in zip(steps, message[0, 1:4], strict=True)]
        unpack(ghosts.lines, ghosts.rows, pos, vel)
        return Message(stride, *steps)


class Rows:
    """Rows of which positions and velocities travel to peers, or come from them, and the messages.

    Args:
        rows: peer -> (m,) its rows.
        dim: of the box.
        precision: of positions.

    Attributes:
        rows: (lines,) int32 row of each line; `HEAD` for the first line of a message, see `Message`.
        lines: (lines, 2 * dim) position and velocity of each row.
        messages: peer -> its lines.
    """

    def __init__(self, rows: dict[int, np.ndarray], dim: int, precision: Any):
        parts = [part for some in rows.values() for part in ([HEAD], some)]
        self.rows = np.concatenate([[], *parts], dtype=np.int32, casting="unsafe")
        self.lines = np.empty((len(self.rows), 2 * dim), precision)
        ends = np.cumsum([1 + len(some) for some in rows.values()]).tolist()
        self._parts = {
            rank: slice(end - 1 - len(some), end)
            for (rank, some), end in zip(rows.items(), ends, strict=True)
        }
        self.messages = {rank: self.lines[part] for rank, part in self._parts.items()}

    def rows_of(self, rank: int) -> np.ndarray:
        """Return the rows of a peer."""
        return self.rows[self._parts[rank]][1:]

    def move(self, moved: np.ndarray) -> None:
        """Take the new row, (rows,) int32, of each row."""
        is_row = self.rows != HEAD
        self.rows[is_row] = moved[self.rows[is_row]]


@kernel(parallel=True)
def pack(rows, pos, vel, lines):
    """Copy positions and velocities of rows to their lines."""
    for k in numba.prange(len(rows)):
        if rows[k] != HEAD:
            for axis in range(pos.shape[1]):
                lines[k, axis] = pos[rows[k], axis]
                lines[k, pos.shape[1] + axis] = vel[rows[k], axis]


@kernel(parallel=True)
def unpack(lines, rows, pos, vel):
    """Copy positions and velocities of lines to their rows."""
    for k in numba.prange(len(rows)):
        if rows[k] != HEAD:
            for axis in range(pos.shape[1]):
                pos[rows[k], axis] = lines[k, axis]
                vel[rows[k], axis] = lines[k, pos.shape[1] + axis]
