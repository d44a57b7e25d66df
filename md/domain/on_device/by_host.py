"""Ghosts of devices that do not reach the memory of each other: sent by NCCL, or by the hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.on_device.rank_arrays import RankArrays, Records

# NCCL's communicators, which stay: ranks have to free one at the same time, and Python frees objects at any.
_channels: dict[tuple[Communicator, str], Any] = {}


class ByHost:
    """Exchange of rows between devices by the communicator of their hosts.

    Args:
        communicator: of the ranks.
        particles: of this one.
    """

    is_launched = False  # whether the exchange is a launch

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

    def connect(self, rows: Array, sent: Mapping[int, tuple[int, int]], ghosts: Mapping[int, int]) -> None:
        """Prepare to update ghosts, once rows are laid out.

        Args:
            rows: int32 border rows, peer by peer.
            sent: peer -> first and last of its rows in `rows`.
            ghosts: peer -> number of its particles here.
        """
        p, each = self._particles, 2 * self._particles.box.dim
        self._rows, none = rows, rows[:0]
        self._own = Records(p.backend.empty(len(rows) * each, p.pos.dtype), none)
        self._found = Records(p.backend.empty((p.rows - p.n) * each, p.pos.dtype), none)
        own = self._own.numbers
        self._outgoing = {rank: own[each * a : each * b] for rank, (a, b) in sent.items() if b > a}
        self._lengths = {rank: each * m for rank, m in ghosts.items() if m}

    def update(self) -> None:
        """Send positions and velocities of border rows, and store those of the ghosts."""
        p = self._particles
        p.copy_out(self._rows, has_ids=False, into=self._own)
        self._fill(self._found.numbers, self._outgoing, self._lengths)
        p.copy_in(p.n, self._found)

    def _fill(self, array: Array, outgoing: Mapping[int, Array], lengths: Mapping[int, int]) -> None:
        """Send an array to each of some ranks, and fill one by those that come, one after the other."""
        backend = self._particles.backend
        sent = {rank: backend.download(one) for rank, one in outgoing.items()}
        host = np.empty(len(array), array.dtype)
        self._communicator.exchange(sent, _parts(host, lengths))
        array[...] = backend.upload(host)


class ByNccl(ByHost):
    """Exchange of rows between devices by NCCL; see `ByHost`.

    Raises:
        BackendUnavailableError: no NCCL.
    """

    is_launched = True

    def __init__(self, communicator: Communicator, particles: RankArrays):
        super().__init__(communicator, particles)
        key = communicator, particles.backend.bus
        if key not in _channels:
            ranks = communicator.size, communicator.rank
            channel = particles.backend.channel(*ranks, lambda value: communicator.all_of(value)[0])
            _channels[key] = channel
        self._channel = _channels[key]

    def _fill(self, array: Array, outgoing: Mapping[int, Array], lengths: Mapping[int, int]) -> None:
        self._particles.backend.exchange(self._channel, outgoing, _parts(array, lengths))


def _parts(array: Array, lengths: Mapping[int, int]) -> dict[int, Array]:
    """Return the part of an array that each rank fills, one after the other."""
    found, end = {}, 0
    for rank, length in lengths.items():
        found[rank], end = array[end : end + length], end + length
    return found
