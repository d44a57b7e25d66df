"""Migration: each particle goes to the rank that owns its cell, and ranks tell their peers the new ghosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from md.domain.communicator import Communicator
from md.domain.halo import Halo
from md.domain.partition import Partition
from md.particles.arrays import ParticleArrays


class Located(NamedTuple):
    """Cells of the owned particles of a rank.

    Attributes:
        keys: (owned,) int32 entry of `Halo.table` for each.
        leaving: rows of those in cells of other ranks.
        owner: rank that owns the cell of each of these.
    """

    keys: np.ndarray
    leaving: np.ndarray
    owner: np.ndarray


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


def cells_of(partition: Partition, pos: np.ndarray, table: np.ndarray | None = None) -> np.ndarray:
    """Return the (n,) int32 row-major number of the cell of each position, or the entry of a table for it."""
    grid, backend = partition.grid, partition.grid.backend
    keys = backend.empty(len(pos), np.int32)
    grid.keys(pos, backend.empty(0, np.int32) if table is None else table, keys)
    return backend.download(keys) if backend.runs_ahead else keys


def locate(particles: ParticleArrays, partition: Partition, halo: Halo) -> Located:
    """Find the cells of the owned particles, and those that leave."""
    keys = cells_of(partition, particles.pos[: particles.n], halo.table)
    leaving = np.flatnonzero(keys == halo.cells)
    return Located(keys, leaving, partition.owner[cells_of(partition, particles.pos[leaving])])


def migrate(
    particles: ParticleArrays,
    located: Located,
    partition: Partition,
    halo: Halo,
    communicator: Communicator,
    sorts: bool = True,
) -> Moved:
    """Send each owned particle to the rank that owns its cell, and list the border and the ghosts.

    Args:
        particles: of this rank; the ghosts among them are not read.
        located: as from `locate`.
        partition: of the box.
        halo: of this rank; its border and ghosts are set.
        communicator: of the ranks.
        sorts: whether the owned particles are sorted by the place of their cell; else they keep their order,
            and those that arrive follow them.

    Returns:
        What `ParticleArrays.take_over` stores.
    """
    me, backend = communicator.rank, particles.backend
    keys, leaving, owner = located
    owners = np.flatnonzero(np.bincount(owner)).tolist()
    leavers = {rank: particles.records(leaving[owner == rank]) for rank in owners}
    none = particles.records(leaving[:0])
    found = communicator.send_rows(leavers or {me: none})
    arrived = np.concatenate([none, *(found[rank] for rank in sorted(found))])
    keys = np.concatenate([keys, cells_of(partition, np.ascontiguousarray(arrived["pos"]), halo.table)])
    if sorts:
        bins = halo.cells + 1  # the last one is of those that have left
        order, start = backend.empty(len(keys), np.int32), backend.empty(bins + 1, np.int32)
        backend.sort(keys, start, order, backend.sort_scratch(len(keys), bins))
        order = order[: len(keys) - len(leaving)]
        rows = np.arange(start[halo.borders])
    else:
        order = np.delete(np.arange(len(keys), dtype=np.int32), leaving)
        rows = np.flatnonzero(np.delete(keys, leaving) < halo.borders)
    border = particles.records(order[rows], arrived)
    seen = halo.border_of(cells_of(partition, np.ascontiguousarray(border["pos"])))
    pick = {rank: border.take(some) for rank, some in seen.items()}
    seen = {rank: rows[some] for rank, some in seen.items()}
    ghosts = communicator.send_rows(pick or {me: none})
    halo.place_ghosts(seen, len(order), {rank: len(rows) for rank, rows in ghosts.items()}, particles)
    return Moved(
        arrived, order, np.concatenate([none, *(ghosts[rank] for rank in halo.peers if rank in ghosts)])
    )
