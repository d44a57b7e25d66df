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
ALIGNED = 16  # bytes, to which records for a rank are rounded up


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


class Memory(NamedTuple):
    """Memory of a rank that others read or write: handle of the allocation, and bytes from its begin.

    Attributes:
        rows: (set, positions or velocities).
        flags: one of each rank, raised by its peers.
        marks: of the rows that it sends.
        boxes: two outboxes, used in turn.
    """

    rows: list[list[tuple[bytes, int]]]  # of no set while rows are not packed
    flags: tuple[bytes, int]
    marks: tuple[bytes, int]
    boxes: list[tuple[bytes, int]]


class Peers:
    """Memory of the peers of a rank.

    Args:
        communicator: of the ranks.
        particles: of this one.

    Attributes:
        is_connected: whether `connect` was called since particles have migrated.
        are_flagged: whether the peers are those of the last `connect`, so that devices wait for each other
            without their hosts.
    """

    def __init__(self, communicator: Communicator, particles: RankArrays):
        self._communicator, self._particles = communicator, particles
        self._backend = backend = particles.backend
        self._flags, self._words = backend.alone(communicator.size, np.uint32), backend.zeros(2, np.uint32)
        self._marks = backend.alone(0, np.uint8)
        self._boxes, self._turn = [backend.alone(0, np.uint8) for _ in range(2)], 0
        self._opened: dict[bytes, int] = {}
        backend.fill(self._flags, 0)
        backend.wait()
        self.is_connected = self.are_flagged = False
        self.open_all()

    def make_room(self, counts: np.ndarray) -> bool:
        """Make room for rows that are sent; return whether there is other memory now.

        Args:
            counts: (ranks,) number of rows for each.
        """
        boxes, marks = self._boxes[self._turn], self._marks
        end, rows = int(self._ends(counts)[-1]), int(counts.sum())
        if len(boxes) < end:
            self._boxes[self._turn] = self._backend.alone(end + end // 4, np.uint8)
        if len(marks) < rows:
            self._marks = self._backend.alone(rows + rows // 4, np.uint8)
        return self._boxes[self._turn] is not boxes or self._marks is not marks

    def _ends(self, counts: np.ndarray) -> np.ndarray:
        """Return where the records for each rank end in an outbox, in bytes: (ranks,) of (ranks,) counts."""
        p = self._particles
        sizes = counts * p.each * p.pos.dtype.itemsize + 4 * counts
        return np.cumsum(-(-sizes // ALIGNED) * ALIGNED)

    def open_all(self) -> None:
        """Open the memory of all ranks, and close what is no longer used; all ranks call it."""
        handle = self._handle
        is_open = self._communicator.is_one_process or self._particles.is_packed
        sets = self._particles.sets if is_open else []  # of the memory pool, which others cannot open
        own = Memory(
            [[handle(array) for array in one] for one in sets],
            handle(self._flags), handle(self._marks), [handle(box) for box in self._boxes],
        )  # fmt: skip
        self._memory: list[Memory] = self._communicator.all_of(own)
        used = {handle for one in self._memory for handle, _ in (*one[1:3], *one.boxes)}
        used |= {handle for one in self._memory for pair in one.rows for handle, _ in pair}
        for closed in [known for known in self._opened if known not in used]:
            self._backend.close_handle(self._opened.pop(closed))

    def exchange(self, rows: Mapping[int, Array], every: np.ndarray) -> Records:
        """Send rows of particles to some ranks, and return those that come, in the order of the ranks.

        They go from device to device: each rank leaves what it sends in an outbox, from which others copy.

        Args:
            rows: rank -> int32 rows; to peers alone if `are_flagged`.
            every: (ranks, ranks) number of rows that each sends to each.
        """
        backend, p, me, turn = self._backend, self._particles, self._communicator.rank, self._turn
        box, ends, real = self._boxes[turn], self._ends(every[me]), p.pos.dtype
        for rank, some in rows.items():
            begin, size = int(ends[rank - 1]) if rank else 0, len(some) * p.each * real.itemsize
            ids = box[begin + size : begin + size + 4 * len(some)].view(np.int32)
            p.copy_out(some, into=Records(box[begin : begin + size].view(real), ids))
        self.synchronise()
        self._turn = 1 - turn
        found, row = p.new_records(int(every[:, me].sum())), 0
        for rank in np.flatnonzero(every[:, me]).tolist():
            m = int(every[rank, me])
            begin = int(self._ends(every[rank])[me - 1]) if me else 0
            at = self._address(*self._memory[rank].boxes[turn]) + begin
            backend.copy_from(found.numbers[row * p.each : (row + m) * p.each], at)
            backend.copy_from(found.ids[row : row + m], at + m * p.each * real.itemsize)
            row += m
        return found

    def connect(
        self,
        borders: int,
        rows: Array,
        sent: Mapping[int, tuple[int, int]],
        every: np.ndarray,
        owned: np.ndarray,
    ) -> None:
        """Prepare to store ghosts at the peers, after particles have migrated.

        Args:
            borders: number of border particles.
            rows: int32 border rows, peer by peer.
            sent: peer -> first and last of its rows in `rows`.
            every: (ranks, ranks) number of ghosts of each rank that each has: of row at column.
            owned: (ranks,) number of particles that each owns.

        Raises:
            ValueError: more peers than a block has threads.
        """
        backend, p, me = self._backend, self._particles, self._communicator.rank
        if len(sent) > MOST_PEERS:
            raise ValueError(
                f"{len(sent)} peers of a rank; allowed: up to {MOST_PEERS}; take fewer ranks, or "
                "md.Division(transport='host')"
            )
        self._sets = p.sets
        backend.fill(self._marks, 1)
        peers, begins = list(sent), [begin for begin, _ in sent.values()]
        first = [int(owned[rank] + every[:me, rank].sum()) for rank in peers]  # row of the first ghost there
        ends = np.cumsum([int(every[rank, me]) for rank in peers])  # of the ghosts here
        theirs = [int(every[rank, :me].sum()) for rank in peers]  # number of the first among those they send
        numbers = np.array([
            [last for _, last in sent.values()], np.subtract(first, begins), ends,
            np.subtract(theirs, np.subtract(ends, [int(every[rank, me]) for rank in peers])), peers,
        ], np.int32)  # fmt: skip
        memory = [self._memory[rank] for rank in peers]
        addresses = np.array([
            [self._address(*one.flags) + 4 * me for one in memory],
            [self._address(*one.marks) for one in memory],
            *([self._address(*one.rows[k][part]) for one in memory] for k in (0, 1) for part in (0, 1)),
        ], np.uint64)  # fmt: skip
        self._ends_of, shift, self._ghost_ends, self._mark_shift, self._numbers = backend.upload(numbers)
        self._theirs, self._marks_of, *rows_of = backend.upload(addresses)
        self._rows, self._named = rows, backend.empty(p.rows - p.n, np.uint8)
        where = backend.empty(len(peers) * borders, np.int32)
        backend.fill(where, -1)
        if len(rows):
            backend.kernels(__name__).place_rows(len(rows), rows, self._ends_of, borders, where)
        own = len(peers), borders, where, self._marks, shift
        self._targets = [PeerRows(*own, *rows_of[2 * k : 2 * k + 2]) for k in (0, 1)]
        self.is_connected = self.are_flagged = True

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
                len(self._rows), self._rows, p.pos, p.velocities, self._ends_of, shift, pos, vel
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
        if self._communicator.is_one_process or not self.are_flagged:
            self._backend.wait()
            self._communicator.gather(np.zeros(1, np.int64))
        elif self._targets[0].peers:
            patience = int(PATIENCE * 1e9)
            kernels = self._backend.kernels(__name__)
            given = self._numbers, self._theirs, self._flags, self._words, patience
            kernels.exchange_flags(self._targets[0].peers, *given)

    @property
    def is_lost(self) -> bool:
        """Whether a peer did not come; waits for the device."""
        return bool(self._backend.download(self._words)[1])
