"""Reordering particles in memory along an ordering of the cells."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from md.backend import Backend, Cpu, Timings
from md.cellsort import CellSort
from md.grid import Grid
from md.schedule import Run, Schedule, Watching
from md.state import Particles
from sfc import Curve

MODES = ("data",)
ROUTES = ("device", "host")


@dataclass
class Reorder:
    """What order, when, what moves, and where the work is done.

    Args:
        ordering: a name of `sfc.orderings(dim)` or a curve; ranks the cells.
        schedule: when, such as `md.Every(500)`, `md.Moved(0.5)`, `md.Decayed("auto")`, or any function of
            the step.
        mode: "data": position, velocity and id move to the sorted place.
        via: "device": where the particles live; "host": they are copied to the host, sorted and gathered
            there on all cores, and copied back, as the thesis does.

    Raises:
        ValueError: an unknown mode or route, or (when bound to a grid) an unknown ordering.
    """

    ordering: str | Curve
    schedule: Schedule
    mode: str = "data"
    via: str = "device"

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"unknown reorder mode {self.mode!r}; known: {', '.join(MODES)}")
        if self.via not in ROUTES:
            raise ValueError(f"unknown reorder route via = {self.via!r}; known: {', '.join(ROUTES)}")
        if not callable(self.schedule):
            raise ValueError(
                f"schedule = {self.schedule!r}; allowed: a function of the step, such as md.Every(500)"
            )

    def bind(self, particles: Particles, grid: Grid, backend: Backend, timings: Timings) -> Reorder:
        """A copy that reorders these particles, with its rank table and buffers allocated."""
        bound = copy.copy(self)
        bound._particles, bound._backend = particles, backend
        place = backend if self.via == "device" else Cpu()
        bound._place, bound._sort = place, CellSort(self.ordering, particles.n, grid, place)
        if isinstance(self.schedule, Watching):
            bound.schedule = self.schedule.bind(Run(particles, grid, backend, timings))
        return bound

    @property
    def needs_times(self) -> bool:
        """Whether the schedule goes by the times of the phases."""
        return isinstance(self.schedule, Watching) and self.schedule.times

    def steps_to_next(self, step: int, most: int) -> int:
        """How many steps may be taken, from this one on, before the schedule has to be asked again.

        Args:
            step: for which it was just asked.
            most: no more than so many.
        """
        if isinstance(self.schedule, Watching):
            return 1
        return next((k for k in range(1, most) if self.schedule(step + k)), most)

    def apply(self, step: int) -> None:
        """Sort the particles by the rank of their cell; stable, so particles of one cell keep their order."""
        particles = self._particles
        if self._place is not self._backend:
            particles = particles.on(self._place)
        self._sort.apply(particles)
        if particles is not self._particles:
            self._particles.take_from(particles)
        if isinstance(self.schedule, Watching):
            self.schedule.reordered(step)
