"""Ghosts that ranks store into the memory of each other, on devices that reach it: no host is between them.

After each step a kernel stores the border rows as ghosts of the peers. Another raises a flag at each of them,
and waits for theirs. A rank may store the ghosts of the next step before a peer has read those of this one:
arrays are read and written in turn, so that these are others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.particles.rank_arrays import RankArrays

PATIENCE = 20.0  # s that a device waits for another one
MOST_PEERS = 256  # threads of the block that waits for them


class Place(NamedTuple):
    """Where a rank has its ghosts.

    Attributes:
        memory: (set, positions or velocities) -> (handle of the allocation, bytes from its begin).
        flags: the same of the flags that its peers raise.
        first: peer -> row of its first ghost here.
        number: peer -> its flag.
    """

    memory: list[list[tuple[bytes, int]]]
    flags: tuple[bytes, int]
    first: dict[int, int]
    number: dict[int, int]


class Peers:
    """Memory of the peers of a rank.

    Args:
        communicator: of the ranks.
        particles: of this one.
    """

    def __init__(self, communicator: Communicator, particles: RankArrays):
        self._communicator, self._particles = communicator, particles
        self._backend = backend = particles.backend
        self._flags, self._words = backend.alone(MOST_PEERS, np.uint32), backend.zeros(2, np.uint32)
        backend.fill(self._flags, 0)
        self._opened: dict[bytes, int] = {}

    def connect(self, rows: Array, sent: dict[int, tuple[int, int]], found: dict[int, tuple[int, int]]) -> None:
        """Open the memory of the peers, after particles have migrated.

        Args:
            rows: int32 border rows, peer by peer.
            sent: peer -> first and last of its rows in `rows`.
            found: peer -> first and last row of its particles here.
        """
        backend, p, me = self._backend, self._particles, self._communicator.rank
        self._sets = (p.pos, p.velocities), tuple(p.spare)
        memory = [[self._handle(array) for array in one] for one in self._sets]
        place = Place(
            memory, self._handle(self._flags), {rank: begin for rank, (begin, _) in found.items()},
            {rank: k for k, rank in enumerate(found)},
        )  # fmt: skip
        places = self._communicator.all_of(place)
        backend.fill(self._flags, 0)
        backend.fill(self._words, 0)
        peers = [places[rank] for rank in sent]
        self._rows, self._count = rows, len(peers)
        kept = {handle for one in peers for handle, _ in (*sum(one.memory, []), one.flags)}
        for handle in [handle for handle in self._opened if handle not in kept]:
            backend.close_handle(self._opened.pop(handle))
        upload = backend.upload
        self._ends = upload(np.array([last for _, last in sent.values()], np.int32))
        self._first = upload(np.array([one.first[me] for one in peers], np.int32))
        self._targets = [
            [upload(np.array([self._address(*one.memory[k][part]) for one in peers], np.uint64)) for part in (0, 1)]
            for k in (0, 1)
        ]  # fmt: skip
        flags = [self._address(*one.flags) + 4 * one.number[me] for one in peers]
        self._theirs = upload(np.array(flags, np.uint64))
        backend.wait()
        self._communicator.all_of(None)  # flags are 0 before one is raised

    def _handle(self, array: Array) -> tuple[bytes, int]:
        """Return how other ranks find an array: handle and offset, or in one process its address alone."""
        if self._communicator.is_one_process:
            return b"", self._backend.address_of(array)
        return self._backend.handle_of(array)

    def _address(self, handle: bytes, offset: int) -> int:
        """Return the address of memory of another rank."""
        if not handle:
            return offset
        if handle not in self._opened:
            self._opened[handle] = self._backend.open_handle(handle)
        return self._opened[handle] + offset

    def send(self) -> None:
        """Store the border rows at the peers, and wait for the ghosts that they store here."""
        p = self._particles
        kernels = self._backend.kernels(__name__, constants=p.constants)
        targets = self._targets[0 if p.pos is self._sets[0][0] else 1]
        if len(self._rows):
            given = self._count, self._ends, self._first, *targets
            kernels.store_ghosts(len(self._rows), self._rows, p.pos, p.velocities, *given)
        if self._communicator.is_one_process:
            self._backend.wait()
            self._communicator.all_of(None)
        elif self._count:
            patience = int(PATIENCE * 1e9)
            kernels.meet(self._count, self._theirs, self._flags, self._words, patience)

    @property
    def is_lost(self) -> bool:
        """Whether a peer did not come; waits for the device."""
        return bool(self._backend.download(self._words)[1])
