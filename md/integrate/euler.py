"""Euler's scheme with a step that the fastest particle sets."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numba
import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.backend.prelude import add_scaled, dot, load, store
from md.boundaries.external_field import ExternalField, outside, radius_of
from md.integrate.base import Integrator
from md.integrate.fused import Placing, place
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from sfc.compile import kernel


class AdaptiveEuler(Integrator):
    """Kick, then drift, both by a step in which the fastest particle goes no farther than a radius.

    `dt` is the longest step; the radius is the least of all. First order in dt. What is fastest each kick
    finds for the next, on the device that has the particles: the kick in between may make up for a little
    more.
    """

    name = "adaptive_euler"
    pushes = True
    counts = True

    def bind(
        self, particles: ParticleArrays, grid: CellGrid, dt: float, backend: Backend, outside: ExternalField
    ) -> AdaptiveEuler:
        """A copy that moves these particles by steps of at most `dt` time units."""
        bound = super().bind(particles, grid, dt, backend, outside)
        bound._most, bound._is_known = backend.zeros(2, np.float64), False
        bound._reach = particles.narrowest / 2
        bound._elapsed, bound._strides = backend.zeros(1, np.float64), backend.zeros(2, np.float64)
        return bound

    def time(self, step: int) -> float:
        """Time passed, in time units."""
        return float(self._backend.download(self._elapsed)[0])

    def stride(self, speed: float) -> float:
        """As the step is found."""
        return min(self._dt, self._reach / speed) if speed > 0 else self._dt

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """The time passed."""
        return {"elapsed": self._backend.download(self._elapsed)}

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        """The time passed.

        Raises:
            ValueError: it is no time.
        """
        found = memory.get("elapsed")
        if found is None or found.shape != (1,) or found.dtype != np.float64 or not 0 <= found[0] < np.inf:
            raise ValueError(f"elapsed = {found!r}; allowed: (1,) float64, finite and not negative")
        self._elapsed[...] = self._backend.upload(found)

    def push(self, force: Array, step: int, ahead: float = 0.0) -> None:
        """Add what acts from outside at the time passed."""
        if self._outside.acts:
            self._outside.at(0.0, elapsed=self._elapsed)
            self._outside.push(force)

    def see_velocities(self, step: int) -> None:
        """Find what is fastest before a step."""
        p, turn = self._particles, step % 2
        self._backend.fill(self._most[turn : turn + 1], 0)
        self._backend.kernels(__name__).fastest(p.n, p.vel, turn, self._grid.record, self._most)
        self._is_known = True

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick and drift, with what acts from outside, and find what is fastest then."""
        if not self._is_known:
            self.see_velocities(step)
        p, around, turn = self._particles, self._outside, step % 2
        around.at(0.0, elapsed=self._elapsed)
        self._backend.fill(self._most[1 - turn : 2 - turn], 0)
        self._backend.kernels(__name__).kick_and_drift(
            p.n,
            p.pos,
            p.vel,
            p.id,
            p.radius,
            force,
            around.record,
            around.now,
            self._dt,
            self._reach,
            self._most,
            self._elapsed,
            self._strides,
            *self._now(step),
            self._grid.record,
            fault,
        )

    def step_times(self, step: int) -> Array:
        """As they were found."""
        return self._strides

    def last_drift(self) -> float:
        """The last step; 0 where none was taken since the simulation was loaded."""
        return float(self._backend.download(self._strides)[1])

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocities as they are."""
        return self._kicked(force, 0.0)


@kernel(parallel=True)
def fastest(n, vel, turn, grid, most):
    """most[turn] = square of the largest speed."""
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
    """Kick and drift by the time in which the fastest goes no farther than `reach`, or the longest.

    most[turn] = square of the largest speed before, most[1 - turn] after. A device counts the step.
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
