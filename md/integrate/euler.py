"""Euler's scheme with a step limited by the fastest particle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numba
import numpy as np

from md.backend.base import Array
from md.backend.prelude import add_scaled, dot, load, store
from md.boundaries.external_field import ExternalField, outside, radius_of
from md.integrate.base import Integrator, SynchronousStepper
from md.integrate.fused import Placing, place
from md.particles.capabilities import IntegratorCapabilities
from md.particles.system import System
from sfc.compile import kernel


@dataclass(frozen=True)
class AdaptiveEuler(Integrator):
    """Kick, then drift, both by a step in which the fastest particle moves at most a radius.

    `dt` is the longest step; the radius is the smallest of all. First order in dt. Each kick computes the
    largest speed for the next step, on the device that stores the particles; the next kick may increase it a
    little.
    """

    name = "adaptive_euler"
    capabilities = IntegratorCapabilities(capturable=True, adds_external_field=True, kicks_and_drifts=True)

    def build(self, system: System, field: ExternalField) -> AdaptiveEulerStepper:
        """Make the stepper for a system; its steps are at most `dt` long."""
        return AdaptiveEulerStepper(self, system, field)


class AdaptiveEulerStepper(SynchronousStepper):
    """Stepper for Euler steps of the particles of a system, as long as the fastest particle allows."""

    def __init__(self, integrator: AdaptiveEuler, system: System, field: ExternalField):
        super().__init__(integrator, system, field)
        backend = system.backend
        self._most, self._is_known = backend.zeros(2, np.float64), False
        self._reach = system.particles.narrowest / 2
        self._elapsed, self._step_times = backend.zeros(1, np.float64), backend.zeros(2, np.float64)

    def time(self, step: int) -> float:
        """Return the time passed, in time units; the number of steps is not used."""
        return float(self._backend.download(self._elapsed)[0])

    def time_of_step(self, speed: float) -> float:
        """Return the length of a step: `dt`, or the time in which the fastest particle moves a radius."""
        return min(self._dt, self._reach / speed) if speed > 0 else self._dt

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the time passed: `elapsed`, (1,) float64."""
        return {"elapsed": self._backend.download(self._elapsed)}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the time passed.

        Raises:
            ValueError: `elapsed` is missing or not a time.
        """
        found = state.get("elapsed")
        if found is None or found.shape != (1,) or found.dtype != np.float64 or not 0 <= found[0] < np.inf:
            raise ValueError(f"elapsed = {found!r}; allowed: (1,) float64, finite and not negative")
        self._elapsed[...] = self._backend.upload(found)

    def add_external_field(self, force: Array, step: int, ahead: float = 0.0) -> None:
        """Add gravity and walls at the present time to the force on each particle."""
        self._field.set_time(0.0, elapsed=self._elapsed)
        self._field.add_forces(force)

    def velocities_changed(self, step: int) -> None:
        """Compute the largest speed before a step."""
        p, turn = self._particles, step % 2
        self._backend.fill(self._most[turn : turn + 1], 0)
        self._backend.kernels(__name__).fastest(p.n, p.vel, turn, self._record, self._most)
        self._is_known = True

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick and drift with gravity and walls, and compute the largest speed after it."""
        if not self._is_known:
            self.velocities_changed(step)
        p, around, turn = self._particles, self._field, step % 2
        around.set_time(0.0, elapsed=self._elapsed)
        self._backend.fill(self._most[1 - turn : 2 - turn], 0)
        particles = p.n, p.pos, p.vel, p.id, p.radius
        forces = force, around.record, around.now
        times = self._dt, self._reach, self._most, self._elapsed, self._step_times
        kernels = self._backend.kernels(__name__)
        kernels.kick_and_drift(*particles, *forces, *times, *self._now(step), self._record, fault)

    def step_times(self, step: int) -> Array:
        """Return the times of kick and drift, which are equal: (2,) float64 array of the backend."""
        return self._step_times

    def last_drift(self) -> float:
        """Return the length of the last step; 0 if none was taken since the simulation was loaded."""
        return float(self._backend.download(self._step_times)[1])


@kernel(parallel=True)
def fastest(n, vel, turn, grid, most):
    """Store the square of the largest speed in most[turn]."""
    found = 0.0
    for i in numba.prange(n):
        v = load(vel, i, grid[0])
        found = max(found, float(dot(v, v)))
    most[turn] = found


@kernel(parallel=True)
def kick_and_drift(
    n,
    pos,
    vel,
    id,
    radius,
    force,
    field,
    now,
    longest,
    reach,
    most,
    elapsed,
    step_times,
    clock,
    turn,
    grid,
    fault,
):
    """Kick and drift by the time in which the fastest particle moves `reach`, at most by `longest`.

    most[turn] is the square of the largest speed before, most[1 - turn] after. On a device count the step.
    """
    dt = min(longest, reach / math.sqrt(most[turn])) if most[turn] > 0 else longest
    elapsed[0] += dt
    found = 0.0
    stride = vel.dtype.type(dt)
    step_times[:] = stride
    for i in numba.prange(n):
        g, o = grid[0], field[0]
        r, v = load(pos, i, g), load(vel, i, g)
        own = radius_of(o, radius, i)
        v = add_scaled(v, stride, outside(o, own, now, g, r, v, load(force, i, g)))
        store(vel, i, v)
        found = max(found, float(dot(v, v)))
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, stride, v))
    most[1 - turn] = found
