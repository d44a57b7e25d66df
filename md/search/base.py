"""What a neighbour search is.

Contract. A search is bound to particles, a grid and a backend. `build` brings its structure up to date
with the positions; `force` folds a pair law (`md.laws.pair`) over the partners of every particle. Its
kernels stand in its own file: `force(n, pos, vel, work, *structure, grid, law, out)` beside whatever `build`
needs. `work` is `ParticleArrays.work`, in whose order the kernel takes the particles (`slot_of`); a
search that sorts the data has no such parameter. Where a device's threads are not one a particle, their
number comes before `n`. On a device `build` and `force` are launches alone, that wait for nothing and
allocate nothing, so that steps can be recorded (`md.simulation.graph_capture`); where `build` cannot be, `records` is False,
and `rebuild` is what fused steps do instead. Every search yields the same pair set; they differ in what they
read and where it lies.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

import sfc
from md import checks
from md.backend.base import Array, Backend
from md.laws import PairLaw
from md.laws.pair import kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.displacement_guard import DisplacementGuard, unguarded
from md.search.partners import CollectPartners
from sfc.cache import AccessStream

MANY_STEPS = 2**30


class StepPlan(NamedTuple):
    """Steps with nothing to decide in between.

    Attributes:
        steps: how many at most.
        build: whether the structure is to be built (`Search.rebuild`) before the first of them.
        rebuild: and before each of the others.
    """

    steps: int
    build: bool
    rebuild: bool


class Search(ABC):
    """Base of the neighbour searches.

    Attributes:
        name: as in `Simulation(search=name)`.
        sorts_data: whether `build` moves the particles, so that neither a separate reorder nor a work order
            makes sense.
        repeats_on: backends on which the same run gives the same bits.
        fuses: whether its force kernel can take the integrator's step (`md.integrate.fused`): it has the
            whole force on a particle at once, in the particle's own slot.
        records: whether steps that are not fused can be recorded too (`md.simulation.graph_capture`).
    """

    name: ClassVar[str]
    sorts_data: ClassVar[bool] = False
    repeats_on: tuple[str, ...] = ("cpu", "cuda")
    fuses: bool = True
    records: ClassVar[bool] = True

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Names of the orders along which `build` can sort the particles; none where it leaves them."""
        return sfc.orderings(dim) if cls.sorts_data else ()

    def bind(self, particles: ParticleArrays, grid: CellGrid, backend: Backend) -> Search:
        """A copy of this search that works on these particles, with its buffers allocated."""
        bound = copy.copy(self)
        bound.particles, bound.grid, bound.backend = particles, grid, backend
        bound._unguarded = unguarded(backend)
        bound._allocate()
        return bound

    @abstractmethod
    def _allocate(self) -> None:
        """Make the buffers of the structure."""

    @abstractmethod
    def build(self) -> None:
        """Bring the structure up to date with the positions."""

    @abstractmethod
    def _structure(self) -> tuple[Array, ...]:
        """The arrays `force` takes before `grid`."""

    def forget(self) -> None:
        """Be as after binding: build anew before the next step, and plan by that step and those after alone.

        So a run goes on in the same way from where it was saved and from what was saved.
        """
        return

    def plan(self) -> StepPlan:
        """What comes before the next steps, and how many they may be; those that halt are fused ones."""
        return StepPlan(MANY_STEPS, build=True, rebuild=True)

    def rebuild(self) -> None:
        """Build, where `plan` says so; on a device by launches alone, so that it can be recorded."""
        self.build()

    @property
    def pace(self) -> DisplacementGuard:
        """What a fused step is told."""
        return self._unguarded

    @property
    def replaced(self) -> tuple[Array, ...]:
        """Arrays in place of which a build may put others."""
        return ()

    @property
    def boxes(self) -> tuple[Array, Array, Array] | None:
        """Nodes and ways of a tree of boxes (`md.search.bvh.tree`), and the slot of each leaf, (0,) for its number.

        As the last fold found them; None where there is none.
        """
        return None

    def steps_taken(self, plan: StepPlan) -> None:
        """Take note of steps that were launched in a piece, or fused."""
        return

    def step_taken(self) -> None:
        """Take note of a step that was taken by itself, not fused."""
        return

    @property
    def status(self) -> Array:
        """A small array that tells how fused steps fare, for `process`; empty if nothing can halt them."""
        return self._unguarded.fastest

    def process(self, status: np.ndarray, dt: float) -> int:
        """Plan by what the signs told at some moment.

        Args:
            signs: a copy of `status` on the host.
            dt: length of a fused step in time units.

        Returns:
            Fused steps that were halted (`md.search.displacement_guard`) up to then.
        """
        return 0

    @property
    def tunes(self) -> bool:
        """Whether the search wants to know how long steps take (`timed`)."""
        return False

    def timed(self, ms: float, steps: int) -> None:
        """Take note of how long some steps took."""
        return

    def resume(self) -> None:
        """After steps were halted, and all work given is done: be ready to take them again."""
        return

    def force(self, law: PairLaw, out: Array) -> None:
        """Fold a pair law over the partners of every particle.

        Args:
            law: the law.
            out: (n, dim) array of the backend, filled: the force on each particle, in memory order; or
                another output that `finish` takes (`md.integrate.fused.KickDrift`).
        """
        law = scaled_to_radii(law, self._radius)
        self._fold(law, kernel_law(law, self.grid.precision), out)

    def accesses(self) -> AccessStream:
        """The slots that `force` reads, particle by particle in the order in which it takes them."""
        return self._collect(np.inf, self._no_radius())

    def pairs(self, cutoff: float) -> np.ndarray:
        """Ids of the pairs whose centres are closer than a distance.

        Args:
            cutoff: in d, at most the grid's.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._named(self._collect(cutoff * cutoff, self._no_radius()))

    def touching(self, cutoff: float) -> np.ndarray:
        """Ids of the pairs that touch: closer than a distance times the sum of their radii.

        Args:
            cutoff: of the law, in d: for two particles whose radii are a half.

        Returns:
            (p, 2) int32 ids with i < j, sorted.
        """
        return self._named(self._collect(cutoff * cutoff, self._radius))

    @property
    def slots(self) -> Array:
        """(n,) int32 slot of the particle in each row that the kernel reads; (0,) where it is the same."""
        return self.backend.empty(0, np.int32)

    @property
    def _radius(self) -> Array:
        """(n,) of whoever is in each slot that the kernel reads; (0,) where all are a half."""
        return self.particles.radius

    def _no_radius(self) -> Array:
        return self.backend.empty(0, self.grid.precision)

    def _named(self, stream: AccessStream) -> np.ndarray:
        id = self._ids()
        first = np.repeat(id[stream.readers], np.diff(stream.offsets))
        second = id[stream.reads]
        once = first < second
        pairs = np.column_stack([first[once], second[once]])
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    @property
    def _turns(self) -> Array:
        """(n,) int32 slots in the order in which the kernel takes them; (0,) for memory order."""
        return self.particles.work

    def _ids(self) -> np.ndarray:
        """(n,) id of whoever is in each slot that the kernel reads."""
        return self.backend.download(self.particles.id)

    def _collect(self, reach2: float, radius: Array) -> AccessStream:
        """Two folds: one counts the partners, one writes them down."""
        n, real = self.particles.n, self.grid.precision
        reach = np.array([reach2], real)
        counts = self.backend.empty(n, np.int64)
        law = CollectPartners(reach, radius, self.backend.zeros(n, np.int64), self.backend.empty(0, np.int32))
        self._fold(law, law, counts)
        turns = self.backend.download(self._turns)
        readers = turns if len(turns) else np.arange(n, dtype=np.int32)
        offsets, place = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
        np.cumsum(self.backend.download(counts)[readers], out=offsets[1:])
        place[readers] = offsets[:-1]
        found, remedy = (
            int(offsets[-1]),
            "ask for a smaller distance, or take another search or fewer particles",
        )
        checks.memory(f"{found} partners in all", 8 * found, self.backend.free_memory(), remedy)
        partners = self.backend.empty(found, np.int32)
        if len(partners):
            law = CollectPartners(reach, radius, self.backend.upload(place), partners)
            self._fold(law, law, counts)
        return AccessStream(offsets, self.backend.download(partners), readers)

    def _fold(self, law, parameters, out: Array) -> None:
        p = self.particles
        kernels = self.backend.kernels(type(self).__module__, law)
        work = () if self.sorts_data else (p.work,)
        kernels.force(p.n, p.pos, p.vel, *work, *self._structure(), self.grid.record, parameters, out)
