"""A stream: what goes out of the box along an axis comes in again where the stream does, as fresh gas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numba
import numpy as np
from numba.extending import register_jitable

from md.backend import Backend
from md.backend.base import Array
from md.backend.jit import kernel
from md.grid import Grid
from md.laws.walls import RADIUS
from md.search.strategy import Search
from md.state import Particles
from md.surrounding import Bound, Surrounding

MOST_SEEDS = 2**63


@dataclass(frozen=True, kw_only=True)
class Inflow(Surrounding):
    """Particles that leave by either end of an axis come in at the end at which the stream does.

    They get a velocity of the stream's Maxwellian and a place anywhere across it, at half a diameter or more
    from walls; they may overlap who is there. The axis is a periodic one of the box, so that particles at its
    two ends touch across it.

    Args:
        velocity: (dim,) of the stream, in d per time unit; not 0 along the axis.
        temperature: of the stream, m <(v - velocity)^2> / dim, in d^2 / time^2.
        axis: 0, 1 or 2.
        seed: of the places and velocities, which depend on it, on the step and on the particle's id alone.

    Raises:
        ValueError: a value outside its range.
    """

    velocity: tuple[float, ...]
    temperature: float = 0.0
    axis: int = 0
    seed: int = 0

    def __post_init__(self):
        velocity = tuple(float(v) for v in self.velocity)
        if len(velocity) not in (2, 3) or not all(map(math.isfinite, velocity)):
            raise ValueError(f"velocity = {self.velocity} of an inflow; allowed: two or three finite numbers")
        object.__setattr__(self, "velocity", velocity)
        if type(self.axis) is not int or not 0 <= self.axis < len(velocity):
            raise ValueError(f"axis = {self.axis!r} of an inflow; allowed: 0 .. {len(velocity) - 1}")
        if velocity[self.axis] == 0:
            raise ValueError(
                f"velocity = {velocity} of an inflow along axis {self.axis}; allowed: not 0 along it"
            )
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature = {self.temperature} of an inflow; allowed: finite, at least 0")
        if type(self.seed) is not int or not 0 <= self.seed < MOST_SEEDS:
            raise ValueError(f"seed = {self.seed!r} of an inflow; allowed: an integer from 0 to 2^63 - 1")

    def bind(self, particles: Particles, grid: Grid, search: Search, backend: Backend) -> Inlet:
        """Set it to work.

        Raises:
            ValueError: another dimension than the box's, or an axis that is not periodic.
        """
        box = grid.box
        if len(self.velocity) != box.dim:
            raise ValueError(
                f"velocity = {self.velocity} of an inflow in a box of {box.dim} axes; allowed: one number "
                "each"
            )
        if not box.periodic[self.axis]:
            raise ValueError(
                f"an inflow along axis {self.axis} with periodic = {box.periodic}; allowed: a periodic axis; "
                "for sides that particles go out of for good take Box(open=...) and no inflow"
            )
        return Inlet(self, particles, grid, backend)


class Inlet(Bound):
    """An inflow at work.

    Args:
        inflow: the choice.
        particles: which it renews.
        grid: of the particles.
        backend: where they live.
    """

    def __init__(self, inflow: Inflow, particles: Particles, grid: Grid, backend: Backend):
        box = grid.box
        self._particles, self._grid, self._backend = particles, grid, backend
        dim = box.dim
        fields = [
            ("velocity", np.float64, (dim,)),
            ("margin", np.float64, (dim,)),  # from the sides of each axis
            ("spread", np.float64),  # of a component of the velocity
            ("seed", np.int64),
            ("axis", np.int32),
        ]
        self._record = np.zeros(1, np.dtype(fields, align=True))
        self._record["velocity"], self._record["margin"] = inflow.velocity, np.where(box.periodic, 0, RADIUS)
        self._record["spread"], self._record["seed"] = math.sqrt(inflow.temperature), inflow.seed
        self._record["axis"] = inflow.axis
        self._renewed = backend.zeros(1, np.int64)

    @property
    def renewed(self) -> int:
        """How often a particle was taken out and let in again so far; waits for the device."""
        return int(self._backend.download(self._renewed)[0])

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """The count."""
        return {"renewed": self._backend.download(self._renewed)}

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        """The count.

        Raises:
            ValueError: it is none.
        """
        found = memory.get("renewed")
        if found is None or found.shape != (1,) or found.dtype != np.int64 or found[0] < 0:
            raise ValueError(f"renewed = {found!r}; allowed: (1,) int64, not negative")
        self._renewed[...] = self._backend.upload(found)

    def after(self, step: int, strides: Array) -> None:
        """Renew who went out in this step: who was outside before, by the velocity that carried it."""
        p, parts = self._particles, self._backend.workers
        record, grid = self._record, self._grid.record
        self._backend.kernels(__name__).renew(
            p.n, parts, p.pos, p.vel, p.id, step, strides, record, grid, self._renewed
        )


@register_jitable
def mixed(word):
    """A 64-bit word whose bits all depend on all of another's (splitmix64: Steele, Lea and Flood, 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@register_jitable
def chance(seed, step, id, draw):
    """A number above 0 and up to 1, the same on every backend."""
    word = mixed(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(step + 1))
    word = mixed(word ^ (np.uint64(id) << np.uint64(32) | np.uint64(draw)))
    return (np.float64(word >> np.uint64(11)) + 1.0) * 2.0**-53


@kernel(parallel=True)
def renew(n, parts, pos, vel, id, step, strides, inlet, grid, renewed):
    """A fresh place and velocity for each particle that left along the axis in the last drift."""
    dim, real = pos.shape[1], pos.dtype.type
    counts = np.zeros(parts, np.int64)
    for part in numba.prange(parts):
        g, o = grid[0], inlet[0]
        axis = o.axis
        length = np.float64(g.length[axis])
        for i in range(part * n // parts, (part + 1) * n // parts):
            x = np.float64(pos[i, axis])
            before = x - np.float64(vel[i, axis]) * strides[1]
            if 0 <= before < length:
                continue
            counts[part] += 1
            beyond = x if before < 0 else length - x
            for k in range(dim):
                width = np.float64(g.length[k]) - 2 * o.margin[k]
                size = math.sqrt(-2 * math.log(chance(o.seed, step, id[i], 3 * k)))
                angle = 2 * math.pi * chance(o.seed, step, id[i], 3 * k + 1)
                v = o.velocity[k] + o.spread * size * math.cos(angle)
                place = o.margin[k] + width * (1 - chance(o.seed, step, id[i], 3 * k + 2))
                if k == axis:
                    v = math.copysign(v, o.velocity[k])
                    place = beyond if v > 0 else length - beyond
                if place >= g.length[k] or real(place) >= g.length[k]:
                    place = 0.0 if g.periodic[k] else np.float64(g.length[k]) - o.margin[k]
                pos[i, k], vel[i, k] = real(place), real(v)
    renewed[0] += counts.sum()
