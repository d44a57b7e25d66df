"""Reordering along an ordering of the cells: the particles in memory, or the work on them."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from md import checks
from md.backend import Backend, Cpu, Timings
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.reorder.triggers import RunTrigger, RunView, Trigger
from md.search.base import Search
from md.search.sorted_copy import SortedCopySearch
from sfc import Curve

MODES = ("data", "threads", "shadow")
ROUTES = ("device", "host")
SCHEDULED = "a function of the step"


@dataclass
class Reorder:
    """What order, when, what moves, and where the work is done.

    Args:
        ordering: a name of `sfc.orderings(dim)` or a curve; ranks the cells.
        schedule: when, such as `md.Every(500)`, `md.Moved(0.5)`, `md.Decayed("auto")`, or any function of
            the step.
        mode: what takes the new order. "data": position, velocity and id move to the sorted place.

            The other two leave the particles where they are, and keep the permutation of the last reorder
            until the next one; before the first it leaves everything in its place.

            "threads": work item t of the force kernel takes the particle in slot order[t], so that
            neighbouring threads (on the CPU, one turn of a thread after the other) visit neighbouring
            particles. Neither the building of the search's structure nor the integration follows.

            "shadow": the search works on a copy of position and velocity, whose row k is the particle in
            slot order[k]. At every step the phase `build` refreshes the copy from the particles through the
            permutation, and the phase `force` scatters each force through it to its particle's own row. The
            copy takes room for 2 n rows. No fused step: that would move the copy.
        via: where the order is found. "device": where the particles live; "host": they are copied to the
            host, sorted and gathered there on all cores, and copied back, as the thesis does. Under
            "threads" and "shadow" the positions alone go there, and the permutation comes back.

    Attributes:
        is_applied: of one that is bound, whether it has ordered the particles since, or gone on from a run.

    Raises:
        TypeError: an ordering that is neither a name nor a curve, or a schedule that cannot be called.
        ValueError: an unknown mode or route, or (when bound to a grid) an unknown ordering.
    """

    ordering: str | Curve
    schedule: Trigger
    mode: str = "data"
    via: str = "device"

    def __post_init__(self):
        self.ordering = checks.order_of_cells("ordering of Reorder", self.ordering)
        self.mode = checks.word("mode of Reorder", self.mode, MODES)
        self.via = checks.word("via of Reorder", self.via, ROUTES)
        if isinstance(self.schedule, type):
            raise checks.refuse_class("schedule", self.schedule, SCHEDULED, "make one: md.Every(500)")
        checks.function("schedule", self.schedule, SCHEDULED, "such as md.Every(500)")

    def bind(self, particles: ParticleArrays, grid: CellGrid, backend: Backend, timings: Timings) -> Reorder:
        """A copy that reorders these particles, with its rank table and buffers allocated."""
        bound = copy.copy(self)
        bound.is_applied = False
        bound._particles, bound._grid, bound._backend = particles, grid, backend
        place = backend if self.via == "device" else Cpu()
        bound._place, bound._sort = place, CellSort(self.ordering, particles.n, grid, place)
        if self.mode != "data":
            bound._order = bound._sort.order if place is backend else backend.empty(particles.n, np.int32)
            bound._order[...] = backend.upload(np.arange(particles.n, dtype=np.int32))
        if isinstance(self.schedule, RunTrigger):
            bound.schedule = self.schedule.bind(RunView(particles, grid, backend, timings))
        return bound

    @property
    def needs_times(self) -> bool:
        """Whether the schedule goes by the times of phases, or of pieces of fused steps."""
        return isinstance(self.schedule, RunTrigger) and self.schedule.times

    def steps_to_next(self, step: int, most: int) -> int:
        """How many steps may be taken, from this one on, before the schedule has to be asked again.

        Args:
            step: for which it was just asked.
            most: no more than so many; it is asked for each of them.
        """
        if isinstance(self.schedule, RunTrigger):
            return self.schedule.steps_to_next(step, most)
        return next((k for k in range(1, most) if self.schedule(step + k)), most)

    def bind_search(self, search: Search) -> Search:
        """The search bound to the particles, such that it follows the order of this mode."""
        if self.mode == "threads":
            self._particles.work = self._order
        elif self.mode == "shadow":
            search = SortedCopySearch(search, self._order)
        return search.bind(self._particles, self._grid, self._backend)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """Host arrays of what outlives a step beside the particles, for `remember`."""
        kept = {"applied": np.array([self.is_applied], np.int32)}
        if self.mode != "data":
            kept["order"] = self._backend.download(self._order)
        if isinstance(self.schedule, RunTrigger):
            kept |= self.schedule.memory
        return kept

    def remember(self, memory: dict[str, np.ndarray]) -> None:
        """Go on as another one that was bound to this run would.

        Args:
            memory: of the other.

        Raises:
            ValueError: it is none.
        """
        if self.mode != "data":
            order, n = memory.get("order"), self._particles.n
            if order is None or order.dtype != np.int32 or not np.array_equal(np.sort(order), np.arange(n)):
                raise ValueError(f"order {order!r:.100}; allowed: a permutation of {n} slots, int32")
            self._order[...] = self._backend.upload(order)
        applied = memory.get("applied", np.ones(1, np.int32))  # older files do not tell
        if applied.dtype != np.int32 or applied.shape != (1,) or applied[0] not in (0, 1):
            raise ValueError(f"applied {applied!r:.100}; allowed: 0 or 1, int32, shape (1,)")
        self.is_applied = bool(applied[0])
        if isinstance(self.schedule, RunTrigger):
            self.schedule.remember(memory)

    def apply(self, step: int) -> None:
        """Sort by the rank of the cell; stable, so particles of one cell keep their order in memory."""
        self.is_applied = True
        if self.mode == "data":
            self._move()
        else:
            self._find()
        if isinstance(self.schedule, RunTrigger):
            self.schedule.reordered(step)

    def _move(self) -> None:
        particles = self._particles
        if self._place is not self._backend:
            particles = particles.on(self._place)
        self._sort.apply(particles)
        if particles is not self._particles:
            self._particles.take_from(particles)

    def _find(self) -> None:
        pos, backend = self._particles.pos, self._backend
        if self._place is backend:
            self._sort.find(pos)
        else:
            self._sort.find(self._place.upload_rows(backend.download(pos)))
            self._order[...] = backend.upload(self._sort.order)
