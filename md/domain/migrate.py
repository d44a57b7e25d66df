"""Migration: each particle goes to the rank that owns its cell, and ranks tell their peers the new ghosts."""

from __future__ import annotations

import numpy as np

from md.communicator import Communicator
from md.domain.halo import Halo
from md.domain.partition import Partition
from md.particles.arrays import ParticleArrays


def record_of(particles: ParticleArrays) -> np.dtype:
    """Return the dtype of a particle that travels: position, velocity, id, and radius if there are radii."""
    dim, real = particles.box.dim, particles.pos.dtype
    fields = [("pos", real, (dim,)), ("vel", real, (dim,)), ("id", np.int32)]
    return np.dtype([*fields, ("radius", real)] if len(particles.radius) else fields)


def records(particles: ParticleArrays, rows: np.ndarray) -> np.ndarray:
    """Copy particles into records.

    Args:
        particles: arrays.
        rows: (m,) numbers of rows.
    """
    found = np.empty(len(rows), record_of(particles))
    for name in found.dtype.names or ():
        found[name] = getattr(particles, name)[rows]
    return found


def cells_of(partition: Partition, pos: np.ndarray) -> np.ndarray:
    """Return the (n,) row-major number of the cell of each position."""
    grid = partition.grid
    keys = np.empty(len(pos), np.int32)
    grid.keys(pos, grid.backend.empty(0, np.int32), keys)
    return keys


def migrate(
    particles: ParticleArrays, partition: Partition, halo: Halo, communicator: Communicator
) -> tuple[np.ndarray, int]:
    """Send each owned particle to the rank that owns its cell, and list the border and the ghosts.

    Args:
        particles: of this rank; the ghosts among them are not read.
        partition: of the box.
        halo: of this rank; its rows and ghosts are set.
        communicator: of the ranks.

    Returns:
        Records of all rows, and the number of owned particles.
    """
    pos = particles.pos[: particles.n]
    owner = partition.owner[cells_of(partition, pos)]
    me = communicator.rank
    leavers = {rank: np.flatnonzero(owner == rank) for rank in range(communicator.size) if rank != me}
    arrived = communicator.send_rows(
        {rank: records(particles, rows) for rank, rows in leavers.items()}
        or {me: records(particles, owner[:0])}
    )
    kept = records(particles, np.flatnonzero(owner == me))
    owned = np.concatenate([kept, *(arrived[rank] for rank in sorted(arrived))])
    cells = cells_of(partition, np.ascontiguousarray(owned["pos"]))
    place = partition.place[cells] + np.where(halo.is_border[cells], 0, partition.grid.size)
    order = np.argsort(place, kind="stable")  # border first
    owned, cells = owned[order], cells[order]
    halo.list_border(cells)
    ghosts = communicator.send_rows(
        {rank: owned[rows] for rank, rows in halo.rows.items()} or {me: owned[:0]}
    )
    counts = {rank: len(rows) for rank, rows in ghosts.items()}
    halo.place_ghosts(len(owned), counts, particles.box.dim, particles.pos.dtype)
    every = [owned, *(ghosts[rank] for rank in halo.peers if rank in ghosts)]
    return np.concatenate(every), len(owned)
