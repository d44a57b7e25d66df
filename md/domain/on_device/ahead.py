"""Domain of a rank on a device, which takes the steps between two migrations without asking the host.

Between two builds of the lists no particle travels farther than their skin allows, since the guard of fused
steps halts them before (`md.search.displacement_guard`). So after as many builds as the travel of `Division`
allows, particles migrate, by launches too where devices reach each other. How many steps a build lasts
follows from the largest speed of all ranks. A rank that halts earlier, or that has too little room for lists
or for particles that come, does not stop the others at once: at a later poll all ranks hear of it, return to
the copy that they made before, and take these steps again with a build that lasts shorter. Steps are launched
before the state after those before them is known, so that no device waits for its host.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.division import TRAVEL, Division, Domain
from md.domain.halo import Halo
from md.domain.on_device.by_host import ByHost, ByNccl
from md.domain.on_device.layout import Layout
from md.domain.on_device.migration import Migration, Places, RowKeys
from md.domain.on_device.peers import PATIENCE, Peers
from md.domain.on_device.rank_arrays import COUNTS, LIVE, LOST, NO_ROOM, RankArrays, Records
from md.errors import HaloOutrun, RankFailedError
from md.particles.box import Box
from md.particles.system import System
from sfc import covering

LONG_TRAVEL = 1.6  # in d, if none is given
# Share of the owned rows for which there is more room, for migrations without the host: at first, at most.
MORE, MOST_MORE = 0.04, 0.64
# Most particles of a rank over the mean from which on the box is cut again: that takes as long as 5000 steps.
UNEVEN = 1.03
KEYS_EACH = 4  # sort keys of cells for a particle, at most
MOST_RETURNS = 20  # to one copy, each with builds that last half as many steps
PERIODS = 4  # between two looks at the state
MOST_CUT = 16  # cells along each axis from which on it is taken
TILE = 5.3  # side in d of tiles of cells in memory, which in 3D have as many particles as a block has threads


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

    def begin_period(self) -> None:
        """Count steps from 0 on again, on all ranks."""

    def halve(self) -> None:
        """Plan half as many steps for a build."""


class Copy(NamedTuple):
    """Copy of the particles, to which a rank returns if the steps behind it were wrong.

    Attributes:
        turn: 0 or 1: two are kept, as steps are taken before those of the copy before were looked at.
        step: number of the next step.
    """

    turn: int
    step: int


class Look(NamedTuple):
    """State of a rank after some steps.

    Attributes:
        words: waits for the first `RankArrays.words`, and returns them; None where the host lets particles
            migrate.
        copy: the last one before these steps.
    """

    words: Callable[[], np.ndarray] | None
    copy: Copy


class DomainAhead(Domain):
    """Domain of a rank on a device; see `Domain`.

    Args:
        division, communicator, system: as for `Domain`.
        packs: whether steps read packed rows, which alone other processes can open.

    Attributes:
        launched: how often particles have migrated without the host.
        copy: the last one.

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
        self._ranks_in_memory = np.empty(0, np.int64)  # place of each cell in memory
        self.copy = Copy(0, -1)
        self._returns, self._returned_to = 0, -1  # returns to a copy, and its step
        self._nearby: Places | None = None  # of the cells, for migrations ahead
        self._builds = 0  # of the lists before the last migration
        self._more, self._short_until = MORE, 0  # step before which particles migrate by the host
        self._peers: Peers | None = None
        self._migration: Migration | None = None
        self.launched = 0
        super().__init__(division, communicator, system)
        self._uneven = UNEVEN

    def _usual_travel(self, cutoff: float, box: Box) -> float:
        cells = min(box.lengths) / (cutoff + 2 * LONG_TRAVEL)
        return LONG_TRAVEL if cells >= MOST_CUT else TRAVEL

    def _take_over(self, system: System) -> None:
        system.particles = self._particles = RankArrays(system.particles, self.communicator.size)
        transport = self._transport(system)
        if transport == "peer":
            self._peers = Peers(self.communicator, self._particles)
        else:
            self._by_host = (ByNccl if transport == "nccl" else ByHost)(self.communicator, self._particles)

    def _transport(self, system: System) -> str:
        """Return how ghosts go from device to device: the fastest way, if none was given.

        Raises:
            ValueError: one that these devices do not have, or several ranks on one device.
        """
        given, shares = self._division.transport, self._division.shares_device
        if self.communicator.is_one_process:
            if given == "nccl":
                raise ValueError(
                    "transport 'nccl' of Division for ranks of one process; allowed: 'peer', 'host' or None"
                )
            return given or "peer"
        devices = self.communicator.all_of((socket.gethostname(), system.backend.bus))
        different, hosts = len(set(devices)), sorted({host for host, _ in devices})
        if different < len(devices) and (given == "nccl" or not shares):
            remedy = "which is slower" if given != "nccl" else "with another transport"
            raise ValueError(
                f"{len(devices)} ranks on {different} devices, {devices}; allowed: a device for each; start "
                f"fewer ranks, or take md.Division(shares_device=True), {remedy}"
            )
        if given == "peer" and len(hosts) > 1:
            raise ValueError(
                f"transport 'peer' of Division on the hosts {', '.join(hosts)}; allowed: devices of one "
                "host; take 'nccl', 'host' or None"
            )
        if given == "peer" and not self._packs:
            raise ValueError(
                "transport 'peer' of Division with a law that takes velocities as `real*`; allowed: "
                "`velocity*` in its .cuh; or take 'nccl', 'host' or None"
            )
        if given is not None:
            return given
        if len(hosts) == 1 and self._packs:
            return "peer"
        has_nccl = all(self.communicator.all_of(system.backend.has_nccl))
        return "nccl" if has_nccl and different == len(devices) else "host"

    @property
    def allowed(self) -> float:
        """Distance that particles may travel between two migrations, in d."""
        return self._allowed

    @property
    def periods(self) -> int:
        """Number of periods, each after a migration, between two looks at the state."""
        return PERIODS if self._peers is not None else 1

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

    @property
    def is_laid_out(self) -> bool:
        """Whether rows are where steps read them."""
        return self._particles.layout is not None

    def is_over(self, policy: Builds) -> bool:
        """Return whether particles migrate before the next step.

        Args:
            policy: of the search.
        """
        most = int(self._allowed / policy.limit)
        return self.is_laid_out and policy.builds - self._builds >= most and policy.must_build

    def begin(self, step: int, policy: Builds, packs: bool) -> bool:
        """Lay out the rows for steps, and copy them; without effect if they are, for which it is False.

        Args:
            step: number of the next step.
            policy: of the search.
            packs: whether steps read packed rows.
        """
        if self.is_laid_out:
            return False
        p, me, peers = self._particles, self.communicator.rank, self._peers
        sent = {rank: last - first for rank, (first, last) in self._sent.items()}
        more, borders = 0.0 if peers is None else self._more, self._borders
        if peers is not None:
            if self._nearby is None:
                places = Places(
                    self.partition, self.halo, me, self.communicator.size, self._most_keys, nearby=True
                )
                self._nearby = places
            usual, to_each = self._nearby.usual(p.n)
            borders, sent = max(borders, usual), {rank: max(sent[rank], to_each[rank]) for rank in sent}
        layout = Layout.of(self.communicator, p.n, borders, sent, more)
        p.lay_out(layout, me, self._every[:, me], packs)
        if peers is not None:
            assert self._nearby is not None
            given = self._nearby, layout, self.partition.grid.record, self._start
            self._migration = Migration(self.communicator, p, peers, *given)
            p.row_keys = RowKeys(p, peers, self.communicator.size)
            peers.synchronise()  # their numbers of ghosts are here
        else:
            counts = {rank: int(self._every[rank, me]) for rank in self.halo.peers}
            self._by_host.connect(self._rows, self._sent, counts)
        self.copy = self.copy._replace(step=step)
        self.keep_copy()
        self._builds = policy.builds
        return True

    def note_copy(self, step: int) -> bool:
        """Return whether particles are to be copied again before a step; note the copy if they are.

        Args:
            step: number of the next step.
        """
        if not self.is_laid_out or step == self.copy.step:
            return False
        self.copy = Copy(1 - self.copy.turn if self.looks_late else 0, step)
        return True

    def migrates_ahead(self, step: int) -> bool:
        """Return whether the next migration needs no host: the particles of the ranks are even enough.

        It does up to the step by which there was too little room.

        Args:
            step: number of the next step.
        """
        return self._migration is not None and self._is_even and step >= self._short_until

    def migrate_ahead(self) -> None:
        """Let particles migrate by launches alone; without a host that waits, if `is_prepared`."""
        assert self._migration is not None
        self._migration.launch()

    def keep_copy(self) -> None:
        """Make the copy that was noted, by launches alone."""
        self._particles.keep_copy(self.copy.turn)

    def migrated(self, policy: Builds) -> None:
        """Note that particles have migrated ahead.

        Args:
            policy: of the search.
        """
        self._builds = policy.builds
        self.migrations += 1
        self.launched += 1

    @property
    def is_prepared(self) -> bool:
        """Whether ghosts are updated by launches alone, which can be made again."""
        if self._peers is None:
            return self._by_host.is_launched
        return not self.communicator.is_one_process

    def look(self) -> Look:
        """Look at the state after all steps launched so far, without waiting for them."""
        words = None
        if self._peers is not None and self.is_laid_out:
            words = self._system.backend.look(self._particles.words[:COUNTS])
        return Look(words, self.copy)

    @property
    def looks_late(self) -> bool:
        """Whether steps are launched before the state after those before them is known."""
        return self._peers is not None

    def had_room(self, look: Look, step: int) -> bool:
        """Return whether all that has migrated ahead has had room on all ranks; waits for the device.

        Args:
            look: at the state after these steps.
            step: number of the next step.

        Raises:
            RankFailedError: a device waited for another one in vain.
        """
        if look.words is None:
            return True
        every = self.communicator.gather(look.words().astype(np.int64))
        short, lost = every[:, NO_ROOM], every[:, LOST]
        self._counts = every[:, LIVE]
        if lost.any():
            raise RankFailedError(
                f"a device waited {PATIENCE:g} s for ghosts of another rank, which has ended or is stuck; "
                "start the ranks again, from the last checkpoint"
            )
        if short.any():
            self._more, self._short_until = min(2 * self._more, MOST_MORE), step
        return not short.any()

    def return_to_copy(self, copy: Copy, policy: Builds, had_room: bool) -> int:
        """Return to the particles of a copy, and return its step; all ranks do it.

        Where there was room they are stored in the same rows. From the second return to a copy on, a build
        lasts half as many steps.

        Args:
            copy: which.
            policy: of the search.
            had_room: whether all that has migrated ahead has had room.

        Raises:
            HaloOutrun: a particle that moves farther in a step than lists allow: shorter builds are no help.
        """
        self._system.backend.fill(self._system.status.fault, -1)  # of steps that are taken again: no fault
        if copy.step != self._returned_to:
            self._returns, self._returned_to = 0, copy.step
        self._returns += had_room
        if had_room and self._returns > 1:
            policy.halve()
        if self._returns > MOST_RETURNS:
            system = self._system
            moved = system.dt * math.sqrt(system.largest(self._particles.fastest2()))
            raise HaloOutrun(self.communicator.rank, moved, policy.limit, "in one step")
        self.copy = copy
        if had_room and self._migration is not None and self._is_even:
            self._particles.restore(copy.turn)
            self.migrate_ahead()
            self.migrated(policy)
            policy.begin_period()
        else:
            self._particles.settle(copy.turn)
            self.migrate()
        return copy.step

    def settle(self) -> bool:
        """Make rows compact that are laid out; they have no ghosts then, until `migrate`.

        Returns:
            Whether they were laid out.
        """
        if not self.is_laid_out:
            return False
        self._particles.settle()
        return True

    def any(self, is_so: bool) -> bool:
        """Return whether something is so on any rank."""
        return bool(self.communicator.reduce(np.array([is_so], np.int32), "max")[0])

    def migrate(self, cuts: bool = False) -> None:
        """Let particles migrate, by counts that the host reads; cut the box where it is uneven.

        Args:
            cuts: cut the box in any case.
        """
        self.settle()
        if self._peers is not None:
            self._peers.is_connected = False
        self._migration = None  # its memory is free before more is allocated
        is_cut = cuts or not self.migrations or not self._is_even
        if is_cut:
            if not len(self._ranks_in_memory):
                grid = self.partition.grid
                widths = np.array(grid.box.lengths) / grid.shape
                tile = tuple(max(1, round(TILE / width)) for width in widths.tolist())
                self._ranks_in_memory = covering("tiled", grid.shape, tile=tile).dense_ranks()
            self.partition.cut(self.communicator.reduce(self._count_by_cell().astype(float), "sum"))
            self.halo = Halo(self.partition, self.communicator, self._ranks_in_memory)
            if self._peers is not None:
                self._peers.are_flagged = False
            self._was_cut()
        self._sort()
        self._move()
        if is_cut:
            self._evenness_of_cut = self._evenness
        self._system.rows_changed()
        self.migrations += 1

    @property
    def _is_even(self) -> bool:
        """Whether the ranks have particles as evenly as after the last cut of the box, but for a share."""
        return self._evenness <= self._uneven * self._evenness_of_cut

    @property
    def _evenness(self) -> float:
        """Most particles of a rank over the mean."""
        return float(self._counts.max() / max(1.0, self._counts.mean()))

    @property
    def _most_keys(self) -> int:
        """Sort keys of cells up to which they take less time than the particles."""
        return KEYS_EACH * self._system.n_total

    def _was_cut(self) -> None:
        """Upload the places of the cells, and where particles of each rank and of each run of cells are."""
        ranks, backend = self.communicator, self._system.backend
        self._places = places = Places(self.partition, self.halo, ranks.rank, ranks.size, self._most_keys)
        self._nearby = None
        self._start = backend.empty(places.bins + 1, np.int32)
        runs = [one for run in places.runs.values() for one in run]
        self._ends_at = backend.upload(places.first)
        edges = np.concatenate([[places.border, places.own], *runs])
        self._edges = backend.upload(edges.astype(np.int32))

    def _sort(self, arrived: Records | None = None) -> None:
        """Sort the owned particles, and those that have come, by the place of their cell.

        Cells of other ranks follow those of this one, rank by rank.
        """
        backend, p, grid = self._system.backend, self._particles, self.partition.grid
        places, bins = self._places, len(self._start) - 1
        keys = p.keys_of(arrived, places.table, grid.record, places.constants)
        self._order = backend.empty(len(keys), np.int32)
        backend.sort(keys, self._start, self._order, backend.sort_scratch(len(keys), bins))

    def _move(self) -> None:
        """Let particles go to the ranks that own their cells, and list the border and the ghosts."""
        p, backend, me = self._particles, self._system.backend, self.communicator.rank
        ends = backend.download(self._start[self._ends_at])
        counts = np.diff(ends)
        leaving = {rank: self._order[ends[rank] : ends[rank + 1]] for rank in np.flatnonzero(counts).tolist()}
        arrived = self._exchange(leaving, self._agree(counts)[0])
        self._sort(arrived)
        self._borders, owned, *edges = backend.download(self._start[self._edges]).tolist()
        rows, self._sent = self._border_rows(edges)
        self._rows = backend.upload(rows)
        sent = np.zeros(self.communicator.size, np.int64)
        for rank, (first, last) in self._sent.items():
            sent[rank] = last - first
        self._every, (self._counts,) = self._agree(sent, owned)
        p.take_records(arrived, self._order, owned, int(self._every[:, me].sum()))
        pick = {rank: self._rows[first:last] for rank, (first, last) in self._sent.items() if last > first}
        p.copy_in(owned, self._exchange(pick, self._every))

    def _border_rows(self, edges: list[int]) -> tuple[np.ndarray, dict[int, tuple[int, int]]]:
        """Return the rows that each peer has as ghosts, and where in this list those of each begin and end.

        Args:
            edges: first rows of the runs of border cells of a peer, and those behind the last ones; peer by
                peer.
        """
        every, sent, end = [np.empty(0, np.int32)], {}, 0
        for peer, run in self._places.runs.items():
            count = run.shape[1]
            firsts, lasts, edges = edges[:count], edges[count : 2 * count], edges[2 * count :]
            some = [np.arange(*pair, dtype=np.int32) for pair in zip(firsts, lasts, strict=True)]
            sent[peer] = end, end + sum(map(len, some))
            end = sent[peer][1]
            every += some
        return np.concatenate(every), sent

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
            self._peers.end_step()
        else:
            self._by_host.update()
