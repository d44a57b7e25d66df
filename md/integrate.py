"""Moving the particles by one step. A new integrator is a class and one line here.

Contract. An integrator advances positions and velocities by `dt` from the force at the present positions,
wraps the positions into the box, and reports the first particle it cannot place in the fault word:
`(2 * step + escaped) << 32 | id`, left alone while all is well. One that can be fused gives an output for the
search's force kernel in place of a force array: the kernel then moves each particle as soon as its force
is known, into the spare arrays, because others still read the old ones.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from md.backend.base import Array, Backend
from md.backend.bounds import folded, in_box, is_finite, well_inside
from md.backend.jit import kernel
from md.backend.prelude import add_scaled, finish, load, store
from md.grid import Grid
from md.pace import Pace
from md.state import Particles


class KickDrift(NamedTuple):
    """Output of a fused force kernel: where the moved particles go, and by how much.

    Attributes:
        pos, vel: (n, dim) arrays, filled; not those the kernel reads.
        id: (n,) int32.
        kick: time of the kick.
        drift: time of the drift.
        fault: (1,) uint64 fault word.
        clock: (2,) int64; clock[turn] is the number of the step. A device counts on: it sets the other entry,
            to one more where the step was taken.
        turn: 0 and 1 in turn.
        fastest, gone, halted, reach, slack: of `md.pace.Pace`.
    """

    pos: Array
    vel: Array
    id: Array
    kick: np.floating
    drift: np.floating
    fault: Array
    clock: Array
    turn: int
    fastest: Array
    gone: Array
    halted: Array
    reach: np.float32
    slack: np.float32


class Placing(NamedTuple):
    """Where `place` writes: as the fields of `KickDrift`, but that the step is given as it is."""

    pos: Array
    id: Array
    fault: Array
    step: int


class Integrator(ABC):
    """Base of the integrators.

    Attributes:
        name: as in `Simulation(integrator=name)`.
        fuses: whether `fused` is there.
        relaxes: whether it takes overlaps out of a start, so that a deep one is no fault, and leaves
            velocities alone, so that there is no energy to watch.
    """

    name: ClassVar[str]
    fuses: ClassVar[bool] = False
    relaxes: ClassVar[bool] = False

    def bind(self, particles: Particles, grid: Grid, dt: float, backend: Backend) -> Integrator:
        """A copy that moves these particles by steps of `dt` time units."""
        bound = copy.copy(self)
        bound._particles, bound._grid, bound._backend = particles, grid, backend
        bound._dt, bound._real = dt, grid.precision.type
        bound._clock = backend.zeros(2, np.int64)
        return bound

    @abstractmethod
    def advance(self, force: Array, step: int, fault: Array) -> None:
        """One step from the force at the present positions.

        Args:
            force: (n, dim) force on each particle.
            step: number of the step, counted from 0.
            fault: (1,) uint64 fault word.
        """

    def fused(self, step: int, fault: Array, pace: Pace) -> KickDrift:
        """The output to give a force kernel in place of a force array, so that it takes this step.

        Args:
            step: number of the step, counted from 0. A device counts by itself: `set_clock` tells it of a
                step that does not follow the one before.
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

    def set_clock(self, step: int) -> None:
        """Give the number of the next fused step."""
        self._clock[...] = step

    def _kicked(self, force: Array, kick: float) -> Array:
        p = self._particles
        out = self._backend.rows(p.n, p.box.dim, self._grid.precision)
        self._backend.kernels(__name__).kicked(p.n, p.vel, force, self._real(kick), self._grid.record, out)
        return out


class VelocityVerlet(Integrator):
    """Velocity Verlet in kick-drift form: between steps the velocity stands half a step behind.

    The first step kicks by half. The damping force sees the half-step velocity, which makes it first order in
    dt; elastic motion is second order. Swope et al., J. Chem. Phys. 76 (1982) 637.
    """

    name = "velocity_verlet"
    fuses = True

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt (by dt/2 at step 0), then drift by dt."""
        p, real = self._particles, self._real
        kick = self._dt if step else self._dt / 2
        self._backend.kernels(__name__).kick_drift(
            p.n, p.pos, p.vel, p.id, force, real(kick), real(self._dt), step, self._grid.record, fault
        )

    def fused(self, step: int, fault: Array, pace: Pace) -> KickDrift:
        """The same step as an output of the force kernel, into the spare arrays."""
        p, real = self._particles, self._real
        kick = self._dt if step else self._dt / 2
        if not self._backend.runs_ahead:
            self.set_clock(step)
        pos, vel = p.spare
        return KickDrift(pos, vel, p.id, real(kick), real(self._dt), fault, self._clock, step % 2, *pace)

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocity with its missing half kick."""
        return self._kicked(force, self._dt / 2 if step else 0.0)


class SteepestDescent(Integrator):
    """Overdamped relaxation: x += dt^2 F / m, velocities left alone. Takes overlaps out of a packing."""

    name = "steepest_descent"
    relaxes = True

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


def step_of(out):
    """The number of the step of a `KickDrift` or `Placing`."""
    raise NotImplementedError


@overload(step_of, jit_options={"forceinline": True})
def _step_of(out):
    if out.instance_class is KickDrift:
        return lambda out: out.clock[out.turn]
    return lambda out: out.step


@register_jitable(forceinline=True)
def place(out, grid, i, old, new):
    """Write a position to row i of `out.pos`, wrapped into the box; or report the particle and leave it.

    So every position in memory stays inside the box, and what runs before the fault is read finds its cell.
    The arrays come in one tuple, used last where the branches have met again: else Numba counts references
    to them at every particle, at twice the cost of the step (`tests/md/test_verlet.py` looks for it).

    Args:
        out: `KickDrift` or `Placing`.
        grid: the box.
        i: the row.
        old: position to leave the particle at.
        new: where it moves.
    """
    if not well_inside(grid, new):
        new = folded(grid, new)
        if not in_box(grid, new):
            word = np.uint64(2) * np.uint64(step_of(out)) + np.uint64(is_finite(new))
            out.fault[0] = min(out.fault[0], word << np.uint64(32) | np.uint64(out.id[i]))
            new = old
    store(out.pos, i, new)


@overload(finish, jit_options={"forceinline": True})
def _finish(out, grid, i, ri, vi, acc):
    if not (isinstance(out, types.BaseNamedTuple) and out.instance_class is KickDrift):
        return None

    def finish_kick_drift(out, grid, i, ri, vi, acc):
        v = add_scaled(vi, out.kick, acc)
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, out.drift, v))

    return finish_kick_drift


@kernel(parallel=True)
def kick_drift(n, pos, vel, id, force, kick, drift, step, grid, fault):
    """Kick, vel += kick * force (m = 1), then drift, pos += drift * vel, wrapped."""
    for i in numba.prange(n):
        g = grid[0]
        v = add_scaled(load(vel, i, g), kick, load(force, i, g))
        store(vel, i, v)
        r = load(pos, i, g)
        place(Placing(pos, id, fault, step), g, i, r, add_scaled(r, drift, v))


@kernel(parallel=True)
def descend(n, pos, id, force, rate, step, grid, fault):
    """Move along the force, pos += rate * force, wrapped."""
    for i in numba.prange(n):
        g = grid[0]
        r = load(pos, i, g)
        place(Placing(pos, id, fault, step), g, i, r, add_scaled(r, rate, load(force, i, g)))


@kernel(parallel=True)
def kicked(n, vel, force, kick, grid, out):
    """The kick alone, out = vel + kick * force."""
    for i in numba.prange(n):
        g = grid[0]
        store(out, i, add_scaled(load(vel, i, g), kick, load(force, i, g)))
