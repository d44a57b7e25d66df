"""Domain of a rank: what it owns, its ghosts, and when particles migrate.

Cells of the partition are wider than the cutoff by twice the distance that a particle may travel between two
migrations. So a pair that meets meanwhile is of two owned particles, or of one and a ghost. How many steps
that takes is planned by the largest speed of all ranks, which they find when particles migrate, once a
period. Each rank sums the largest displacement of its particles in each step. Where it will be used up
earlier, as in a gas that gets energy, the rank says so with the rows that it sends, and all migrate when the
last of them has heard of it from its neighbours. In the same way they agree on the step in which all build
their lists. Between two builds only the ghosts that lists name are updated.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from md import checks
from md.domain.communicator import Communicator
from md.domain.halo import Halo, Message
from md.domain.migrate import Located, cells_of, locate, migrate
from md.domain.partition import Owners, Partition
from md.domain.region import Region
from md.errors import HaloOutrun
from md.particles.box import Box
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from sfc import Curve

TRAVEL = 0.8  # in d, if none is given
PLANNED = 0.6  # of the distance that is allowed, at the speed of the fastest particle
USUAL = "row", "hilbert"
LONGEST = 1000  # steps between two migrations, at most
UNEVEN = {"particles": 1.01, "time": 1.05}  # most of a rank over the mean, from which on the box is cut again
UNEVEN_RATES = 3.0  # times the median: most of the rate of a rank in one period
UNSURE = 0.05  # is added to `UNEVEN["time"]` after one period, less after several: their mean is surer
REMEMBERED = 4  # periods from which on a mean of rates forgets old ones
TRANSPORTS = "peer", "nccl", "host"
NEVER = 2**20  # steps, which float32 counts
HURRY = 1.5  # times the last stride, until all ranks have heard of a deadline


@dataclass(frozen=True)
class Division:
    """How a box is divided among ranks.

    Args:
        order: of the cells, of which each rank owns a chunk: a name of `sfc.orderings(dim)` or a curve.
            "row" makes slabs. None for "row" or "hilbert", whichever has fewer cells with ghosts.
        travel: distance in d that a particle may travel between two migrations; ghosts are within the cutoff
            and twice that. None for 0.8, on a device for 1.6 where the box has room for it: steps are short
            there, beside a migration.
        is_part: whether the state of each rank has particles of its own, and not all particles.
        weights: what is divided evenly: "particles", or "time", which each rank measures between migrations,
            the mean of about four periods; sums of forces then differ in rounding from run to run.
        transport: how ghosts go from device to device: "peer", stored into the memory of the other one;
            "nccl", sent by NCCL, also to other hosts; or "host", through the communicator. None for "peer"
            where all ranks are on one host, and else for "nccl" where it is installed.
        shares_device: whether several ranks may be on one device, which is slower than one rank.
        owners: function that divides the cells in place of the order, which is then that of a rank's cells in
            memory; None for "hilbert". It is called as `owners(shape, box, weights, ranks)` with the cells
            along each axis, the box, the (cells,) weights by row-major number and the number of ranks, and
            returns the (cells,) integer owners, the same on all ranks; each rank has one cell at least. With
            MPI it is a function of a module, which can be pickled.

    Raises:
        TypeError: an order that is neither a name nor a curve, a distance that is no number, a flag that
            is no bool, or owners that are no function.
        ValueError: a distance that is not above 0, or other weights or transport.
    """

    order: str | Curve | None = None
    travel: float | None = None
    is_part: bool = False
    weights: str = "particles"
    transport: str | None = None
    shares_device: bool = False
    owners: Owners | None = None

    def __post_init__(self):
        if self.order is not None:
            checks.order_of_cells("order of Division", self.order)
        if self.travel is not None:
            checks.number(
                "travel of Division", self.travel, above=0, unit="d", remedy="None for the usual one"
            )
        checks.flag("is_part of Division", self.is_part)
        checks.word("weights of Division", self.weights, UNEVEN)
        checks.flag("shares_device of Division", self.shares_device)
        if self.transport is not None:
            checks.word("transport of Division", self.transport, TRANSPORTS, "None for the fastest")
        if self.owners is not None:
            allowed = "a function of shape, box, weights and ranks"
            checks.function("owners of Division", self.owners, allowed, "or None for chunks of the order")


class Exchanged(NamedTuple):
    """What has happened between two steps.

    Attributes:
        has_migrated: whether particles have migrated, so that all rows are others.
        stride: the largest of this rank and its peers, in d.
        builds: whether the structure of the search is built before the next step.
    """

    has_migrated: bool
    stride: float
    builds: bool


class Domain:
    """Particles of one rank of a divided system.

    Args:
        division: how the box is divided.
        communicator: of the ranks.
        system: of this rank; its particles become owned ones and ghosts.

    Attributes:
        communicator: as given.
        partition, halo: at present.
        migrations: how often particles have migrated.
        is_built: whether the structure of the search was built before the last step.

    Raises:
        ValueError: a box too small for the halo, more ranks than cells, or ranks with different states.
    """

    def __init__(self, division: Division, communicator: Communicator, system: System):
        self.communicator, self._system, self._dt = communicator, system, system.dt
        cutoff, box = system.grid.cutoff, system.box
        travel = self._usual_travel(cutoff, box) if division.travel is None else division.travel
        reach = cutoff + 2 * travel
        try:
            grid = CellGrid(box, reach, system.precision, system.backend)
        except ValueError as error:
            raise ValueError(
                f"{error}; a box that is divided holds ghosts within {reach:g} d: the cutoff and twice the "
                f"travel, {travel:g}, of md.Division"
            ) from error
        orders = USUAL if division.order is None else (division.order,)
        orders = orders if division.owners is None else orders[-1:]
        found = (Partition(order, grid, communicator.size, division.owners) for order in orders)
        self.partition = min(found, key=lambda one: one.ghosts)
        width = min(length / cells for length, cells in zip(box.lengths, grid.shape, strict=True))
        self._rounding = 16 * float(np.finfo(system.precision).eps) * max(box.lengths)
        self._allowed = (width - cutoff) / 2 - self._rounding
        self.migrations = 0
        self._travelled, self._left = 0.0, 0  # since the last migration, in d; steps to the next
        self._end = NEVER  # steps until all ranks end
        self._error: HaloOutrun | None = None
        self._build, self._since = NEVER, 0  # steps to the next build, and since the last one
        self.is_built = True
        self._by_time, self._uneven = division.weights == "time", UNEVEN[division.weights]
        self._worked, self._since_s, self._steps = 0.0, time.perf_counter(), 0  # since the last migration
        self._mean_rates, self._measured = np.zeros(communicator.size), 0  # since the last cut
        self._located: Located | None = None  # at a migration
        self._sorts, self._are_rows_sorted = True, False  # by a migration, and by the search
        self._has_lists, self._fastest = False, 0.0  # largest stride of all ranks at the last migration
        particles, down = system.particles, system.backend.download
        communicator.require_equal("the largest diameter", particles.widest)
        particles.has_radii = any(communicator.all_of(particles.has_radii))
        if division.is_part:
            total, different = _count_ids(communicator, down(particles.id))
            if different != total:
                raise ValueError(
                    f"parts of {total} particles have {different} ids; allowed: each id once; "
                    "give whole states without is_part, or parts with ids of their own"
                )
            communicator.require_equal("the smallest diameter", particles.narrowest)
        else:
            content = (down(one) for one in (particles.pos, particles.vel, particles.id, particles.radius))
            communicator.require_equal("the state", [zlib.crc32(one.tobytes()) for one in content])
            cells = cells_of(self.partition, particles.pos)
            self.partition.cut(np.bincount(cells, minlength=grid.size))
            particles.keep(np.flatnonzero(self.partition.owner[cells] == communicator.rank))
        self._take_over(system)
        system.divide(self)
        self.migrate()

    def _usual_travel(self, cutoff: float, box: Box) -> float:
        """Return the travel if none was given, in d."""
        return TRAVEL

    def _take_over(self, system: System) -> None:
        """Make the particles of a system those of a rank."""

    def after_step(
        self,
        stride: float | None,
        is_due_within: Callable[[float], bool],
        limit: float,
        named: Callable[[], np.ndarray | None],
    ) -> Exchanged:
        """Update the ghosts after a step, or let all particles migrate.

        Args:
            stride: largest displacement of an owned particle in the step, in d; None to measure it.
            is_due_within: returns whether the search is to be built if particles move so far, in d.
            limit: displacement up to which the structure of the search is complete, in d; the same on all
                ranks.
            named: returns which ghosts the structure of the search names, (ghosts,) uint8; None for one that
                is built at each step, from all of them.

        Raises:
            HaloOutrun: on all ranks, a few steps after a particle of one may have moved farther than the
                ghosts reach, or the lists.
        """
        self._end -= 1
        self._steps += 1
        own = self._stride() if stride is None else stride
        self._travelled += own
        self._left -= 1
        hops = self.partition.diameter
        if self._travelled + (1 + min(hops, self._left)) * HURRY * own > self._allowed:
            self._left = min(self._left, hops)
        if self._travelled > self._allowed:
            self._fail(HaloOutrun(self.communicator.rank, self._travelled, self._allowed), hops)
        if min(self._left, self._end) <= 0:
            self.migrate()  # at an end too, of which it raises the error: reads then find all pairs
            return Exchanged(True, own, True)
        if self.is_built:
            is_named = named()
            self._has_lists, self.is_built = is_named is not None, False
            if is_named is not None:
                self.halo.name(is_named)
        self._build -= 1
        self._since += 1
        if self._has_lists and self._build > hops and is_due_within(hops * HURRY * own):
            self._build = min(self._build, hops)
            if self._left < self._since:  # particles would migrate before the next build but one
                self._left = min(self._left, hops)
        is_thin = limit <= (1 + hops) * HURRY * self._fastest  # lists end before all have heard
        builds = self._build == 0 or not self._has_lists or is_thin
        said = Message(own, self._left, self._build, self._end)
        found = self.halo.refresh(self._system.particles, said, builds)
        stride, self._left, self._build, self._end = found
        if builds:
            self._build, self._since, self.is_built = NEVER, 0, True
        elif is_due_within(0.0):
            since = "before all ranks could build their lists"
            self._fail(HaloOutrun(self.communicator.rank, hops * own, limit, since), hops + 1)
        return Exchanged(False, stride, builds)

    def pause(self) -> None:
        """End to count the time of this rank's work: it may wait for others now."""
        self._worked += time.perf_counter() - self._since_s

    def resume(self) -> None:
        """Begin to count the time of this rank's work, after it has waited, or done something else."""
        self._since_s = time.perf_counter()

    def _fail(self, error: HaloOutrun, steps: int) -> None:
        """Let all ranks end after some steps, in which they hear of it."""
        if self._error is None:
            self._error, self._end = error, min(self._end, steps)

    def migrate(self, cuts: bool = False) -> None:
        """Let particles migrate, and plan the steps until the next time; cut the box where it is uneven.

        Args:
            cuts: cut the box in any case.

        Raises:
            HaloOutrun: on all ranks, after the migration, where a particle has moved too far before it.
        """
        communicator = self.communicator
        is_first = not self.migrations
        if not is_first:
            shares = communicator.reduce(self._count_by_rank(), "sum").astype(float)
        rates, uneven = np.ones(communicator.size), self._uneven
        if self._by_time and not cuts:  # a checkpoint is cut as it will be when it is loaded
            rates = self._rates()
            uneven += UNSURE / min(max(1, self._measured), REMEMBERED)
        if cuts or is_first or (rates * shares).max() > uneven * (rates * shares).mean():
            owner = self.partition.owner
            counts = communicator.reduce(self._count_by_cell().astype(float), "sum")
            self.partition.cut(counts * rates[owner])
            if not np.array_equal(owner, self.partition.owner):
                self._measured = 0
            self.halo = Halo(self.partition, communicator)
            self._located = None  # by the former cut
            self._was_cut()
        self._sorts = cuts or is_first or not self._are_rows_sorted  # a checkpoint has rows in this order
        self._move()
        self._system.rows_changed()
        self.migrations += 1
        self._worked, self._steps = 0.0, 0
        stride, has_error = communicator.reduce(np.array([self._stride(), self._error is not None]), "max")
        if has_error:
            self._end = 0
            raise self._error or HaloOutrun.elsewhere()
        planned, self._fastest = PLANNED * self._allowed / stride if stride > 0 else math.inf, stride
        self._end = NEVER
        self._travelled, self._left = 0.0, int(min(LONGEST, max(1.0, planned)))
        self._build, self._since, self.is_built = NEVER, 0, True

    def _count_by_rank(self) -> np.ndarray:
        """Return how many particles of this rank are in cells of each: (ranks,) int64."""
        found = self._located = locate(self._system.particles, self.partition, self.halo)
        counts = np.bincount(found.owner, minlength=self.communicator.size)
        counts[self.communicator.rank] = len(found.keys) - len(found.leaving)
        return counts

    def _count_by_cell(self) -> np.ndarray:
        """Return how many particles of this rank are in each cell: (cells,) int64."""
        cells = cells_of(self.partition, self._system.particles.pos[: self._system.n_owned])
        return np.bincount(cells, minlength=self.partition.grid.size)

    def _was_cut(self) -> None:
        """Tell the searches in which cells particles may be now."""
        self._system.particles.region = Region(self.partition, self.communicator.rank)

    def settle(self) -> bool:
        """Make the owned particles the first rows; they always are on the CPU, for which it is False."""
        return False

    def rows_moved(self, moved: np.ndarray) -> None:
        """Find the border and the ghosts again, after the search has sorted the rows.

        Args:
            moved: (rows,) int32 new row of each row; those of owned particles are the first ones.
        """
        self.halo.rows_moved(moved)
        self._are_rows_sorted = True

    def _move(self) -> None:
        """Let particles go to the ranks that own their cells, and list the ghosts."""
        particles = self._system.particles
        located = self._located or locate(particles, self.partition, self.halo)
        moved = migrate(particles, located, self.partition, self.halo, self.communicator, self._sorts)
        self._located = None
        particles.take_over(moved.arrived, moved.order, moved.ghosts)

    def _rates(self) -> np.ndarray:
        """Return the time of a particle in a step on each rank, a mean of the periods since the last cut.

        Those of a period are within a factor of `UNEVEN_RATES` of their median: a rank may have been stopped
        for a while. The first period, in which code is compiled, does not count.

        Returns:
            (ranks,) the mean of the first `REMEMBERED` periods, into which later ones enter by that share; 1
            if none has been measured.
        """
        ranks, steps = self.communicator, self._steps
        rate = self._worked / max(1, steps * self._system.n_owned)
        rates = ranks.reduce(np.where(np.arange(ranks.size) == ranks.rank, rate, 0.0), "sum")
        if self.migrations < 2 or not steps or rates.min() <= 0:
            return self._mean_rates if self._measured else np.ones(ranks.size)
        middle = float(np.median(rates))
        rates = np.clip(rates, middle / UNEVEN_RATES, middle * UNEVEN_RATES)
        self._measured += 1
        self._mean_rates += (rates - self._mean_rates) / min(self._measured, REMEMBERED)
        return self._mean_rates

    def _stride(self) -> float:
        """Return the largest displacement of an owned particle in a step at the present speeds, in d."""
        fastest2 = self._system.particles.fastest2()  # without NaN, which is a fault of its own
        return self._dt * math.sqrt(fastest2) * (1 + 1e-6) + self._rounding


def _count_ids(communicator: Communicator, ids: np.ndarray) -> tuple[int, int]:
    """Return the number of ids of all ranks, and how many of them differ; each rank counts a range."""
    ids = np.sort(ids)  # np.unique hashes, and takes far longer
    ends = np.array([-int(ids[0]), ids[-1]] if len(ids) else [-(2**31)] * 2, np.int64)
    first, last = communicator.reduce(ends, "max") * (-1, 1)
    starts = first + (last + 1 - first) * np.arange(1, communicator.size) // communicator.size
    pieces = np.split(ids, np.searchsorted(ids, starts))
    found = communicator.send_rows(dict(enumerate(pieces)))
    own = np.sort(np.concatenate([ids[:0], *found.values()]), kind="stable")  # merges what is sorted
    counts = np.array([len(own), np.count_nonzero(np.diff(own)) + (len(own) > 0)])
    total, different = communicator.reduce(counts, "sum").tolist()
    return total, different
