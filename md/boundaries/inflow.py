"""Inflow: particles that reach one end of an axis enter at the other end, with new velocity and place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from md.backend.base import Array
from md.boundaries.base import RADIUS, ActiveBoundary, Boundary
from md.checks import integer, number, numbers, refuse_value, set_fields
from md.particles.capabilities import BoundaryCapabilities
from md.particles.system import System
from md.search.base import Search
from sfc.bitwise.bits import mixed
from sfc.compile import callee, kernel

TURNS = {2: (0.6180339887498949,), 3: (0.7548776662466927, 0.5698402909980532)}  # x^2 = 1 - x, x^3 = 1 - x^2


@dataclass(frozen=True, kw_only=True)
class Inflow(Boundary):
    """Configuration of an inflow: particles within a cutoff of the downstream end enter at the upstream end.

    So do particles that leave at the upstream end. No two touch across the ends of the axis, which is a
    periodic one of the box, as long as no particle moves farther than a cutoff in a step. A particle that
    enters has a velocity from the stream's Maxwellian, folded so that it flows in: mean and spread are the
    stream's if its speed is at least twice sqrt(temperature). Consecutive places across the stream are
    multiples of the fractional part of the golden ratio (in 3D of its analogue in the plane), at half a
    diameter or more from walls, so that particles that enter together are far from each other: Roberts, The
    unreasonable effectiveness of quasirandom sequences (2018).

    Args:
        velocity: (dim,) of the stream, in d per time unit; not 0 along the axis.
        temperature: of the stream, m <(v - velocity)^2> / dim, in d^2 / time^2.
        axis: 0, 1 or 2.
        seed: of the first place and of the velocities. Particles enter in the order of step and id.

    Raises:
        TypeError: a value of another class.
        ValueError: a value outside its range.
    """

    velocity: tuple[float, ...]
    temperature: float = 0.0
    axis: int = 0
    seed: int = 0

    def __post_init__(self):
        velocity = numbers("velocity of an inflow", self.velocity)
        if len(velocity) not in (2, 3):
            raise refuse_value("velocity of an inflow", velocity, "two or three finite numbers")
        set_fields(
            self,
            velocity=velocity,
            temperature=number("temperature of an inflow", self.temperature, 0, unit="d^2 / time^2"),
            axis=integer("axis of an inflow", self.axis, 0, len(velocity) - 1),
            seed=integer("seed of an inflow", self.seed, 0, 2**63 - 1),
        )
        if velocity[self.axis] == 0:
            raise ValueError(
                f"velocity = {velocity} of an inflow along axis {self.axis}; allowed: not 0 along it"
            )

    def build(self, system: System, search: Search) -> Inlet:
        """Make the inlet that acts on the particles of a system.

        Raises:
            ValueError: another dimension than the box's, or an axis that is not periodic.
        """
        box = system.box
        if len(self.velocity) != box.dim:
            raise ValueError(
                f"velocity = {self.velocity} of an inflow in a box of {box.dim} axes; allowed: one number "
                "each"
            )
        if not box.periodic[self.axis]:
            raise ValueError(
                f"an inflow along axis {self.axis} with periodic = {box.periodic}; allowed: a periodic axis; "
                "for sides at which particles leave for good take Box(open=...) and no inflow"
            )
        return Inlet(self, system)


class Inlet(ActiveBoundary):
    """Inflow at work on the particles of a system.

    Args:
        inflow: its configuration.
        system: shared state of the simulation.

    Attributes:
        inflow: as given.
    """

    capabilities = BoundaryCapabilities(capturable=True, changes_velocities=True)

    def __init__(self, inflow: Inflow, system: System):
        box, grid, backend = system.box, system.grid, system.backend
        self.inflow, self._system, self._backend = inflow, system, backend
        turn = np.insert(TURNS[box.dim], inflow.axis, 0)
        sides = np.array(box.lengths, grid.precision)
        last = np.where(box.periodic, np.nextafter(sides, sides.dtype.type(0)), sides)
        fields: list[tuple[str, Any, Any]] = [  # name, dtype, value
            ("velocity", np.float64, inflow.velocity),
            ("margin", np.float64, np.where(box.periodic, 0, RADIUS)),  # distance from the sides of each axis
            ("start", np.float64, np.random.default_rng(inflow.seed).random(box.dim)),  # first place, a share
            ("turn", np.float64, turn),  # difference between consecutive places across the stream
            ("last", grid.precision, last),  # largest coordinate in the box
            ("gap", np.float64, grid.cutoff),  # width that is kept free at the downstream end
            ("spread", np.float64, math.sqrt(inflow.temperature)),  # of a component of the velocity
            ("seed", np.int64, inflow.seed),
            ("axis", np.int32, inflow.axis),
        ]
        dtype = np.dtype([(name, kind, np.shape(value)) for name, kind, value in fields], align=True)
        self._record = np.array([tuple(value for *_, value in fields)], dtype)
        self._leavers = backend.empty(system.particles.n, np.int32)
        self._counts = backend.zeros(2, np.int64)

    def __repr__(self) -> str:
        return f"<Inlet of {self.inflow!r}>"

    @property
    def renewed(self) -> int:
        """Number of times that a particle entered so far; waits for the device."""
        return int(self._backend.download(self._counts)[0])

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the number of times that a particle entered so far: `renewed`, (1,) int64."""
        return {"renewed": self._backend.download(self._counts)[:1]}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the number of times that a particle entered before.

        Raises:
            ValueError: `renewed` is missing or no count.
        """
        found = state.get("renewed")
        if found is None or found.shape != (1,) or found.dtype != np.int64 or found[0] < 0:
            raise ValueError(f"renewed = {found!r}; allowed: (1,) int64, not negative")
        self._counts[:1] = self._backend.upload(found)

    def after_step(self, step_times: Array) -> None:
        """Move the particles at the downstream end to the upstream end, with new velocities."""
        p, kernels = self._system.particles, self._backend.kernels(__name__)
        where = self._record, self._system.grid.record
        kernels.leave(p.n, p.pos, *where, self._leavers, self._counts)
        kernels.enter(p.n, p.pos, p.vel, p.id, *where, self._leavers, self._counts)
        kernels.count(1, self._counts)


@callee
def chance(seed, number, draw):
    """Return a random number above 0 and up to 1, the same on every backend."""
    word = mixed(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(number + 1))
    word = mixed(word ^ np.uint64(draw))
    return (np.float64(word >> np.uint64(11)) + 1.0) * 2.0**-53


@kernel
def leave(n, pos, inlet, grid, leavers, counts):
    """List the particles at the downstream end in `leavers`, and store their number in counts[1]."""
    o, length = inlet[0], np.float64(grid[0].length[inlet[0].axis])
    for i in range(n):
        x = np.float64(pos[i, o.axis])
        if (x >= length - o.gap) if o.velocity[o.axis] > 0 else (x < o.gap):
            leavers[counts[1]] = i
            counts[1] += 1


@kernel
def enter(n, pos, vel, id, inlet, grid, leavers, counts):
    """Set a new place and velocity of each of the `leavers`, drawn in the order of their ids."""
    g, o = grid[0], inlet[0]
    dim, real = pos.shape[1], pos.dtype.type
    for k in range(counts[1]):
        i = leavers[k]
        number = counts[0]
        for other in range(counts[1]):
            number += id[leavers[other]] < id[i]
        for axis in range(dim):
            length = np.float64(g.length[axis])
            size = math.sqrt(-2 * math.log(chance(o.seed, number, 2 * axis)))
            angle = 2 * math.pi * chance(o.seed, number, 2 * axis + 1)
            v = o.velocity[axis] + o.spread * size * math.cos(angle)
            if axis == o.axis:
                x = np.float64(pos[i, axis])
                v = math.copysign(v, o.velocity[axis])
                beyond = x - (length - o.gap) if v > 0 else o.gap - x
                place = beyond if v > 0 else length - max(beyond, o.gap * np.finfo(real).eps * length)
            else:
                turns = o.start[axis] + number * o.turn[axis]
                place = o.margin[axis] + (turns - math.floor(turns)) * (length - 2 * o.margin[axis])
            pos[i, axis], vel[i, axis] = min(real(place), o.last[axis]), real(v)


@kernel
def count(n, counts):
    """Add counts[1] to the total in counts[0], and reset it."""
    counts[0] += counts[1]
    counts[1] = 0
