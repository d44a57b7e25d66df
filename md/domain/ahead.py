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
from md.domain.by_host import ByHost
from md.domain.communicator import Communicator
from md.domain.division import TRAVEL, Division, Domain
from md.domain.halo import Halo
from md.domain.migrate import cells_of
from md.domain.peers import PATIENCE, Peers
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

    def halve(self) -> None:
        """Plan half as many steps for a build."""


class DomainAhead(Domain):
    """Domain of a rank on a device; see `Domain`.

    Args:
        division, communicator, system: as for `Domain`.
        packs: whether steps read packed rows, which alone other processes can open.

    Raises:
        ValueError: weights "time", which a device does not measure, several ranks on one device, or transport
            "peer" beyond one host; or see `Domain`.
    """

    _particles: RankArrays

    def __init__(self, division: Division, communicator: Communicator, system: System, packs: bool):
        if division.weights == "time":
            raise ValueError(
                'weights = "time" of Division on a device; allowed: "particles"; or take backend="cpu"'
            )
        self._division, self._packs = division, packs
        self._tiled = np.empty(0, np.int64)  # place of each cell in memory
        self._returns = 0  # to the present copy
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
            hosts = sorted({host for host, _ in devices})
            if transport == "peer" and len(hosts) > 1:
                raise ValueError(
                    f"transport 'peer' of Division on the hosts {', '.join(hosts)}; allowed: devices of one "
                    "host; take 'host' or None"
                )
            if transport == "peer" and not self._packs:
                raise ValueError(
                    "transport 'peer' of Division with a law that takes velocities as `real*`; allowed: "
                    "`velocity*` in its .cuh; or take 'host' or None"
                )
            if transport is None:
                transport = "peer" if len(hosts) == 1 and self._packs else "host"
        self._by_host = ByHost(self.communicator, self._particles)
        if transport in (None, "peer"):
            self._peers = Peers(self.communicator, self._particles)

    @property
    def allowed(self) -> float:
        """Distance that particles may travel between two migrations, in d."""
        return self._allowed

    def require_travel(self, policy: Builds) -> None:
        """Raise an error for lists that are used for longer than ghosts are.

        Args:
            policy: of the search.

        Raises:
            ValueError: particles may travel farther between two builds than the ghosts allow.
        """
        if self._allowed < policy.limit:
            raise ValueError(
                f"travel of md.Division: ghosts allow {self._allowed:g} d, lists {policy.limit:g} d between "
                "two builds; allowed: at least as much; take a longer travel, or a smaller skin"
            )

    def is_over(self, policy: Builds) -> bool:
        """Return whether particles migrate before the next step.

        Args:
            policy: of the search.
        """
        if self._copied_at is None:
            return False
        most = int(self._allowed / policy.limit)
        return policy.builds - self._builds >= most and policy.must_build

    def begin(self, step: int, policy: Builds, packs: bool) -> bool:
        """Prepare for the first step after a migration; without effect before others, for which it is False.

        Args:
            step: number of the next step.
            policy: of the search.
            packs: whether steps read packed rows.
        """
        if self._copied_at is not None:
            return False
        was_packed = self._particles.is_packed
        if packs:
            self._particles.pack()
        self._particles.keep_copy()
        # Lists that are there already, as of a look at the pairs, are the first of the period.
        self._copied_at, self._builds = step, policy.builds - (not policy.must_build)
        self._returns = 0
        if self._peers is not None:
            if not was_packed:  # on all ranks
                self._peers.open_all()
            self._peers.connect(self._borders, self._rows, self._sent, self._every, self._counts)
        return True

    @property
    def is_prepared(self) -> bool:
        """Whether ghosts are updated by launches alone, which can be made again."""
        return self._peers is not None and not self.communicator.is_one_process

    def return_to_copy(self, policy: Builds) -> int:
        """Return to the particles as they were at `begin`, and return the step."""
        assert self._copied_at is not None
        self._particles.restore_copy()
        self._system.backend.fill(self._system.status.fault, -1)  # of steps that are taken again: no fault
        self._builds = policy.builds
        self._returns += 1
        if self._returns > 1:
            policy.halve()
        return self._copied_at

    def any(self, is_so: bool) -> bool:
        """Return whether something is so on any rank."""
        return bool(self.communicator.reduce(np.array([is_so], np.int32), "max")[0])

    def migrate(self, cuts: bool = False) -> None:
        """Let particles migrate; cut the box where it is uneven."""
        self._copied_at = None
        if self._particles.was_packed:  # and then read, just before
            self._particles.pack()
        if self._peers is not None:
            self._peers.is_connected = False
        if cuts or not self.migrations or self._counts.max() > self._uneven * self._counts.mean():
            if not len(self._tiled):
                self._tiled = covering("tiled", self.partition.grid.shape).dense_ranks()
            self.partition.cut(self.communicator.reduce(self._count_by_cell().astype(float), "sum"))
            self.halo = Halo(self.partition, self.communicator, self._tiled)
            if self._peers is not None:
                self._peers.are_flagged = False
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
            raise RankFailedError(
                f"a device waited {PATIENCE:g} s for ghosts of another rank, which has ended or is stuck; "
                "start the ranks again, from the last checkpoint"
            )

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
        """Sort the owned particles, and those that have come, by the place of their cell.

        Cells of other ranks follow those of this one, rank by rank.
        """
        backend, p, grid = self._system.backend, self._particles, self.partition.grid
        keys, bins = p.keys_of(arrived, self._table, grid.record), len(self._start) - 1
        self._order = backend.empty(len(keys), np.int32)
        backend.sort(keys, self._start, self._order, backend.sort_scratch(len(keys), bins))

    def _count_by_cell(self) -> np.ndarray:
        cells = cells_of(self.partition, self._particles.pos[: self._particles.n])
        return np.bincount(cells, minlength=self.partition.grid.size)

    def _move(self) -> None:
        """Let particles go to the ranks that own their cells, and list the border and the ghosts."""
        p, backend, me = self._particles, self._system.backend, self.communicator.rank
        ends = backend.download(self._start[self._ends_at])
        counts = np.diff(ends)
        leaving = {rank: self._order[ends[rank] : ends[rank + 1]] for rank in np.flatnonzero(counts).tolist()}
        arrived = self._exchange(leaving, self._agree(counts)[0])
        self._sort(arrived)
        lengths = self._start[self._stops] - self._start[self._begins]
        last = lengths.cumsum(dtype=np.int32)
        found = backend.look(last[self._last_places]) if len(last) else lambda: np.empty(0, np.int32)
        self._borders, owned = backend.download(self._start[self._borders_at]).tolist()
        ends = found().astype(np.int64)
        self._rows = backend.empty(int(ends[-1]) if len(ends) else 0, np.int32)
        if len(self._rows):
            p.list_cells(self._begins, self._stops, last - lengths, self._start, self._rows)
        self._sent = dict(zip(self.halo.peers, zip([0, *ends], ends, strict=False), strict=True))
        sent = np.zeros(self.communicator.size, np.int64)
        sent[self.halo.peers] = np.diff(ends, prepend=0)
        self._every, (self._counts, rooms) = self._agree(sent, owned, p.room)
        ghosts = self._every.sum(axis=0)
        p.take_records(arrived, self._order, owned, int(ghosts[me]))
        if self._peers is not None and (self._counts + ghosts > rooms).any():
            self._peers.open_all()
        pick = {rank: self._rows[first:last] for rank, (first, last) in self._sent.items() if last > first}
        p.copy_in(owned, self._exchange(pick, self._every))

    def _agree(self, counts: np.ndarray, *more: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how many rows each rank sends to each, and open the memory that has changed since.

        Args:
            counts: (ranks,) rows that this rank sends to each.
            more: further numbers of this rank.

        Returns:
            (ranks, ranks) rows that each sends to each, and (numbers, ranks) the further numbers of each.
        """
        size, has_changed = self.communicator.size, False
        if self._peers is not None:
            has_changed = self._peers.make_room(counts)
        every = self.communicator.gather(np.array([*counts, has_changed, *more], np.int64))
        if every[:, size].any() and self._peers is not None:
            self._peers.open_all()
        return every[:, :size], every[:, size + 1 :].T

    def _exchange(self, rows: Mapping[int, Array], every: np.ndarray) -> Records:
        """Send rows of particles to some ranks, and return those that come, in the order of the ranks."""
        return (self._by_host if self._peers is None else self._peers).exchange(rows, every)

    @property
    def peers(self) -> Peers | None:
        """Memory of the other ranks, into which steps store ghosts; None if ghosts go through the host."""
        return self._peers

    def update_ghosts(self) -> None:
        """Send positions and velocities of border rows after a step, and store those of the ghosts."""
        if self._peers is not None:
            self._peers.synchronise()
            return
        ghosts = {rank: int(self._every[rank, self.communicator.rank]) for rank in self.halo.peers}
        self._by_host.update(self._rows, self._sent, ghosts)
