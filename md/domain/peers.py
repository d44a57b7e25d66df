"""Ghosts that ranks store into the memory of each other, on devices that reach it: no host is between them.

The kernel of a fused step stores each border row that a peer needs as its ghost. Another raises a flag at
each peer, and waits for theirs. Before lists are built all ghosts are stored; after it peers get the marks of
those that the lists name, and only these are stored until the next build. A rank may store the ghosts of the
next step before a peer has read those of this one: arrays are read and written in turn, so that these are
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.rank_arrays import RankArrays, Records

PATIENCE = 20.0  # s that a device waits for another one
MOST_PEERS = 256  # threads of the block that waits for them


class PeerRows(NamedTuple):
    """What a fused step needs to store ghosts of the peers; a struct of its kernel.

    Attributes:
        peers: number of peers.
        borders: number of border particles, the first rows.
        place: (peers * borders,) int32 number of each border particle among the rows that are sent, by peer;
            -1 for one that a peer does not have.
        marks: (rows sent,) uint8, 1 for those that are needed.
        shift: (peers,) int32, what is added to the number for the row at the peer.
        pos, vel: (peers,) uint64 addresses of positions and velocities at the peers.
    """

    peers: int
    borders: int
    place: Array
    marks: Array
    shift: Array
    pos: Array
    vel: Array


class Place(NamedTuple):
    """Where a rank has what its peers store there.

    Attributes:
        memory: (set, positions or velocities) -> (handle of the allocation, bytes from its begin).
        flags, marks: the same of the flags, one of each rank, and of the marks.
        first: peer -> row of its first ghost here.
        begin: peer -> number of its first row among those that are sent.
    """

    memory: list[list[tuple[bytes, int]]]
    flags: tuple[bytes, int]
    marks: tuple[bytes, int]
    first: dict[int, int]
    begin: dict[int, int]


class Peers:
    """Memory of the peers of a rank.

    Args:
        communicator: of the ranks.
        particles: of this one.

    Attributes:
        is_connected: whether `connect` was called since particles have migrated.
    """

    def __init__(self, communicator: Communicator, particles: RankArrays):
        self._communicator, self._particles = communicator, particles
        self._backend = backend = particles.backend
        self._flags, self._words = backend.alone(communicator.size, np.uint32), backend.zeros(2, np.uint32)
        self._marks = backend.alone(0, np.uint8)
        self._opened: dict[bytes, int] = {}
        self._used: set[bytes] = set()  # handles of memory that steps store to
        self._outboxes = [backend.alone(0, np.uint8) for _ in range(2)]
        backend.fill(self._flags, 0)
        backend.wait()
        self.is_connected = False

    def connect(
        self, borders: int, rows: Array, sent: dict[int, tuple[int, int]], found: dict[int, tuple[int, int]]
    ) -> None:
        """Open the memory of the peers, after particles have migrated.

        Args:
            borders: number of border particles.
            rows: int32 border rows, peer by peer.
            sent: peer -> first and last of its rows in `rows`.
            found: peer -> first and last row of its particles here.
        """
        backend, p, me, upload = self._backend, self._particles, self._communicator.rank, self._backend.upload
        if len(self._marks) < len(rows):
            self._marks = backend.alone(len(rows) + len(rows) // 8, np.uint8)
        self._sets = (p.pos, p.velocities), tuple(p.spare)
        place = Place(
            [[self._handle(array) for array in one] for one in self._sets],
            self._handle(self._flags), self._handle(self._marks),
            {rank: begin for rank, (begin, _) in found.items()},
            {rank: begin for rank, (begin, _) in sent.items()},
        )  # fmt: skip
        places = self._communicator.all_of(place)
        backend.fill(self._marks, 1)
        peers = [places[rank] for rank in sent]
        opened = [at for one in peers for at in (*one.memory[0], *one.memory[1], one.flags, one.marks)]
        self._used = {handle for handle, _ in opened}

        def numbers(of: list[int], dtype: type = np.int32) -> Array:
            return upload(np.array(of, dtype))

        self._rows, self._named = rows, backend.empty(p.rows - p.n, np.uint8)
        self._ends = numbers([last for _, last in sent.values()])
        shift = numbers([one.first[me] - begin for one, (begin, _) in zip(peers, sent.values(), strict=True)])
        pos, vel = (
            [numbers([self._address(*one.memory[k][part]) for one in peers], np.uint64) for k in (0, 1)]
            for part in (0, 1)
        )
        self._numbers = numbers(list(sent))
        self._theirs = numbers([self._address(*one.flags) + 4 * me for one in peers], np.uint64)
        self._ghost_ends = numbers([last - p.n for _, last in found.values()])
        self._mark_shift = numbers([
            one.begin[me] - (begin - p.n) for one, (begin, _) in zip(peers, found.values(), strict=True)
        ])  # fmt: skip
        self._marks_of = numbers([self._address(*one.marks) for one in peers], np.uint64)
        where = backend.empty(len(peers) * borders, np.int32)
        backend.fill(where, -1)
        if len(rows):
            backend.kernels(__name__).place_rows(len(rows), rows, self._ends, borders, where)
        own = len(peers), borders, where, self._marks, shift
        self._targets = [PeerRows(*own, pos[k], vel[k]) for k in (0, 1)]
        self.is_connected = True

    def exchange(self, records: Mapping[int, Records], found: Mapping[int, Records]) -> None:
        """Send records to some ranks, and fill those that come, from device to device.

        Each rank leaves what it sends in one of two outboxes in turn, from which the others copy.

        Args:
            records: rank -> records.
            found: rank -> records, filled.
        """
        backend, places, end = self._backend, {}, 0
        for rank, one in records.items():
            places[rank] = end, end + one.numbers.nbytes
            end += one.numbers.nbytes + one.ids.nbytes + (-one.ids.nbytes) % 16
        self._outboxes.reverse()
        if len(self._outboxes[0]) < end:
            self._outboxes[0] = backend.alone(end + end // 4, np.uint8)
        box = self._outboxes[0]
        for rank, one in records.items():
            for begin, part in zip(places[rank], one, strict=True):
                box[begin : begin + part.nbytes] = part.view(np.uint8)
        backend.wait()
        every = self._communicator.all_of((self._handle(box), places))
        for rank, one in found.items():
            handle, of = every[rank]
            begin = self._address(*handle)
            for offset, part in zip(of[self._communicator.rank], one, strict=True):
                backend.copy_from(part, begin + offset)
        kept = {handle[0] for handle, _ in every}
        self._close_unused(kept | self._used)

    def _close_unused(self, kept: set[bytes]) -> None:
        """Close the memory of other ranks that is no longer used."""
        for handle in [handle for handle in self._opened if handle not in kept]:
            self._backend.close_handle(self._opened.pop(handle))

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

    def rows_for(self, pos: Array) -> PeerRows:
        """Return what a step needs that fills certain positions: the peers fill those of the same step."""
        return self._targets[0 if pos is self._sets[0][0] else 1]

    def store_all(self) -> None:
        """Store all border rows at the peers, and wait for the ghosts that they store here."""
        p = self._particles
        if len(self._rows):
            _, _, _, _, shift, pos, vel = self.rows_for(p.pos)
            kernels = self._backend.kernels(__name__, constants=p.constants)
            kernels.store_ghosts(
                len(self._rows), self._rows, p.pos, p.velocities, self._ends, shift, pos, vel
            )
        self.synchronise()

    @property
    def borders(self) -> int:
        """Number of border particles."""
        return self._targets[0].borders

    @property
    def named(self) -> Array:
        """(ghosts,) uint8, in which a search marks the ghosts that it needs, before `store_marks`."""
        return self._named

    def store_marks(self) -> None:
        """Let the peers know which ghosts are needed until the next build."""
        if len(self._named):
            given = self._named, self._ghost_ends, self._mark_shift, self._marks_of
            self._backend.kernels(__name__).store_marks(len(self._named), *given)
        self.synchronise()

    def synchronise(self) -> None:
        """Wait until all peers have stored what they store in this step."""
        if self._communicator.is_one_process:
            self._backend.wait()
            self._communicator.all_of(None)
        elif self._targets[0].peers:
            patience = int(PATIENCE * 1e9)
            kernels = self._backend.kernels(__name__)
            given = self._numbers, self._theirs, self._flags, self._words, patience
            kernels.exchange_flags(self._targets[0].peers, *given)

    @property
    def is_lost(self) -> bool:
        """Whether a peer did not come; waits for the device."""
        return bool(self._backend.download(self._words)[1])
