"""Base classes of the neighbour searches: the configuration, and the search that works on a system.

Contract. A search is two classes in one file. The configuration (`SearchConfig`) is a frozen dataclass of
parameters; its `build(system)` makes the search (`Search`) with its buffers. The search implements `build`,
which makes its structure from the positions, and `structure`, the arrays that its force kernel takes. Forces,
pairs, touching pairs and accesses follow from that kernel, which is in the same file:
`force(n, pos, vel, work, *structure, grid, law, out)` folds a pair law (`md.laws.pair`) over the partners of
every particle. `work` is `ParticleArrays.work`, the order in which the kernel processes the particles
(`slot_of`); a search that moves the particles has no such parameter. If a device does not use one thread a
particle, the number of threads comes before `n`. On a device `build` and `force` are kernel launches that
neither wait nor allocate, so that steps can be captured (`md.simulation.graph_capture`); otherwise the
`SearchCapabilities` of the search must not contain `capturable`. Those of a fusable search are made by
`Backend.kernels` and `Backend.fill` only: other work on the device would be missing where the launches are
made again. The search's `policy` (`md.search.policy`) decides when `build` runs. All searches find the same
pairs; they differ in what they read and where it is in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

import sfc
from md import checks
from md.backend.base import Array
from md.laws import PairLaw
from md.laws.pair import kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.particles.capabilities import Capable, SearchCapabilities
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from md.search.partners import CollectPartners
from md.search.policy import EveryStep, RebuildPolicy
from sfc.cache import AccessStream


class FusedOutput(ABC):  # noqa: B024 - outputs are named tuples, and are registered
    """Output of a force kernel that moves each particle as soon as its force is known."""


class SearchConfig(Capable, ABC):
    """Configuration of a neighbour search: plain parameters, for `Simulation(search=...)`.

    Attributes:
        name: as in `Simulation(search=name)`.
        capabilities: what the search supports.
    """

    name: ClassVar[str]
    capabilities: SearchCapabilities = SearchCapabilities(fusable=True, capturable=True)

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Return the names of the orders along which the search can sort; none if it moves no particles."""
        return sfc.orderings(dim) if cls.capabilities.moves_particles else ()

    def _check(self, field: str, check: Callable, *bounds: Any, **words: Any) -> None:
        """Replace the value of a field by what a check of `md.checks` returns for it.

        Args:
            field: name of the field.
            check: takes the name of the argument, the value, `bounds` and `words`.
            bounds: of the check.
            words: of the check, such as `unit` and `remedy`.
        """
        name = f"{field} of {type(self).__name__}"
        object.__setattr__(self, field, check(name, getattr(self, field), *bounds, **words))

    @abstractmethod
    def build(self, system: System) -> Search:
        """Make the search for a system; `Search.prepare` or the first build may allocate buffers.

        Raises:
            ValueError: parameters that do not fit the box, or a structure that does not fit in memory.
        """


class Search(ABC):
    """Neighbour search over the particles of a system.

    Args:
        config: its configuration.
        system: shared state of the simulation.
        grid: cells of the search; None for those of the system.
        policy: decides when the structure is rebuilt; None for every step.

    Attributes:
        config, system, grid, policy: as given.
        particles, backend: of the system.
        capabilities: of the configuration.
        generation: how often arrays of the structure were replaced by others; graphs captured before hold
            addresses that are no longer used.
        launch_state: what decides the launches of `rebuild` and `force` besides their arguments and the
            particle arrays; None for nothing. Launches are made again only in the state in which they were
            made, and then the state after them is set.
    """

    launch_state: Any = None
    _kernel = "force"  # by its name in the module of the search
    _threads: tuple[int, ...] = ()  # of a device, before the number of particles
    _reads_all = False  # whether `_fold` visits all slots that `force` reads

    def __init__(
        self,
        config: SearchConfig,
        system: System,
        grid: CellGrid | None = None,
        policy: RebuildPolicy | None = None,
    ):
        self.config, self.system = config, system
        self.particles, self.backend = system.particles, system.backend
        self.grid = system.grid if grid is None else grid
        self.policy = EveryStep(system) if policy is None else policy
        self.capabilities: SearchCapabilities = config.capabilities
        self.generation = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config!r} on {self.particles.n} particles>"

    @property
    def name(self) -> str:
        """Name of the search, as in `Simulation(search=name)`."""
        return self.config.name

    @property
    def builds(self) -> int:
        """Number of times the structure was built for steps."""
        return self.policy.builds

    @abstractmethod
    def build(self) -> None:
        """Make the structure from the positions; on a device by kernel launches only."""

    @abstractmethod
    def structure(self) -> tuple[Any, ...]:
        """Return the arrays and numbers that `force` takes before `grid`."""

    def update(self, force: bool = False) -> None:
        """Build the structure if its policy returns that it is due, or in any case; may wait for the device.

        Args:
            force: build without asking the policy.
        """
        if force or self.policy.is_due:
            self.build()
            self.policy.built()

    def rebuild(self, moves: bool = True) -> None:
        """Build the structure for a step plan, without checking whether it is due.

        Args:
            moves: False if particles may stay where they are in memory, by `StepPlan.moves`.
        """
        self.build()

    def prepare(self, fused: bool) -> None:
        """Prepare for the steps of a run; called once, before the first build.

        Args:
            fused: whether steps are fused into the force kernel.

        Raises:
            ValueError: a structure that does not fit in memory.
        """
        if fused:
            self.policy.expect_fused()

    @property
    def last_stride(self) -> float | None:
        """Largest displacement of an owned particle in the last step, in d; None if it was not found."""
        return None

    def named_ghosts(self) -> np.ndarray | None:
        """Return which ghosts the structure names, (ghosts,) uint8; None if it is built at each step."""
        return None

    def rows_changed(self) -> None:
        """Make room for other rows; called when particles have migrated between ranks.

        Raises:
            NotImplementedError: a search that moves particles, and cannot be divided.
        """
        raise NotImplementedError(f"search {self.name!r} has no rows of several ranks")

    def reset(self) -> None:
        """Return to the state after construction: build before the next step, and plan from that step on.

        A run that continues after it was saved and the run that is loaded then take the same steps.
        """
        self.policy.reset()

    @property
    def boxes(self) -> tuple[Array, Array, Array] | None:
        """Nodes and ropes of a tree (`md.search.bvh.tree`), and the slot of each leaf; None without a tree.

        The slots are (0,) if they are the leaves' numbers. All are as of the last computation of forces.
        """
        return None

    def force(self, law: PairLaw, out: Any) -> None:
        """Compute the force on every particle, or another sum of a pair law over its partners.

        Args:
            law: the law.
            out: (n, dim) array of the backend, filled: the force on each particle, in memory order; or
                another output that `finish` takes (`md.integrate.fused.KickDrift`).
        """
        law = scaled_to_radii(law, self._radius)
        self._fold(law, kernel_law(law, self.grid.precision), out)

    @property
    def most_steps(self) -> int:
        """Largest number of fused steps that `take_steps` takes at once; 1 for one by one."""
        return 1

    def take_steps(self, law: PairLaw, outputs: Sequence[Any], step: int, most: int) -> int:
        """Take fused steps, after the structure was updated.

        Args:
            law: the law.
            outputs: `md.integrate.fused.KickDrift` of the first step; on the CPU also of the second, which
                writes to the arrays that the first one reads.
            step: number of the first step.
            most: largest number of steps, at least 1.

        Returns:
            Number of steps. On the CPU it is less than `most` if the structure is to be updated, or there is
            a fault.
        """
        self.force(law, outputs[0])
        return 1

    def accesses(self) -> AccessStream:
        """Return the slots that `force` reads, particle by particle in the order of the kernel."""
        with self._all_read():
            counts = self._partner_counts(np.inf, self._no_radius)
            return self._collect(np.inf, self._no_radius, counts)

    def access_count(self) -> int:
        """Return the number of slots in `accesses`, without storing them."""
        with self._all_read():
            return int(self._partner_counts(np.inf, self._no_radius).sum())

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs with centres closer than a cutoff.

        Args:
            cutoff: distance in d, at most the grid's cutoff.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._pairs_within(cutoff, self._no_radius)

    def touching(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs that touch: closer than a cutoff times the sum of their radii.

        Args:
            cutoff: of the law, in d: for two particles of radius 0.5.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._pairs_within(cutoff, self._radius)

    @property
    def slots(self) -> Array:
        """(n,) int32 slot of the particle in each row that the kernel reads; (0,) if it is the row number."""
        return self.backend.empty(0, np.int32)

    @property
    def _radius(self) -> Array:
        """(n,) radius of the particle in each row that the kernel reads; (0,) if all are 0.5."""
        return self.particles.radius

    @cached_property
    def _no_radius(self) -> Array:
        """(0,) array in place of the radii."""
        return self.backend.empty(0, self.grid.precision)

    @property
    def _work_order(self) -> Array:
        """(n,) int32 slots in the order of the kernel's work items; (0,) for memory order."""
        return self.particles.work

    def _ids(self) -> np.ndarray:
        """Return the (n,) ids of the particles in the rows that the kernel reads."""
        return self.backend.download(self.particles.id)

    @contextmanager
    def _all_read(self) -> Iterator[None]:
        """Let `_fold` visit all slots that `force` reads, and not only those within the search radius."""
        self._reads_all = True
        try:
            yield
        finally:
            self._reads_all = False

    def _pairs_within(self, distance: float, radius: Array) -> np.ndarray:
        """Return the (p, 2) ids of the pairs within a distance, in d or in sums of two radii (n,)."""
        counts = self._partner_counts(distance * distance, radius)
        if not int(counts.sum()):
            return np.empty((0, 2), np.int32)  # without a copy of the counts to the host
        stream = self._collect(distance * distance, radius, counts)
        id = self._ids()
        first = np.repeat(id[stream.readers], np.diff(stream.offsets))
        second = id[stream.reads]
        once = first < second
        pairs = np.column_stack([first[once], second[once]])
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    def _collect(self, reach2: float, radius: Array, counts: Array) -> AccessStream:
        """Store the partners in a second fold, particle by particle in the order of the kernel.

        Args:
            reach2: as for `_partner_counts`.
            radius: as for `_partner_counts`.
            counts: (n,) number of partners of each particle, from a first fold.
        """
        backend, n = self.backend, self.particles.n
        counted, work = backend.download(counts), backend.download(self._work_order)
        readers = work if len(work) else np.arange(n, dtype=np.int32)
        offsets, place = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
        np.cumsum(counted[readers], out=offsets[1:])
        place[readers] = offsets[:-1]
        total = int(offsets[-1])
        remedy = "take a smaller distance, another search or fewer particles"
        checks.require_bytes(f"{total} partners in all", 8 * total, backend.free_memory(), remedy)
        partners = backend.empty(total, np.int32)
        if total:
            self._partner_counts(reach2, radius, backend.upload(place), partners)
        return AccessStream(offsets, backend.download(partners), readers)

    def _partner_counts(self, reach2: float, radius: Array, *stored: Array) -> Array:
        """Return the (n,) int64 number of partners of each particle, and store the partners if there is room.

        Args:
            reach2: square of the search radius.
            radius: (n,) of each particle, if the search radius is in sums of two radii; or (0,).
            stored: `CollectPartners.offsets` and `CollectPartners.partners`; nothing to count only.
        """
        backend, n = self.backend, self.particles.n
        counts, reach = backend.empty(n, np.int64), np.array([reach2], self.grid.precision)
        stored = stored or (backend.zeros(n, np.int64), backend.empty(0, np.int32))
        law = CollectPartners(reach, radius, *stored)
        self._fold(law, law, counts)
        return counts

    def _velocities(self, law: Any) -> tuple[Array, Mapping[str, int]]:
        """Return the velocities for a kernel, and its constants: those of packed rows, if it reads them."""
        p = self.particles
        if p.is_packed and self.capabilities.packs and self.backend.packs_rows_for(law):
            return p.velocities, p.constants
        return p.vel, {}

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        """Fold a law over the partners of each particle."""
        p = self.particles
        vel, constants = self._velocities(law)
        kernels = self.backend.kernels(type(self).__module__, law, constants)
        work = () if self.capabilities.moves_particles else (p.work,)
        try:
            fold = getattr(kernels, self._kernel)
        except AttributeError as error:
            module = type(self).__module__
            raise TypeError(
                f"{type(self).__name__} has no kernel `{self._kernel}` in its module {module}; allowed: a "
                "function under `sfc.compile.kernel` in the file of the class, as in md/search/grid/naive.py"
            ) from error
        rows = p.n, p.pos, vel, *work
        fold(*self._threads, *rows, *self.structure(), self.grid.record, parameters, out)
