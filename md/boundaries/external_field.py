"""External field: gravity, walls, and the shaking of the container that the walls belong to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

from md.backend.base import Array
from md.backend.prelude import like, load, store
from md.boundaries.base import RADIUS
from md.boundaries.walls import ShakenWalls, Walls
from md.checks import numbers
from md.laws import PairLaw
from md.particles.system import System
from sfc.compile import inlined, kernel, overload


def record_dtype(dim: int, precision: np.dtype) -> np.dtype:
    """Return the structured dtype of the record that kernels take."""
    real = np.dtype(precision)
    return np.dtype(
        [
            ("pull", real, (dim,)),  # acceleration of gravity
            ("spring", real, (dim,)),  # stiffness of the walls at both ends; 0 without walls
            ("damping", real, (dim,)),
            ("radius", real),
            ("axis", np.int32),  # direction in which the container moves; -1 if it is at rest
        ],
        align=True,
    )


class ExternalField:
    """Gravity and walls that act on the particles of a system.

    Args:
        walls: at the ends of axes (`Walls.axes`); None for none.
        gravity: (dim,) acceleration in d / time^2; None for none.
        law: pair law; walls without a contact time use the one of the law.
        system: shared state of the simulation; each particle touches walls at its own radius.
        others: whether other boundaries may add energy (`md.boundaries.base`).

    Attributes:
        acts: whether there is gravity or a wall.
        drives: whether energy is added to the particles.
        record: length-1 structured array that kernels take.
        now: (2,) float64 array: the reversed acceleration of the container; and its velocity if dashpots
            depend on it, else 0.

    Raises:
        TypeError: gravity that is no sequence of numbers.
        ValueError: walls that do not fit, or gravity of a wrong shape or not finite.
    """

    def __init__(
        self, walls: Walls | None, gravity: Sequence[float] | None, law: PairLaw, system: System, others: bool
    ):
        particles, box, dim, backend = system.particles, system.box, system.box.dim, system.backend
        given = (0.0,) * dim if gravity is None else gravity
        pull = np.array(numbers("gravity", given, dim, unit="d / time^2"))
        self._system, self._backend = system, backend
        self._shaken = shaken = walls if isinstance(walls, ShakenWalls) and walls.speed else None
        self.acts = walls is not None or bool(pull.any())
        self.drives = shaken is not None or bool(pull.any()) or others
        self.record = np.zeros(1, record_dtype(dim, system.precision))
        self.record["pull"], self.record["radius"], self.record["axis"] = pull, RADIUS, -1
        if walls is not None:
            walls.check(box, law, system.dt, particles.narrowest, particles.widest)
            spring, damping = walls.contact(law)
            apart = np.array(walls.axes(box))
            self.record["spring"], self.record["damping"] = spring * apart, damping * apart
        if shaken is not None:
            self.record["axis"] = shaken.axis % dim
        self.now = backend.zeros(2, np.float64)
        self._nothing = backend.empty(0, np.int64), backend.empty(0, np.float64)

    def set_time(
        self, step: float, clock: Array | None = None, turn: int = 0, elapsed: Array | None = None
    ) -> None:
        """Set `now` to the time of the positions.

        Args:
            step: time of the positions in steps, possibly fractional; added to the clock if there is one.
            clock: (2,) int64 numbers of steps; entry `turn` is the present one.
            turn: 0 or 1.
            elapsed: (1,) float64 time in time units, used instead if it is given.
        """
        if (walls := self._shaken) is None:
            return
        no_clock, no_time = self._nothing
        time = no_clock if clock is None else clock, turn, step, no_time if elapsed is None else elapsed
        carried = walls.speed if walls.wall_damping == "absolute" else 0.0
        motion = walls.frequency, 2 * math.pi * walls.frequency * walls.speed, carried
        self._backend.kernels(__name__).swing(1, *time, self._system.dt, *motion, self.now)

    @property
    def depends_on_time(self) -> bool:
        """Whether `now` differs from step to step, as with shaken walls."""
        return self._shaken is not None

    @property
    def has_walls(self) -> bool:
        """Whether particles can touch a wall."""
        return bool((self.record["spring"][0] > 0).any())

    def speed_gained(self, time: float) -> float:
        """Return the largest speed that gravity and shaking together give a free particle from rest.

        Args:
            time: during which they act, in time units.
        """
        gained = float(np.linalg.norm(self.record["pull"][0].astype(np.float64))) * time
        if self._shaken is not None:
            gained += self._shaken.speed * min(2.0, 2 * math.pi * self._shaken.frequency * time)
        return gained

    def overlaps(self, pos: np.ndarray, radius: np.ndarray | None = None) -> np.ndarray:
        """Return the overlap of each sphere with the walls along each axis: (n, dim) in d, 0 without contact.

        Args:
            pos: (n, dim) on the host, in d.
            radius: (n,) on the host, in d; None for 0.5.
        """
        reach = RADIUS if radius is None else radius[:, None].astype(np.float64)
        sides = np.minimum(pos, np.array(self._system.box.lengths) - pos)
        return np.where(self.record["spring"][0] > 0, np.maximum(reach - sides.astype(np.float64), 0), 0.0)

    def potential(self, pos: np.ndarray, radius: np.ndarray | None = None) -> float:
        """Return the energy in the springs of the walls, in m d^2 / time^2; arguments as of `overlaps`."""
        spring = self.record["spring"][0].astype(np.float64)
        return float((spring * np.square(self.overlaps(pos, radius))).sum() / 2)

    def add_forces(self, force: Array) -> None:
        """Add gravity and walls to the force on each particle, at the time of `set_time`.

        Args:
            force: (n, dim) array of the backend, changed.
        """
        if not self.acts:
            return
        p, field = self._system.particles, (self._system.grid.record, self.record, self.now)
        self._backend.kernels(__name__).push(p.n, p.pos, p.vel, p.radius, *field, force)


@inlined
def radius_of(o, radius, i):
    """Return the radius of a particle; `radius` is (0,) if all are equal."""
    return radius[i] if len(radius) else o.radius


@inlined
def along(axis, o, reach, now, grid, x, speed, before, acc):
    """Add gravity and walls to `before`, one component of the force `acc` on a particle.

    `now` is read outside the branch: in it Numba would count references to the array at every particle, at
    up to eight times the cost of a step.
    """
    force, drive, carried = before + o.pull[axis], like(acc, now[0]), like(acc, now[1])
    if axis == o.axis:
        force += drive
        speed += carried
    low, high = reach - x, reach - (grid.length[axis] - x)
    if o.spring[axis] > 0:
        if low > 0:
            force += o.spring[axis] * low - o.damping[axis] * speed
        if high > 0:
            force -= o.spring[axis] * high + o.damping[axis] * speed
    return force


def outside(o, radius, now, grid, r, v, acc):
    """Add gravity and walls to the force on a particle of some radius."""
    raise NotImplementedError


@overload(outside)
def _outside(o, radius, now, grid, r, v, acc):
    if acc.count == 2:
        return lambda o, radius, now, grid, r, v, acc: (
            along(0, o, radius, now, grid, r[0], v[0], acc[0], acc),
            along(1, o, radius, now, grid, r[1], v[1], acc[1], acc),
        )
    return lambda o, radius, now, grid, r, v, acc: (
        along(0, o, radius, now, grid, r[0], v[0], acc[0], acc),
        along(1, o, radius, now, grid, r[1], v[1], acc[1], acc),
        along(2, o, radius, now, grid, r[2], v[2], acc[2], acc),
    )


@kernel
def swing(n, clock, turn, step, elapsed, dt, frequency, acceleration, speed, now):
    """Store the reversed acceleration of the container in now[0], and its velocity in now[1]."""
    if len(elapsed):
        time = elapsed[0]
    else:
        time = (clock[turn] + step if len(clock) else step) * dt
    cycles = frequency * time
    angle = 2 * math.pi * (cycles - math.floor(cycles))
    now[0] = -acceleration * math.cos(angle)
    now[1] = speed * math.sin(angle)


@kernel(parallel=True)
def push(n, pos, vel, radius, grid, field, now, force):
    """Add gravity and walls to the force on each particle."""
    for i in numba.prange(n):
        g, o = grid[0], field[0]
        own = radius_of(o, radius, i)
        store(force, i, outside(o, own, now, g, load(pos, i, g), load(vel, i, g), load(force, i, g)))
