"""Base classes of the neighbour searches: a choice with its parameters, and the search that works on a system.

Contract. A search is two classes in one file. The choice (`SearchConfig`) is a frozen dataclass of parameters;
its `build(system)` makes the search (`Search`) with its buffers. The search implements `build`, which makes its
structure from the positions, and `structure`, the arrays that its force kernel takes; forces, pairs, touching
pairs and accesses follow from that kernel. The kernel stands in the same file:
`force(n, pos, vel, work, *structure, grid, law, out)` folds a pair law (`md.laws.pair`) over the partners of
every particle. `work` is `ParticleArrays.work`, the order in which the kernel takes the particles (`slot_of`); a
search that moves the particles has no such parameter. Where a device has another number of threads than one a
particle, that number comes before `n`. On a device `build` and `force` are launches that neither wait nor
allocate, so that steps can be captured (`md.simulation.graph_capture`); a search of which that is not true says
so in its `Capabilities`. When `build` runs is decided by the search's `policy` (`md.search.rebuild`). All
searches find the same pairs; they differ in what they read and where that lies in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

import sfc
from md import checks
from md.backend.base import Array
from md.laws import PairLaw
from md.laws.pair import kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.particles.capabilities import Capabilities
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from md.search.partners import CollectPartners
from md.search.rebuild import EveryStep, RebuildPolicy
from sfc.cache import AccessStream


class SearchConfig(ABC):
    """A neighbour search as a choice: plain parameters, for `Simulation(search=...)`.

    Attributes:
        name: as in `Simulation(search=name)`.
        capabilities: what the search can do.
    """

    name: ClassVar[str]
    capabilities: Capabilities = Capabilities(fusable=True, capturable=True)

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Return the names of the orders along which the search can sort the particles; none if it moves none."""
        return sfc.orderings(dim) if cls.capabilities.moves_particles else ()

    @abstractmethod
    def build(self, system: System) -> Search:
        """Make the search for a system, with its buffers allocated.

        Raises:
            ValueError: parameters that do not fit the box, or a structure there is no memory for.
        """


class Search(ABC):
    """A neighbour search that works on the particles of a system.

    Args:
        config: the choice.
        system: shared state of the simulation.
        grid: cells of its own; None for the system's.
        policy: when the structure is rebuilt; None for at every step.

    Attributes:
        config, system, grid, policy: as given.
        particles, backend: of the system.
        capabilities: of the choice.
    """

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
        self.capabilities: Capabilities = config.capabilities

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config!r} on {self.particles.n} particles>"

    @property
    def name(self) -> str:
        """The name of the choice."""
        return self.config.name

    @property
    def builds(self) -> int:
        """How often the structure was built."""
        return self.policy.builds

    @abstractmethod
    def build(self) -> None:
        """Make the structure from the positions; on a device by launches alone."""

    @abstractmethod
    def structure(self) -> tuple[Any, ...]:
        """Return the arrays and numbers that `force` takes before `grid`."""

    def update(self) -> None:
        """Build if the policy says that the structure is too old; may wait for the device."""
        if self.policy.is_due:
            self.build()
            self.policy.built()

    def rebuild(self) -> None:
        """Build where a plan says so, without a check of whether it is due."""
        self.build()

    def reset(self) -> None:
        """Be as after construction: build before the next step, and plan from that step on.

        So a run that goes on after it was saved and a run that is loaded take the same steps.
        """
        self.policy.reset()

    @property
    def reallocated(self) -> tuple[Array, ...]:
        """Arrays in place of which a build may put others."""
        return ()

    @property
    def boxes(self) -> tuple[Array, Array, Array] | None:
        """Nodes and ropes of a tree of boxes (`md.search.bvh.tree`), and the slot of each leaf, (0,) for its number.

        As they were when forces were last computed; None if the search has no tree.
        """
        return None

    def force(self, law: PairLaw, out: Any) -> None:
        """Fold a pair law over the partners of every particle.

        Args:
            law: the law.
            out: (n, dim) array of the backend, filled: the force on each particle, in memory order; or
                another output that `finish` takes (`md.integrate.fused.KickDrift`).
        """
        law = scaled_to_radii(law, self._radius)
        self._fold(law, kernel_law(law, self.grid.precision), out)

    def accesses(self) -> AccessStream:
        """Return the slots that `force` reads, particle by particle in the order in which it takes them."""
        return self._collect(np.inf, self._no_radius())

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs whose centres are closer than a distance.

        Args:
            cutoff: in d, at most the grid's.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._pairs_of(self._collect(cutoff * cutoff, self._no_radius()))

    def touching(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs that touch: closer than a distance times the sum of their radii.

        Args:
            cutoff: of the law, in d: for two particles whose radii are a half.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._pairs_of(self._collect(cutoff * cutoff, self._radius))

    @property
    def slots(self) -> Array:
        """(n,) int32 slot of the particle in each row that the kernel reads; (0,) where it is the same."""
        return self.backend.empty(0, np.int32)

    @property
    def _radius(self) -> Array:
        """(n,) radius of the particle in each slot that the kernel reads; (0,) where all are a half."""
        return self.particles.radius

    def _no_radius(self) -> Array:
        return self.backend.empty(0, self.grid.precision)

    def _pairs_of(self, stream: AccessStream) -> np.ndarray:
        id = self._ids()
        first = np.repeat(id[stream.readers], np.diff(stream.offsets))
        second = id[stream.reads]
        once = first < second
        pairs = np.column_stack([first[once], second[once]])
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    @property
    def _work_order(self) -> Array:
        """(n,) int32 slots in the order in which the kernel takes them; (0,) for memory order."""
        return self.particles.work

    def _ids(self) -> np.ndarray:
        """(n,) id of the particle in each slot that the kernel reads."""
        return self.backend.download(self.particles.id)

    def _collect(self, reach2: float, radius: Array) -> AccessStream:
        """Count the partners in one fold, and store them in another."""
        n, real = self.particles.n, self.grid.precision
        reach = np.array([reach2], real)
        counts = self.backend.empty(n, np.int64)
        law = CollectPartners(reach, radius, self.backend.zeros(n, np.int64), self.backend.empty(0, np.int32))
        self._fold(law, law, counts)
        work = self.backend.download(self._work_order)
        readers = work if len(work) else np.arange(n, dtype=np.int32)
        offsets, place = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
        np.cumsum(self.backend.download(counts)[readers], out=offsets[1:])
        place[readers] = offsets[:-1]
        found = int(offsets[-1])
        remedy = "ask for a smaller distance, or take another search or fewer particles"
        checks.memory(f"{found} partners in all", 8 * found, self.backend.free_memory(), remedy)
        partners = self.backend.empty(found, np.int32)
        if len(partners):
            law = CollectPartners(reach, radius, self.backend.upload(place), partners)
            self._fold(law, law, counts)
        return AccessStream(offsets, self.backend.download(partners), readers)

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        p = self.particles
        kernels = self.backend.kernels(type(self).__module__, law)
        work = () if self.capabilities.moves_particles else (p.work,)
        kernels.force(p.n, p.pos, p.vel, *work, *self.structure(), self.grid.record, parameters, out)
