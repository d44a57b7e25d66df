"""Halo: copies (ghosts) of the particles around those that a rank owns, and their update at each step.

Which cells are ghosts of which rank follows from the partition alone. The rows of a rank are in this order:
owned particles of border cells, which other ranks have as ghosts; other owned particles; ghosts by owner.
Those of an owner are in the order in which it has them, so that what it sends is copied as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from md.communicator import Communicator
from md.domain.partition import Partition, around
from md.particles.arrays import ParticleArrays
from sfc.compile import kernel


class Message(NamedTuple):
    """What ranks say beside the rows: the first row of each message.

    Attributes:
        stride: largest displacement of an owned particle in the last step, in d.
        deadline: steps until all ranks migrate.
        builds: whether the search is rebuilt before the next step. Ranks that others wait for do that in one
            step.
    """

    stride: float
    deadline: int
    builds: bool


class Halo:
    """Border and ghosts of a rank.

    Args:
        partition: of the box.
        communicator: of the ranks.

    Attributes:
        peers: ranks that have ghosts of this one, and it of them; ascending.
        table: (cells,) int32 key by which owned particles are sorted: the place of their cell among the owned
            ones, those of border cells first; the number of cells for those of other ranks.
        borders: number of border cells.
        rows: peer -> (m,) rows of the particles that it has as ghosts.
        ghosts: peer -> first of its ghosts' rows, and the row after the last.
    """

    def __init__(self, partition: Partition, communicator: Communicator):
        self._communicator, grid, me = communicator, partition.grid, communicator.rank
        shape, periodic = grid.shape, grid.box.periodic
        own = partition.owner == me
        near = around(own, shape, periodic) & ~own
        self.peers = [int(rank) for rank in np.unique(partition.owner[near])]
        self._borders = {rank: around(partition.owner == rank, shape, periodic) & own for rank in self.peers}
        is_border = np.zeros(grid.size, bool)
        for border in self._borders.values():
            is_border |= border
        self.borders = int(is_border.sum())
        cells = np.flatnonzero(own)
        along = np.lexsort((partition.place[cells], ~is_border[cells]))
        self.table = np.full(grid.size, grid.size, np.int32)
        self.table[cells[along]] = np.arange(len(cells))
        self.rows: dict[int, np.ndarray] = {}
        self.ghosts: dict[int, tuple[int, int]] = {}
        self._out: dict[int, np.ndarray] = {}
        self._in: dict[int, np.ndarray] = {}

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
        row, dim, precision = owned, particles.box.dim, particles.pos.dtype
        for rank in self.peers:
            self.ghosts[rank] = row, row + counts.get(rank, 0)
            row = self.ghosts[rank][1]
        self._out = {rank: np.empty((1 + len(rows), 2 * dim), precision) for rank, rows in self.rows.items()}
        self._in = {
            rank: np.empty((1 + last - first, 2 * dim), precision)
            for rank, (first, last) in self.ghosts.items()
        }

    def refresh(self, particles: ParticleArrays, said: Message) -> Message:
        """Send positions and velocities of border rows, and store those of the ghosts.

        Args:
            particles: of this rank; the ghosts are updated.
            said: by this rank.

        Returns:
            The largest stride of this rank and its peers, the nearest deadline, and whether one builds.
        """
        pos, vel = particles.pos, particles.vel
        for rank, rows in self.rows.items():
            self._out[rank][0, :3] = said
            pack(rows, pos, vel, self._out[rank])
        self._communicator.exchange(self._out, self._in)
        stride, deadline, builds = said
        for rank, (first, _) in self.ghosts.items():
            found = self._in[rank]
            stride, deadline = max(stride, float(found[0, 0])), min(deadline, int(found[0, 1]))
            builds = builds or bool(found[0, 2])
            unpack(found, first, pos, vel)
        return Message(stride, deadline, builds)


@kernel(parallel=True)
def pack(rows, pos, vel, out):
    """Copy rows of positions and velocities to `out`, after its first row."""
    for k in numba.prange(len(rows)):
        for axis in range(pos.shape[1]):
            out[k + 1, axis] = pos[rows[k], axis]
            out[k + 1, pos.shape[1] + axis] = vel[rows[k], axis]


@kernel(parallel=True)
def unpack(found, first, pos, vel):
    """Copy positions and velocities after the first row of `found` to rows from `first` on."""
    for k in numba.prange(len(found) - 1):
        for axis in range(pos.shape[1]):
            pos[first + k, axis] = found[k + 1, axis]
            vel[first + k, axis] = found[k + 1, pos.shape[1] + axis]
