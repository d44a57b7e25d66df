"""Ghosts that ranks store into the memory of each other, on devices that reach it: no host is between them.

The kernel of a fused step stores each border row that a peer needs as its ghost. The first block of the next
step raises a flag at each peer, and its blocks of border particles wait for theirs; elsewhere a kernel of its
own does. Before lists are built all ghosts are stored; after it peers get the marks of those that the lists
name, and only these are stored until the next build. Arrays are read and written in turn: the flag of a step
also says that the ghosts of the step before it have been read, so that they may be stored again.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from md.backend.base import Array, Backend
from md.domain.communicator import Communicator
from md.domain.on_device.layout import Layout
from md.domain.on_device.rank_arrays import COUNTS, LIVE, LOST, NO_ROOM, RankArrays, Records

PATIENCE = 20.0  # s that a device waits for another one
MOST_PEERS = 256  # threads of the block that waits for them
ALIGNED = 16  # bytes, to which records for a rank are rounded up


class PeerRows(NamedTuple):
    """What a fused step needs to store ghosts of the peers; a struct of its kernel.

    Attributes:
        peers: number of peers.
        borders: rows of border particles, the first ones.
        live: (2,) int32 number of owned particles, behind which rows have none; and the row from which on
            rows are 0 already.
        place: (peers * borders,) int32 number of each border particle among the rows that are sent, by peer;
            -1 for one that a peer does not have.
        marks: (rows sent,) uint8, 1 for those that are needed.
        shift: (peers,) int32, what is added to the number for the row at the peer.
        pos, vel: (peers,) uint64 addresses of positions and velocities at the peers.
        count: (2,) uint32 number of exchanges of flags before a step of turn 0 and 1; (0,) if the hosts wait
            for each other.
        flags: (ranks,) uint32 flags of the others, which they raise.
        flags_of: (peers,) uint64 addresses of the flags of this rank.
        ranks: (peers,) int32.
        lost: (1,) uint32, not 0 once a peer did not come for a long time.
        patience: this time, in ns.
    """

    peers: int
    borders: int
    live: Array
    place: Array
    marks: Array
    shift: Array
    pos: Array
    vel: Array
    count: Array
    flags: Array
    flags_of: Array
    ranks: Array
    lost: Array
    patience: int


class Inbox(NamedTuple):
    """Records that migrate from device to device.

    Attributes:
        records: those that come, peer by peer, with room for more.
        ends: (peers,) int32 where those of each end.
        sent_ends: (peers,) int32 where the places for those that are sent end, peer by peer.
        numbers_of, ids_of: (peers,) uint64 addresses of these places at the peers.
        words_of: (peers,) uint64 addresses of `RankArrays.words` there.
        radii_of: (2, peers) uint64 addresses of `RankArrays.radius_sets` there.
    """

    records: Records
    ends: Array
    sent_ends: Array
    numbers_of: Array
    ids_of: Array
    words_of: Array
    radii_of: Array


class Peers:
    """Memory of the peers of a rank.

    Args:
        communicator: of the ranks.
        particles: of this one.

    Attributes:
        is_connected: whether `connect` was called for the present layout of the rows.
        are_flagged: whether the peers are those of the last `connect`, so that devices wait for each other
            without their hosts.
        ranks: (peers,) int32 ranks of the peers.
    """

    ranks: Array

    def __init__(self, communicator: Communicator, particles: RankArrays):
        self._communicator, self._particles = communicator, particles
        self._backend = backend = particles.backend
        self._flags = backend.alone(communicator.size, np.uint32)
        self._exchanges = backend.zeros(2, np.uint32)  # of flags, before a step of turn 0 and 1
        self._lost = particles.words[LOST:COUNTS].view(np.uint32)
        self._marks = backend.alone(0, np.uint8)
        self._boxes, self._turn = [backend.alone(0, np.uint8) for _ in range(2)], 0
        self._inbox = Records(backend.alone(0, particles.pos.dtype), backend.alone(0, np.int32))
        self._opened: dict[bytes, int] = {}
        self._shared: dict[str, Array] = {}
        weakref.finalize(self, _close, backend, self._opened).atexit = False
        backend.fill(self._flags, 0)
        backend.wait()
        self.is_connected = self.are_flagged = False
        self.open_all()

    def make_room(self, counts: np.ndarray) -> bool:
        """Make room for records that are sent; return whether there is other memory now.

        Args:
            counts: (ranks,) number of records for each.
        """
        box, end = self._boxes[self._turn], int(self._ends(counts)[-1])
        if len(box) < end:
            self._boxes[self._turn] = self._backend.alone(end + end // 4, np.uint8)
        return self._boxes[self._turn] is not box

    def _ends(self, counts: np.ndarray) -> np.ndarray:
        """Return where the records for each rank end in an outbox, in bytes: (ranks,) of (ranks,) counts."""
        p = self._particles
        sizes = counts * p.each * p.pos.dtype.itemsize + 4 * counts
        return np.cumsum(-(-sizes // ALIGNED) * ALIGNED)

    def open_all(self) -> None:
        """Open the memory of all ranks, and close what is no longer used; all ranks call it."""
        p = self._particles
        own = {
            "flags": self._flags, "marks": self._marks, "words": p.words, "radii 0": p.radius_sets[0],
            "radii 1": p.radius_sets[1], "numbers": self._inbox.numbers, "ids": self._inbox.ids,
            "box 0": self._boxes[0], "box 1": self._boxes[1],
        }  # fmt: skip
        if self._communicator.is_one_process or p.is_packed:  # others cannot open the memory pool
            own |= {
                f"{name} {k}": rows
                for k, one in enumerate(p.sets)
                for name, rows in zip("rv", one, strict=True)
            }
        handles = {name: self._handle(array) for name, array in own.items()}
        self._memory: list[dict[str, tuple[bytes, int]]] = self._communicator.all_of(handles)
        used = {handle for one in self._memory for handle, _ in one.values()}
        unused = [known for known in self._opened if known not in used]
        if unused:
            self._backend.wait()
        for known in unused:
            self._backend.close_handle(self._opened.pop(known))
        self._communicator.gather(np.zeros(1, np.int64))
        self._shared = own  # what was shared before may be freed now: no other rank has it open

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
            at = self._address(rank, f"box {turn}") + begin
            backend.copy_from(found.numbers[row * p.each : (row + m) * p.each], at)
            backend.copy_from(found.ids[row : row + m], at + m * p.each * real.itemsize)
            row += m
        return found

    def connect(self, layout: Layout, peers: list[int], rows: Array, place: Array) -> Inbox:
        """Prepare to store ghosts and records at the peers; all ranks call it once rows are laid out.

        Args:
            layout: of the rows.
            peers: ranks, ascending.
            rows: int32 border rows, peer by peer, as many as there is room for; -1 for none.
            place: (peers * borders,) int32 number of each border row in `rows`, by peer; -1 for none.

        Returns:
            Where records come in, and where they go.

        Raises:
            ValueError: more peers than a block has threads.
        """
        backend, p, me = self._backend, self._particles, self._communicator.rank
        if len(peers) > MOST_PEERS:
            raise ValueError(
                f"{len(peers)} peers of a rank; allowed: up to {MOST_PEERS}; take fewer ranks, or "
                "md.Division(transport='host')"
            )
        coming = int(layout.leaving[:, me].sum())
        if len(self._inbox.ids) < coming:
            numbers = backend.alone(coming * p.each, p.pos.dtype)
            self._inbox = Records(numbers, backend.alone(coming, np.int32))
        if len(self._marks) < len(rows):
            self._marks = backend.alone(len(rows), np.uint8)
        self.open_all()
        sent, found = layout.ghosts[me, peers], layout.ghosts[peers, me]
        begins, ends = np.cumsum(sent) - sent, np.cumsum(found)
        first = [layout.first_ghost(me, rank) for rank in peers]
        theirs = [layout.ghosts[rank, :me].sum() for rank in peers]  # number of the first one they send here
        out = [layout.leaving[:me, rank].sum() for rank in peers]  # records before those of this rank there
        numbers = np.array([
            np.cumsum(sent), first - begins, ends, theirs - (ends - found), peers,
            np.cumsum(layout.leaving[me, peers]), np.cumsum(layout.leaving[peers, me]),
        ], np.int32)  # fmt: skip
        each = p.each * p.pos.dtype.itemsize
        names = "r 0", "v 0", "r 1", "v 1", "marks", "radii 0", "radii 1", "words"
        addresses = np.array([
            *([self._address(rank, name) for rank in peers] for name in names),
            [self._address(rank, "flags") + 4 * me for rank in peers],
            [self._address(rank, "numbers") + each * int(one) for rank, one in zip(peers, out, strict=True)],
            [self._address(rank, "ids") + 4 * int(one) for rank, one in zip(peers, out, strict=True)],
        ], np.uint64).reshape(len(names) + 3, len(peers))  # fmt: skip
        uploaded, there = backend.upload(numbers.reshape(7, len(peers))), backend.upload(addresses)
        self._ends_of, shift, self._ghost_ends, self._mark_shift, self.ranks, leaving, arriving = uploaded
        self._marks_of, radii_of, words_of, self._theirs = there[4], there[5:7], there[7], there[8]
        self._rows, self._peers = rows, len(peers)
        self._named = backend.empty(p.rows - p.n, np.uint8)
        own = len(peers), int(layout.borders[me]), p.words[LIVE:NO_ROOM], place, self._marks, shift
        patience = int(PATIENCE * 1e9)
        count, lost = self._exchanges[: 2 * self.waits_in_steps], self._lost
        self._targets = [
            PeerRows(*own, pos, vel, count, self._flags, self._theirs, self.ranks, lost, patience)
            for pos, vel in (there[:2], there[2:4])
        ]
        self.is_connected = self.are_flagged = True
        return Inbox(self._inbox.part(0, coming), arriving, leaving, there[9], there[10], words_of, radii_of)

    def _handle(self, array: Array) -> tuple[bytes, int]:
        """Return how other ranks find an array: handle and offset, or in one process its address alone."""
        if self._communicator.is_one_process:
            return b"", self._backend.address_of(array)
        return self._backend.handle_of(array)

    def _address(self, rank: int, name: str) -> int:
        """Return the address of memory of another rank.

        Args:
            rank: of which.
            name: of the memory, in `open_all`.
        """
        handle, offset = self._memory[rank][name]
        if not handle:
            return offset
        if handle not in self._opened:
            self._opened[handle] = self._backend.open_handle(handle)
        return self._opened[handle] + offset

    def rows_for(self, pos: Array) -> PeerRows:
        """Return what a step needs that fills certain positions: the peers fill those of the same step."""
        return self._targets[0 if pos is self._particles.sets[0][0] else 1]

    def store_all(self) -> None:
        """Store all border rows at the peers, and wait for the ghosts that they store here."""
        p = self._particles
        if len(self._rows):
            there = self.rows_for(p.pos)
            given = self._rows, p.pos, p.velocities, self._ends_of, there.shift, there.pos, there.vel
            self._backend.kernels(__name__, constants=p.constants).store_ghosts(len(self._rows), *given)
        self.synchronise()

    @property
    def ghost_ends(self) -> Array:
        """(peers,) int32 where the ghosts of each peer end, behind the owned rows."""
        return self._ghost_ends

    @property
    def sent(self) -> tuple[Array, Array]:
        """(peers,) int32 where the border rows of each peer end in their list, and `PeerRows.shift`."""
        return self._ends_of, self._targets[0].shift

    @property
    def borders(self) -> int:
        """Rows of border particles."""
        return self._targets[0].borders

    @property
    def live(self) -> Array:
        """(2,) int32 number of owned particles, and row from which on rows are 0."""
        return self._targets[0].live

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
        elif self._peers:
            given = self.ranks, self._theirs, self._flags, self._exchanges, self._lost
            patience = int(PATIENCE * 1e9)
            self._backend.kernels(__name__).exchange_flags(self._peers, *given, patience)

    @property
    def waits_in_steps(self) -> bool:
        """Whether the kernels of the steps exchange flags with the peers."""
        return not self._communicator.is_one_process

    def end_step(self) -> None:
        """Wait until all peers have stored the ghosts of a step, if that is not part of the next one."""
        if not self.waits_in_steps:
            self.synchronise()


def _close(backend: Backend, opened: dict[bytes, int]) -> None:
    """Close the memory of other ranks that is open, once nothing uses it."""
    if opened:
        backend.wait()
    for address in opened.values():
        backend.close_handle(address)
