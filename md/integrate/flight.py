"""Flight of a flock: velocities change by increments, up to a largest speed, and positions follow."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md.backend.base import Array
from md.backend.prelude import add_scaled, like, load, store, zero
from md.boundaries.external_field import ExternalField, outside, radius_of
from md.checks import number
from md.integrate.base import Integrator, SynchronousStepper
from md.integrate.fused import KickDrift, Placing, limited, place
from md.particles.capabilities import IntegratorCapabilities
from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard
from sfc.compile import kernel

FASTEST = 1e150  # largest speed; its square is finite


@dataclass(frozen=True)
class Flight(Integrator):
    """Flight with a largest speed, for laws of increments (`md.laws.Boids`).

    The new velocity is the old one plus the increment, all from the old state; walls and gravity add their
    acceleration times dt. A velocity longer than `max_speed` is scaled to that length. The position then
    changes by dt times the new velocity, and is wrapped. [flock].

    A wall acts on a boid less than 0.5 from it. A crowd can push a boid through a wall that is too soft: give
    walls a contact time of half of dt or less. The largest speed keeps such steps stable.

    Args:
        max_speed: in units of length per time unit, positive.

    Raises:
        TypeError: a speed that is no number.
        ValueError: a speed that is not positive, or above 1e150.
    """

    name = "flight"
    capabilities = IntegratorCapabilities(
        fusable=True, capturable=True, divisible=True, takes_increments=True
    )
    max_speed: float = 1.0

    def __post_init__(self) -> None:
        remedy = "a speed that no boid reaches for no limit"
        speed = number("max_speed of Flight", self.max_speed, high=FASTEST, above=0, remedy=remedy)
        object.__setattr__(self, "max_speed", speed)

    def build(self, system: System, field: ExternalField) -> FlightStepper:
        """Make the stepper for a system.

        Raises:
            ValueError: a largest speed that is infinite or 0 in the precision of the run, or whose square is.
        """
        return FlightStepper(self, system, field)


class FlightStepper(SynchronousStepper):
    """Stepper for the flight of the particles of a system."""

    def __init__(self, integrator: Flight, system: System, field: ExternalField):
        super().__init__(integrator, system, field)
        numbers = np.finfo(system.precision)
        least, most = float(np.sqrt(numbers.tiny)), float(np.sqrt(numbers.max))
        if not least <= integrator.max_speed <= most:
            finer = ", or precision='float64'" if system.precision == np.float32 else ""
            raise ValueError(
                f"max_speed = {integrator.max_speed:g} of Flight in {system.precision}; allowed: {least:.3g} "
                f"to {most:.3g}, with a square of full precision; take other units{finer}"
            )
        dtype = np.dtype([("max_speed", system.precision), ("dt", system.precision)], align=True)
        self._speed_limit = np.array([(integrator.max_speed, self._dt)], dtype)

    def add_external_field(self, force: Array, step: int, ahead: float = 0.0) -> None:
        """Add dt times the acceleration by gravity and walls to the increment of each particle."""
        field, p = self._field, self._particles
        if not field.acts:
            return
        field.set_time(ahead, *self._now(step))
        self._backend.kernels(__name__).add_field(
            p.n, p.pos, p.vel, p.radius, field.record, field.now, self._real(self._dt), self._record, force
        )

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Add the increments, limit the speed, and drift by dt."""
        p = self._particles
        self._backend.kernels(__name__).fly(
            p.n, p.pos, p.vel, p.id, force, self._speed_limit, *self._now(step), self._record, fault
        )

    def fused_output(self, step: int, fault: Array, guard: DisplacementGuard) -> KickDrift:
        """Return the output by which a force kernel takes the same step, into the spare arrays."""
        return self._moved(1.0, step, fault, guard, self._speed_limit)


@kernel(parallel=True)
def fly(n, pos, vel, id, increments, flight, clock, turn, grid, fault):
    """Add the increments, limit the speed, and drift, pos += dt * vel, wrapped; a device counts the step."""
    for i in numba.prange(n):
        g = grid[0]
        f = flight[0]
        v = load(vel, i, g)
        v = limited(f.max_speed, add_scaled(v, like(v, 1), load(increments, i, g)))
        store(vel, i, v)
        r = load(pos, i, g)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, f.dt, v))


@kernel(parallel=True)
def add_field(n, pos, vel, radius, field, now, dt, grid, increments):
    """Add dt times the acceleration by gravity and walls to the increments."""
    for i in numba.prange(n):
        g = grid[0]
        o = field[0]
        r = load(pos, i, g)
        pull = outside(o, radius_of(o, radius, i), now, g, r, load(vel, i, g), zero(r))
        store(increments, i, add_scaled(load(increments, i, g), dt, pull))
