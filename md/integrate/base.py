"""Base classes of the integrators: the configuration, and the stepper that moves the particles of a system.

Contract. A stepper advances positions and velocities by `dt` from the force at the present positions, wraps
the positions into the box, and stores the first particle it cannot place in the fault word:
`(2 * step + escaped) << 32 | id`; the word is not changed if there is none. A fusable stepper returns an
output for the search's force kernel in place of a force array: the kernel then moves each particle as soon as
its force is known, into the spare arrays, because other threads still read the old ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from md.backend.base import Array
from md.boundaries.external_field import ExternalField
from md.integrate import leapfrog
from md.integrate.fused import KickDrift
from md.particles.capabilities import Capable, IntegratorCapabilities
from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard


class Integrator(Capable, ABC):
    """Configuration of a time stepping scheme: plain parameters, for `Simulation(integrator=...)`.

    Attributes:
        name: as in `Simulation(integrator=name)`.
        capabilities: what its stepper supports.
        lead: time in steps from the stored positions to those at which the scheme needs the force.
    """

    name: ClassVar[str]
    capabilities: IntegratorCapabilities = IntegratorCapabilities()
    lead: ClassVar[float] = 0.0

    @abstractmethod
    def build(self, system: System, field: ExternalField) -> Stepper:
        """Make the stepper for a system and its external field."""


class Stepper(ABC):
    """Time stepping scheme that moves the particles of a system.

    Args:
        integrator: its configuration.
        system: shared state of the simulation.
        field: gravity and walls.

    Attributes:
        integrator, system: as given.
        capabilities, lead: of the configuration.
    """

    def __init__(self, integrator: Integrator, system: System, field: ExternalField):
        self.integrator, self.system = integrator, system
        self.capabilities: IntegratorCapabilities = integrator.capabilities
        self.lead = integrator.lead
        self._field, self._backend = field, system.backend
        self._dt, self._real = system.dt, system.precision.type
        self._particles, self._record = system.particles, system.grid.record
        self._clock = system.backend.zeros(2, np.int64)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.system!r}>"

    @property
    def name(self) -> str:
        """Name of the integrator, as in `Simulation(integrator=name)`."""
        return self.integrator.name

    @property
    def depends_on_time(self) -> bool:
        """Whether the host prepares the external field for each step."""
        return self._field.depends_on_time

    def time(self, step: int) -> float:
        """Return the time after so many steps, in time units."""
        return step * self._dt

    def time_of_step(self, speed: float) -> float:
        """Return the length of a step, in time units.

        Args:
            speed: of the fastest particle, in d per time unit.
        """
        return self._dt

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the state that a run needs to resume besides particles and step: name -> host array."""
        return {}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` of a stepper of this class returned; ignore other entries.

        Raises:
            ValueError: an entry is missing or of another kind.
        """
        return

    def add_external_field(self, force: Array, step: int, ahead: float = 0.0) -> None:
        """Add gravity and walls to the force on each particle.

        Args:
            force: (n, dim) array, changed.
            step: number of the step.
            ahead: time in steps from that step to the positions.
        """
        if not self._field.acts:
            return
        if self.capabilities.capturable:
            self._field.set_time(ahead, *self._now(step))
        else:
            self._field.set_time(step + ahead)
        self._field.add_forces(force)

    def velocities_changed(self, step: int) -> None:
        """Update the stepper after a boundary has changed velocities.

        Args:
            step: number of the next step.
        """
        return

    def prepare(self, step: int, fault: Array) -> None:
        """Move the particles before their force is computed; arguments as for `advance`."""
        return

    @abstractmethod
    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Take one step from the force at the present positions.

        Args:
            force: (n, dim) force on each particle.
            step: number of the step, counted from 0.
            fault: (1,) uint64 fault word.
        """

    def fused_output(self, step: int, fault: Array, guard: DisplacementGuard) -> KickDrift:
        """Return the output of a force kernel that takes this step instead of filling a force array.

        Args:
            step: number of the step, counted from 0; a device counts steps itself (`_now`).
            fault: (1,) uint64 fault word.
            guard: of the search's policy.
        """
        raise NotImplementedError(f"integrator {self.name!r} cannot be fused")

    @abstractmethod
    def velocity_now(self, force: Array, step: int) -> Array:
        """Return the velocities at the time of the present positions: a new (n, dim) array.

        Args:
            force: (n, dim) force at the present positions.
            step: number of the next step.
        """

    def step_times(self, step: int) -> Array:
        """Return the times of the kick and the drift of the last step: (2,) float64 array of the backend.

        Only for a scheme with `IntegratorCapabilities.kicks_and_drifts`: its step is one kick and one drift
        by the velocity after the kick.
        """
        raise NotImplementedError(f"a step of integrator {self.name!r} is not one kick and one drift")

    def last_drift(self) -> float:
        """Return the time for which the present velocities moved the particles in the last step.

        0 if other velocities moved them; then `md.observe` cannot determine which contacts started in the
        step.
        """
        return float(self._real(self._dt))

    def set_clock(self, step: int) -> None:
        """Set the number of the next step, if it does not follow the last one."""
        self._clock[...] = step

    def _now(self, step: int) -> tuple[Array, int]:
        """Return the clock for kernels, and the index of its entry that is the number of the step.

        So a captured step can be launched as another step. On a device the step's last kernel sets the other
        entry to the number of the next step.
        """
        if not self._backend.runs_ahead:
            self.set_clock(step)
        return self._clock, step % 2

    def _kick_and_drift(self, force: Array, kick: float, drift: float, step: int, fault: Array) -> None:
        """Kick and drift the particles by two times; other arguments as for `advance`."""
        p, real = self._particles, self._real
        self._backend.kernels(leapfrog.__name__).kick_drift(
            p.n, p.pos, p.vel, p.id, force, real(kick), real(drift), *self._now(step), self._record, fault
        )

    def _moved(
        self, kick: float, step: int, fault: Array, guard: DisplacementGuard, flight: np.ndarray | None = None
    ) -> KickDrift:
        """Return the output of a step of a kick by some time and a drift by dt, into the spare arrays.

        `flight` is that of the output; other arguments as for `fused_output`.
        """
        p, real, field, now = self._particles, self._real, self._field, self._now(step)
        pos, vel = p.spare
        times = real(kick), real(self._dt)
        moved = KickDrift(pos, vel, p.id, *times, fault, *now, *guard, flight=flight)
        if not field.acts:
            return moved
        field.set_time(0.0, *now)
        return moved._replace(outside=field.record, now=field.now, radius=p.radius)

    def _kicked(self, force: Array, kick: float) -> Array:
        """Return the velocities after a kick by the force."""
        p, real = self._particles, self._real
        out = self._backend.rows(p.n, p.box.dim, self.system.precision)
        self._backend.kernels(leapfrog.__name__).kicked(p.n, p.vel, force, real(kick), self._record, out)
        return out


class SynchronousStepper(Stepper):
    """Stepper of a scheme in which velocities are at the time of the positions."""

    def velocity_now(self, force: Array, step: int) -> Array:
        """Return a copy of the velocities."""
        return self._kicked(force, 0.0)
