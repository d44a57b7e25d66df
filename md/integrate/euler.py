"""Euler's scheme with a step that the fastest particle sets."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numba
import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.backend.jit import kernel
from md.backend.prelude import add_scaled, dot, load, store
from md.grid import Grid
from md.integrate.moving import Placing, place
from md.integrate.strategy import Integrator
from md.outside import Outside, outside, radius_of
from md.state import Particles


class AdaptiveEuler(Integrator):
    """Kick, then drift, both by a step in which the fastest particle goes no farther than a radius.

    `dt` is the longest step; the radius is the least of all. First order in dt. What is fastest is found on
    the device that has the particles, before the kick, so that a kick may make up for a little more.
    """

    name = "adaptive_euler"
    pushes = True
    counts = True

    def bind(
        self, particles: Particles, grid: Grid, dt: float, backend: Backend, outside: Outside
    ) -> AdaptiveEuler:
        """A copy that moves these particles by steps of at most `dt` time units."""
        bound = super().bind(particles, grid, dt, backend, outside)
        bound._most = backend.upload(np.array([np.nan]))  # until a step is taken
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

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Find the step, kick and drift by it; with what acts from outside."""
        p, kernels, around = self._particles, self._backend.kernels(__name__), self._outside
        around.at(0.0, elapsed=self._elapsed)
        self._backend.fill(self._most, 0)
        kernels.fastest(p.n, p.vel, self._grid.record, self._most)
        kernels.kick_and_drift(
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

    def strides(self, step: int) -> Array:
        """As they were found."""
        return self._strides

    def last_drift(self) -> float:
        """The last step; 0 where none was taken since the simulation was loaded."""
        most = float(self._backend.download(self._most)[0])
        return 0.0 if math.isnan(most) else float(self._real(self.stride(math.sqrt(most))))

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocities as they are."""
        return self._kicked(force, 0.0)


@kernel(parallel=True)
def fastest(n, vel, grid, most):
    """most[0] = square of the largest speed."""
    found = 0.0
    for i in numba.prange(n):
        v = load(vel, i, grid[0])
        found = max(found, float(dot(v, v)))
    most[0] = found


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
    strides,
    clock,
    turn,
    grid,
    fault,
):
    """Kick and drift by the time in which the fastest goes no farther than `reach`, or the longest.

    A device counts the step.
    """
    dt = min(longest, reach / math.sqrt(most[0])) if most[0] > 0 else longest
    elapsed[0] += dt
    stride = vel.dtype.type(dt)
    strides[:] = stride
    for i in numba.prange(n):
        g, o = grid[0], field[0]
        r, v = load(pos, i, g), load(vel, i, g)
        own = radius_of(o, radius, i)
        v = add_scaled(v, stride, outside(o, own, now, g, r, v, load(force, i, g)))
        store(vel, i, v)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, stride, v))
