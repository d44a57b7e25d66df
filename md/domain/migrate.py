"""Migration: each particle goes to the rank that owns its cell, and ranks tell their peers the new ghosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from md.domain.communicator import Communicator
from md.domain.halo import Halo
from md.domain.partition import Partition
from md.particles.arrays import ParticleArrays


@dataclass
class Moved:
    """Particles of a rank after a migration.

    Attributes:
        arrived: records of those that have come from other ranks.
        order: (owned,) int32 rows of the owned particles in their new order; those of `arrived` follow the
            owned rows of before.
        ghosts: records of the ghosts.
    """

    arrived: np.ndarray
    order: np.ndarray
    ghosts: np.ndarray


def cells_of(partition: Partition, pos: np.ndarray) -> np.ndarray:
    """Return the (n,) int32 row-major number of the cell of each position."""
    grid, backend = partition.grid, partition.grid.backend
    keys = backend.empty(len(pos), np.int32)
    grid.keys(pos, backend.empty(0, np.int32), keys)
    return backend.download(keys) if backend.runs_ahead else keys


def migrate(
    particles: ParticleArrays, cells: np.ndarray, partition: Partition, halo: Halo, communicator: Communicator
) -> Moved:
    """Send each owned particle to the rank that owns its cell, and list the border and the ghosts.

    Args:
        particles: of this rank; the ghosts among them are not read.
        cells: (owned,) int32 number of the cell of each owned particle.
        partition: of the box.
        halo: of this rank; its rows and ghosts are set.
        communicator: of the ranks.

    Returns:
        What `ParticleArrays.take_over` stores.
    """
    me, backend = communicator.rank, particles.backend
    leaving = np.flatnonzero(partition.owner[cells] != me)
    owner = partition.owner[cells[leaving]]
    owners = np.flatnonzero(np.bincount(owner)).tolist()
    leavers = {rank: particles.records(leaving[owner == rank]) for rank in owners}
    none = particles.records(leaving[:0])
    found = communicator.send_rows(leavers or {me: none})
    arrived = np.concatenate([none, *(found[rank] for rank in sorted(found))])
    cells = np.concatenate([cells, cells_of(partition, np.ascontiguousarray(arrived["pos"]))])
    bins = len(halo.table) + 1  # the last one is of those that have left
    keys, order = halo.table[cells], backend.empty(len(cells), np.int32)
    start = backend.empty(bins + 1, np.int32)
    backend.sort(keys, start, order, backend.sort_scratch(len(cells), bins))
    order = order[: len(cells) - len(leaving)]
    halo.list_border(cells[order[: start[halo.borders]]])
    pick = {rank: particles.records(order[rows], arrived) for rank, rows in halo.rows.items()}
    ghosts = communicator.send_rows(pick or {me: none})
    halo.place_ghosts(len(order), {rank: len(rows) for rank, rows in ghosts.items()}, particles)
    return Moved(
        arrived, order, np.concatenate([none, *(ghosts[rank] for rank in halo.peers if rank in ghosts)])
    )
