"""Ghosts of devices that go through the hosts, by the communicator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.on_device.rank_arrays import RankArrays, Records


class ByHost:
    """Exchange of rows between devices by the communicator.

    Args:
        communicator: of the ranks.
        particles: of this one.
    """

    def __init__(self, communicator: Communicator, particles: RankArrays):
        self._communicator, self._particles = communicator, particles

    def exchange(self, rows: Mapping[int, Array], every: np.ndarray) -> Records:
        """Send rows of particles to some ranks, and return those that come, in the order of the ranks.

        Args:
            rows: rank -> int32 rows.
            every: (ranks, ranks) number of rows that each sends to each.
        """
        p = self._particles
        sent = {rank: p.copy_out(some) for rank, some in rows.items()}
        coming = {rank: m for rank, m in enumerate(every[:, self._communicator.rank].tolist()) if m}
        m, numbers = sum(coming.values()), {rank: p.each * count for rank, count in coming.items()}
        found = p.new_records(m)
        self._fill(found.numbers, {rank: one.numbers for rank, one in sent.items()}, numbers)
        self._fill(found.ids, {rank: one.ids for rank, one in sent.items()}, coming)
        return found

    def update(self, rows: Array, sent: Mapping[int, tuple[int, int]], ghosts: Mapping[int, int]) -> None:
        """Send positions and velocities of border rows, and store those of the ghosts.

        Args:
            rows: int32 border rows, peer by peer.
            sent: peer -> first and last of its rows in `rows`.
            ghosts: peer -> number of its particles here.
        """
        p, each = self._particles, 2 * self._particles.box.dim
        own = p.copy_out(rows, has_ids=False).numbers
        found = p.backend.empty((p.rows - p.n) * each, p.pos.dtype)
        outgoing = {rank: own[each * a : each * b] for rank, (a, b) in sent.items() if b > a}
        self._fill(found, outgoing, {rank: each * m for rank, m in ghosts.items() if m})
        p.copy_in(p.n, Records(found, rows[:0]))

    def _fill(self, array: Array, outgoing: Mapping[int, Array], lengths: Mapping[int, int]) -> None:
        """Send an array to each of some ranks, and fill one by those that come, one after the other."""
        backend, end = self._particles.backend, 0
        sent = {rank: backend.download(one) for rank, one in outgoing.items()}
        host = np.empty(len(array), array.dtype)
        incoming: dict[int, np.ndarray] = {}
        for rank, length in lengths.items():
            incoming[rank], end = host[end : end + length], end + length
        self._communicator.exchange(sent, incoming)
        array[...] = backend.upload(host)
