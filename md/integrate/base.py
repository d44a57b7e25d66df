"""What an integrator is.

Contract. An integrator advances positions and velocities by `dt` from the force at the present positions,
wraps the positions into the box, and reports the first particle it cannot place in the fault word:
`(2 * step + escaped) << 32 | id`, left alone while all is well. One that can be fused gives an output for the
search's force kernel in place of a force array: the kernel then moves each particle as soon as its force
is known, into the spare arrays, because others still read the old ones.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from md.backend.base import Array, Backend
from md.boundaries.external_field import ExternalField
from md.integrate import leapfrog
from md.integrate.fused import KickDrift
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.displacement_guard import DisplacementGuard


class Integrator(ABC):
    """Base of the integrators.

    Attributes:
        name: as in `Simulation(integrator=name)`.
        fuses: whether `fused` is there.
        relaxes: whether it takes overlaps out of a start, so that a deep one is no fault, and leaves
            velocities alone, so that there is no energy to watch.
        prepares: whether it has something to do before the force is asked for.
        pushes: whether `advance` adds itself what acts from outside, so that `push` need not before it.
        counts: whether the last kernel of `advance` has a device count the step (`_now`), and all is done by
            launches that wait for nothing and allocate nothing, so that steps can be recorded (`md.simulation.graph_capture`).
        lead: how far the positions at which it asks for the force are ahead, in steps.
    """

    name: ClassVar[str]
    fuses: ClassVar[bool] = False
    relaxes: ClassVar[bool] = False
    prepares: ClassVar[bool] = False
    pushes: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    lead: ClassVar[float] = 0.0

    def bind(
        self, particles: ParticleArrays, grid: CellGrid, dt: float, backend: Backend, outside: ExternalField
    ) -> Integrator:
        """A copy that moves these particles by steps of `dt` time units."""
        bound = copy.copy(self)
        bound._outside = outside
        bound._particles, bound._grid, bound._backend = particles, grid, backend
        bound._dt, bound._real = dt, grid.precision.type
        bound._clock = backend.zeros(2, np.int64)
        return bound

    def time(self, step: int) -> float:
        """Time passed after so many steps, in time units."""
        return step * self._dt

    def stride(self, speed: float) -> float:
        """Time by which a step carries the particles, in time units.

        Args:
            speed: of the fastest of them, in d per time unit.
        """
        return self._dt

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """What a run needs to go on, besides particles and step: name -> array on the host."""
        return {}

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go on from such a memory, in which others may have more.

        Raises:
            ValueError: it is none of this integrator's.
        """
        return

    def push(self, force: Array, step: int, ahead: float = 0.0) -> None:
        """Add to the force on each particle what acts from outside.

        Args:
            force: (n, dim) array, changed.
            step: of the positions.
            ahead: by how much they are later than that, in steps.
        """
        if not self._outside.acts:
            return
        if self.counts:
            self._outside.at(ahead, *self._now(step))
        else:
            self._outside.at(step + ahead)
        self._outside.push(force)

    def see_velocities(self, step: int) -> None:
        """Take note that before a step velocities were changed by another (`md.boundaries.base.ActiveBoundary.changes_velocities`)."""
        return

    def prepare(self, step: int, fault: Array) -> None:
        """What comes before the force; as for `advance`."""
        return

    @abstractmethod
    def advance(self, force: Array, step: int, fault: Array) -> None:
        """One step from the force at the present positions.

        Args:
            force: (n, dim) force on each particle.
            step: number of the step, counted from 0.
            fault: (1,) uint64 fault word.
        """

    def fused(self, step: int, fault: Array, pace: DisplacementGuard) -> KickDrift:
        """The output to give a force kernel in place of a force array, so that it takes this step.

        Args:
            step: number of the step, counted from 0; a device counts by itself (`_now`).
            fault: (1,) uint64 fault word.
            pace: of the search.
        """
        raise NotImplementedError(f"integrator {self.name!r} cannot be fused")

    @abstractmethod
    def velocity_now(self, force: Array, step: int) -> Array:
        """Velocities at the time of the present positions: a new (n, dim) array.

        Args:
            force: (n, dim) force at the present positions.
            step: number of the step that would come next.
        """

    def step_times(self, step: int) -> Array | None:
        """Times by which a step just taken kicked and drifted: (2,) float64 array of the backend.

        None where a step is not one kick and one drift by the velocity after it.
        """
        return None

    def last_drift(self) -> float:
        """Time by which the velocities as they are carried the particles in the last step.

        0 where they are not those that did; then `md.observe` cannot tell which contacts began in it.
        """
        return float(self._real(self._dt))

    def set_clock(self, step: int) -> None:
        """Give the number of the next step, where it does not follow the one before."""
        self._clock[...] = step

    def _now(self, step: int) -> tuple[Array, int]:
        """A clock for kernels and which entry of it is the number of the step.

        So what is recorded for one step holds for another. On a device the step's last kernel sets the other
        entry to the number of the next one.
        """
        if not self._backend.runs_ahead:
            self.set_clock(step)
        return self._clock, step % 2

    def _kicked(self, force: Array, kick: float) -> Array:
        p = self._particles
        out = self._backend.rows(p.n, p.box.dim, self._grid.precision)
        self._backend.kernels(leapfrog.__name__).kicked(
            p.n, p.vel, force, self._real(kick), self._grid.record, out
        )
        return out
