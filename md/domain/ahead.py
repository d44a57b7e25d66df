"""Domain of a rank on a device, which takes the steps between two migrations without asking the host.

Between two builds of the lists no particle travels farther than their skin allows, since the guard of fused
steps halts them before (`md.search.displacement_guard`). So after as many builds as the travel of `Division`
allows, particles migrate. How many steps a build lasts follows from the largest speed of all ranks. A rank
that halts earlier, or that has too little room for its lists, does not stop the others at once: at the next
poll all ranks hear of it, return to the copy that they made when particles migrated, and take these steps
again with a build that lasts shorter.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.division import TRAVEL, Division, Domain
from md.domain.halo import Halo
from md.domain.migrate import cells_of
from md.domain.peers import Peers
from md.domain.rank_arrays import RankArrays, Records
from md.errors import RankFailedError
from md.particles.box import Box
from md.particles.system import System
from sfc import covering

LONG_TRAVEL = 1.6  # in d, if none is given
MOST_CUT = 16  # cells along each axis from which on it is taken


class Builds(Protocol):
    """Rebuild policy of a search (`md.search.policy`), as far as a domain reads it.

    Attributes:
        builds: number of builds so far.
    """

    builds: int

    @property
    def limit(self) -> float:
        """Displacement up to which the lists are complete, in d."""

    @property
    def must_build(self) -> bool:
        """Whether the next step begins with a build."""


class DomainAhead(Domain):
    """Domain of a rank on a device; see `Domain`.

    Raises:
        ValueError: weights "time", which a device does not measure; or see `Domain`.
    """

    _particles: RankArrays

    def __init__(self, division: Division, communicator: Communicator, system: System):
        if division.weights == "time":
            raise ValueError(
                'weights = "time" of Division on a device; allowed: "particles"; or take backend="cpu"'
            )
        self._division = division
        self._tiled = np.empty(0, np.int64)  # place of each cell in memory
        self._copied_at: int | None = None  # step of the copy
        self._builds = 0  # of the lists before the last migration
        self._peers: Peers | None = None
        super().__init__(division, communicator, system)

    def _usual_travel(self, cutoff: float, box: Box) -> float:
        cells = min(box.lengths) / (cutoff + 2 * LONG_TRAVEL)
        return LONG_TRAVEL if cells >= MOST_CUT else TRAVEL

    def _take_over(self, system: System) -> None:
        system.particles = self._particles = RankArrays(system.particles)
        transport = self._division.transport
        if not self.communicator.is_one_process:
            devices = self.communicator.all_of((socket.gethostname(), system.backend.bus))
            if len(set(devices)) < len(devices) and not self._division.shares_device:
                raise ValueError(
                    f"{len(devices)} ranks on {len(set(devices))} devices, {devices}; allowed: a device for "
                    "each; start fewer ranks, or take md.Division(shares_device=True), which is slower"
                )
            if transport is None:
                transport = "peer" if len({host for host, _ in devices}) == 1 else "host"
        if transport in (None, "peer"):
            self._peers = Peers(self.communicator, self._particles)

    def is_over(self, policy: Builds) -> bool:
        """Return whether particles migrate before the next step.

        Args:
            policy: of the search.

        Raises:
            ValueError: lists that allow particles to travel farther than the ghosts do.
        """
        if self._copied_at is None:
            return False
        most = int(self._allowed / policy.limit)
        if most < 1:
            raise ValueError(
                f"travel of md.Division: ghosts allow {self._allowed:g} d, lists {policy.limit:g} d between "
                "two builds; allowed: at least as much; take a longer travel, or a smaller skin"
            )
        return policy.builds - self._builds >= most and policy.must_build

    def begin(self, step: int, policy: Builds, packs: bool) -> None:
        """Prepare for the first step after a migration; without effect before others.

        Args:
            step: number of the next step.
            policy: of the search.
            packs: whether steps read packed rows.
        """
        if self._copied_at is not None:
            return
        if packs:
            self._particles.pack()
        self._particles.keep_copy()
        self._copied_at, self._builds = step, policy.builds
        if self._peers is not None:
            self._peers.connect(self._borders, self._rows, self._sent, self._found)

    @property
    def is_prepared(self) -> bool:
        """Whether ghosts are updated by launches alone, which can be made again."""
        return self._peers is not None and not self.communicator.is_one_process

    def return_to_copy(self, policy: Builds) -> int:
        """Return to the particles as they were at `begin`, and return the step."""
        assert self._copied_at is not None
        self._particles.restore_copy()
        self._builds = policy.builds
        return self._copied_at

    def any(self, is_so: bool) -> bool:
        """Return whether something is so on any rank."""
        return bool(self.communicator.reduce(np.array([is_so], np.int32), "max")[0])

    def migrate(self, cuts: bool = False) -> None:
        """Let particles migrate; cut the box where it is uneven."""
        self._copied_at = None
        if self._peers is not None:
            self._peers.is_connected = False
        if cuts or not self.migrations or self._counts.max() > self._uneven * self._counts.mean():
            if not len(self._tiled):
                self._tiled = covering("tiled", self.partition.grid.shape).dense_ranks()
            self.partition.cut(self.communicator.reduce(self._count_by_cell().astype(float), "sum"))
            self.halo = Halo(self.partition, self.communicator, self._tiled)
            self._was_cut()
        self._sort()
        self._move()
        self._system.rows_changed()
        self.migrations += 1

    def require_peers(self) -> None:
        """Raise an error on all ranks if a device waited for another one in vain.

        Raises:
            RankFailedError: it did.
        """
        if self._peers is not None and self.any(self._peers.is_lost):
            raise RankFailedError("a device waited too long for the ghosts of another rank")

    def _was_cut(self) -> None:
        """Make the table of the sort: own cells by their place, behind them those of each rank."""
        halo, backend, owner = self.halo, self._system.backend, self.partition.owner
        others = np.flatnonzero(owner != self.communicator.rank)
        others = others[np.argsort(owner[others], kind="stable")]
        table, own, parts = halo.table.copy(), len(owner) - len(others), 2**self.partition.grid.box.dim
        table[others] = own + np.arange(len(others), dtype=np.int32)
        self._table, self._start = backend.upload(table), backend.empty(parts * len(owner) + 1, np.int32)
        ends = own + np.searchsorted(owner[others], np.arange(self.communicator.size + 1))
        self._ends_at = backend.upload((parts * ends).astype(np.int32))  # keys where those of each rank end
        self._borders_at = backend.upload(np.array([parts * halo.borders, parts * own], np.int32))
        # Border cells of which each peer has the particles, by their place.
        places = [halo.places(rank) for rank in halo.peers]
        every = parts * np.concatenate([*places, np.empty(0, np.int32)])
        self._begins, self._stops = (backend.upload((every + k).astype(np.int32)) for k in (0, parts))
        ends = np.cumsum([len(some) for some in places])
        self._last_places = backend.upload((ends - 1).astype(np.int32))

    def _sort(self, arrived: Records | None = None) -> None:
        """Sort the owned particles, and those that have come, by the place of their cell or their owner."""
        backend, p, grid = self._system.backend, self._particles, self.partition.grid
        keys, bins = p.keys_of(arrived, self._table, grid.record), len(self._start) - 1
        self._order = backend.empty(len(keys), np.int32)
        backend.sort(keys, self._start, self._order, backend.sort_scratch(len(keys), bins))

    def _count_by_cell(self) -> np.ndarray:
        cells = cells_of(self.partition, self._particles.pos[: self._particles.n])
        return np.bincount(cells, minlength=self.partition.grid.size)

    def _move(self) -> None:
        p, backend, me = self._particles, self._system.backend, self.communicator.rank
        ends = backend.download(self._start[self._ends_at])
        counts = np.diff(ends)
        leaving = {rank: self._order[ends[rank] : ends[rank + 1]] for rank in np.flatnonzero(counts).tolist()}
        coming = self.communicator.gather(counts)[:, me]
        arrived = self._send({rank: p.copy_out(rows) for rank, rows in leaving.items()}, coming)
        merged = self._joined(list(arrived.values()))
        self._sort(merged)
        lengths = self._start[self._stops] - self._start[self._begins]
        last = lengths.cumsum(dtype=np.int32)
        found = [self._start[self._borders_at], last[self._last_places]]
        self._borders, owned = backend.download(found[0]).tolist()  # those of other ranks follow
        ends = backend.download(found[1]) if len(last) else np.empty(0, int)
        self._rows = backend.empty(int(ends[-1]) if len(ends) else 0, np.int32)
        if len(self._rows):
            p.list_cells(self._begins, self._stops, last - lengths, self._start, self._rows)
        self._sent = dict(zip(self.halo.peers, zip([0, *ends], ends, strict=False), strict=True))
        sent = np.zeros(self.communicator.size + 1, np.int64)
        for rank, (first, last) in self._sent.items():
            sent[rank] = last - first
        sent[-1] = owned
        every = self.communicator.gather(sent)
        self._counts = every[:, -1]
        ends = owned + np.cumsum(every[self.halo.peers, me])
        self._found = dict(zip(self.halo.peers, zip([owned, *ends], ends, strict=False), strict=True))
        p.take_records(merged, self._order, owned, int(ends[-1] - owned) if len(ends) else 0)
        pick = {rank: p.copy_out(self._rows[a:b]) for rank, (a, b) in self._sent.items() if b > a}
        for rank, some in self._send(pick, every[:, me]).items():
            p.copy_in(self._found[rank][0], some)

    def _joined(self, some: list[Records]) -> Records:
        """Return records of several ranks as one."""
        backend, p = self._system.backend, self._particles
        m = sum(len(one.ids) for one in some)
        found = Records(backend.empty(m * p.each, p.pos.dtype), backend.empty(m, np.int32))
        begin = 0
        for one in some:
            end = begin + len(one.ids)
            found.numbers[begin * p.each : end * p.each] = one.numbers
            found.ids[begin:end] = one.ids
            begin = end
        return found

    def _send(self, records: Mapping[int, Records], coming: np.ndarray) -> dict[int, Records]:
        """Send records to ranks, and return those that come, by rank, in the order of the ranks.

        Args:
            records: rank -> records.
            coming: (ranks,) number of those that come from each.
        """
        backend, p = self._system.backend, self._particles
        found = {
            rank: Records(backend.empty(m * p.each, p.pos.dtype), backend.empty(m, np.int32))
            for rank, m in enumerate(coming.tolist()) if m
        }  # fmt: skip
        if self._peers is not None and not self.communicator.is_one_process:
            self._peers.exchange(records, found)
            return found
        for part in range(2):
            self._exchange(
                {rank: one[part] for rank, one in records.items()},
                {rank: one[part] for rank, one in found.items()},
            )
        return found

    def _exchange(self, outgoing: Mapping[int, Array], incoming: Mapping[int, Array]) -> None:
        """Send an array to each of some ranks, and fill one from each."""
        backend = self._system.backend
        if self.communicator.is_one_process:
            self.communicator.exchange(outgoing, incoming)
            return
        sent = {rank: backend.download(one) for rank, one in outgoing.items()}
        found = {rank: np.empty(len(one), one.dtype) for rank, one in incoming.items()}
        self.communicator.exchange(sent, found)
        for rank, one in incoming.items():
            one[...] = backend.upload(found[rank])

    @property
    def peers(self) -> Peers | None:
        """Memory of the other ranks, into which steps store ghosts; None if ghosts go through the host."""
        return self._peers

    def update_ghosts(self) -> None:
        """Send positions and velocities of border rows after a step, and store those of the ghosts."""
        if self._peers is not None:
            self._peers.synchronise()
            return
        backend, p, each = self._system.backend, self._particles, 2 * self._particles.box.dim
        sent = p.copy_out(self._rows, has_ids=False).numbers
        found = backend.empty((p.rows - p.n) * each, p.pos.dtype)
        self._exchange(
            {rank: sent[each * a : each * b] for rank, (a, b) in self._sent.items()},
            {rank: found[each * (a - p.n) : each * (b - p.n)] for rank, (a, b) in self._found.items()},
        )
        p.copy_in(p.n, Records(found, self._rows[:0]))
