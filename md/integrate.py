"""Moving the particles by one step. A new integrator is a class and one line here.

Contract. An integrator advances positions and velocities by `dt` from the force at the present positions,
wraps the positions into the box, and reports the first particle it cannot place in the fault word:
`(2 * step + escaped) << 32 | id`, left alone while all is well.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar

import numba
import numpy as np

from md.backend.base import Array, Backend
from md.backend.cpu import kernel
from md.grid import Grid
from md.state import Particles


class Integrator(ABC):
    """Base of the integrators.

    Attributes:
        name: as in `Simulation(integrator=name)`.
    """

    name: ClassVar[str]

    def bind(self, particles: Particles, grid: Grid, dt: float, backend: Backend) -> Integrator:
        """A copy that moves these particles by steps of `dt` time units."""
        bound = copy.copy(self)
        bound._particles, bound._grid, bound._backend = particles, grid, backend
        bound._dt, bound._real = dt, grid.precision.type
        return bound

    @abstractmethod
    def advance(self, force: Array, step: int, fault: Array) -> None:
        """One step from the force at the present positions.

        Args:
            force: (n, dim) force on each particle.
            step: number of the step, counted from 0.
            fault: (1,) uint64 fault word.
        """

    @abstractmethod
    def velocity_now(self, force: Array, step: int) -> Array:
        """Velocities at the time of the present positions: a new (n, dim) array.

        Args:
            force: (n, dim) force at the present positions.
            step: number of the step that would come next.
        """

    def _kick_drift(self, kick: float, drift: float, force: Array, step: int, fault: Array) -> None:
        p, real = self._particles, self._real
        self._backend.kernels(__name__).kick_drift(
            p.n, p.pos, p.vel, p.id, force, real(kick), real(drift), step, self._grid.record, fault
        )

    def _kicked(self, force: Array, kick: float) -> Array:
        p = self._particles
        out = self._backend.empty_like(p.vel)
        self._backend.kernels(__name__).kicked(p.n, p.vel, force, self._real(kick), out)
        return out


class VelocityVerlet(Integrator):
    """Velocity Verlet in kick-drift form: between steps the velocity stands half a step behind.

    The first step kicks by half. The damping force sees the half-step velocity, which makes it first order
    in dt; elastic motion is second order. Swope et al., J. Chem. Phys. 76 (1982) 637.
    """

    name = "velocity_verlet"

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt (by dt/2 at step 0), then drift by dt."""
        self._kick_drift(self._dt if step else self._dt / 2, self._dt, force, step, fault)

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocity with its missing half kick."""
        return self._kicked(force, self._dt / 2 if step else 0.0)


class SteepestDescent(Integrator):
    """Overdamped relaxation: x += dt^2 F / m, velocities left alone. Takes overlaps out of a packing."""

    name = "steepest_descent"

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Move along the force."""
        p, real = self._particles, self._real
        self._backend.kernels(__name__).descend(
            p.n, p.pos, p.id, force, real(self._dt**2), step, self._grid.record, fault
        )

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocities as they are."""
        return self._kicked(force, 0.0)


INTEGRATORS: dict[str, type[Integrator]] = {
    "velocity_verlet": VelocityVerlet,
    "steepest_descent": SteepestDescent,
}


def integrator(choice: str | Integrator) -> Integrator:
    """An integrator by name, or one as it is.

    Raises:
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Integrator):
        return choice
    if choice not in INTEGRATORS:
        raise ValueError(f"unknown integrator {choice!r}; known: {', '.join(INTEGRATORS)}")
    return INTEGRATORS[choice]()


@kernel
def wrapped(x, length, periodic):
    """A coordinate moved by at most one length into [0, length); as it is on an axis that is not periodic."""
    if periodic != 0:
        if x >= length:
            return x - length
        if x < 0:
            x = x + length
            if x >= length:  # a tiny negative coordinate rounds up to the far side
                return x - length
    return x


@kernel
def inside(x, length, periodic):
    """Whether a wrapped coordinate is in the box; false for NaN."""
    return x >= 0 and (x < length or (x == length and periodic == 0))


@kernel
def report(bad, step, pos, id, fault):
    """Write the fault word for the particle in slot `bad`."""
    escaped = np.uint64(1)
    for k in range(pos.shape[1]):
        if not np.isfinite(pos[bad, k]):
            escaped = np.uint64(0)
    word = ((np.uint64(2) * np.uint64(step) + escaped) << np.uint64(32)) | np.uint64(id[bad])
    fault[0] = min(fault[0], word)


@kernel(parallel=True)
def kick_drift(n, pos, vel, id, force, kick, drift, step, grid, fault):
    """Vel += kick * force (m = 1); pos += drift * vel, wrapped."""
    bad = n
    for i in numba.prange(n):
        g = grid[0]
        good = True
        for k in range(pos.shape[1]):
            v = vel[i, k] + kick * force[i, k]
            x = wrapped(pos[i, k] + drift * v, g.length[k], g.periodic[k])
            vel[i, k] = v
            pos[i, k] = x
            good &= inside(x, g.length[k], g.periodic[k])
        if not good:
            bad = min(bad, i)
    if bad < n:
        report(bad, step, pos, id, fault)


@kernel(parallel=True)
def descend(n, pos, id, force, rate, step, grid, fault):
    """Pos += rate * force, wrapped."""
    bad = n
    for i in numba.prange(n):
        g = grid[0]
        good = True
        for k in range(pos.shape[1]):
            x = wrapped(pos[i, k] + rate * force[i, k], g.length[k], g.periodic[k])
            pos[i, k] = x
            good &= inside(x, g.length[k], g.periodic[k])
        if not good:
            bad = min(bad, i)
    if bad < n:
        report(bad, step, pos, id, fault)


@kernel(parallel=True)
def kicked(n, vel, force, kick, out):
    """Out = vel + kick * force."""
    for i in numba.prange(n):
        for k in range(vel.shape[1]):
            out[i, k] = vel[i, k] + kick * force[i, k]
