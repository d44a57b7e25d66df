"""Walls at the ends of the axes that are not periodic: springs and dashpots, touched at half a diameter.

Force inwards: K (d/2 - s) / d - mu v for a centre at s < d/2 from the wall, v its velocity away from it. The
force on a sphere of radius R is K (R - s) / d - mu v, with the same d = 1, so that all have the same contact
time. A wall is immovable, so the effective mass is that of the sphere: w0^2 = K / (d m), g = mu / (2 m), and
as between two spheres e = exp(-pi g / w) after a contact of pi / w with w^2 = w0^2 - g^2.

Shaken walls belong to a container that moves rigidly. Positions and velocities are relative to the container:
in its frame the walls are at rest, and the reversed acceleration of the container acts on every sphere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from md.checks import integer, integers, number, set_fields, word
from md.laws.pair import PairLaw
from md.laws.spring_dashpot import SHORTEST, SpringDashpot, resolved_restitution
from md.particles.box import Box
from md.particles.cell_grid import rounded

FARTHEST = 1e150  # largest amplitude in d, and frequency; their product is finite
FASTEST = 0.1  # largest displacement of the container in a step, in diameters
DEEPEST = 0.15  # largest overlap of a wall with a sphere that was at rest, in diameters


@dataclass(frozen=True, kw_only=True)
class Walls:
    """Walls at rest.

    Args:
        restitution: coefficient of restitution e, 0.01 to 1; of spheres of any size.
        contact_time: duration of a contact with the wall, in time units, positive; None for that of two
            spheres.
        sides: axes with walls at their ends, not periodic ones; None for those that are neither periodic nor
            open. At an open side a sphere may be pressed through a wall by more than its radius and is pushed
            back; at a closed side that is a fault.

    Raises:
        TypeError: a value of another class.
        ValueError: a value outside its range.
    """

    restitution: float = 1.0
    contact_time: float | None = None
    sides: tuple[int, ...] | None = None

    def __post_init__(self):
        set_fields(self, restitution=resolved_restitution("restitution of walls", self.restitution))
        if self.contact_time is not None:
            name, remedy = "contact_time of walls", "None takes that of the law"
            time = number(name, self.contact_time, above=SHORTEST, unit="time units", remedy=remedy)
            set_fields(self, contact_time=time)
        if self.sides is not None:
            remedy = "None takes those that are neither periodic nor open"
            set_fields(self, sides=integers("sides of walls", self.sides, 0, 2, unit="axes", remedy=remedy))

    def duration(self, law: PairLaw) -> float:
        """Return the duration of a contact of a sphere with a wall, in time units.

        Args:
            law: between two spheres.

        Raises:
            ValueError: neither the walls nor the law have a contact time.
        """
        if self.contact_time is not None:
            return self.contact_time
        time = getattr(law, "contact_time", math.inf)
        if not math.isfinite(time):
            raise ValueError(f"contact_time = None of walls, but {law} has none; give it, in time units")
        return time

    def contact(self, law: PairLaw) -> tuple[float, float]:
        """Return the stiffness K in m d / time^2 and the damping mu in m / time."""
        pair = SpringDashpot.from_restitution(self.restitution, self.duration(law))
        return 2 * pair.stiffness, 2 * pair.damping  # the effective mass is twice that of two spheres

    def axes(self, box: Box) -> tuple[bool, ...]:
        """Return for each axis whether there are walls at its ends."""
        if self.sides is not None:
            return tuple(axis in self.sides for axis in range(box.dim))
        return tuple(not (periodic or open_) for periodic, open_ in zip(box.periodic, box.open, strict=True))

    def check(self, box: Box, law: PairLaw, dt: float, narrowest: float, widest: float) -> None:
        """Check whether the walls fit a box.

        Args:
            box: box of the particles.
            law: between two spheres.
            dt: time step in time units.
            narrowest: least diameter of a sphere, in d.
            widest: largest diameter, in d.

        Raises:
            ValueError: no axis with walls, an axis that is missing or periodic, or no room between two walls.
        """
        if not any(self.axes(box)):
            raise ValueError(
                f"walls in a box with periodic = {box.periodic} and open = {box.open}; they need an axis "
                "that is neither; take walls = None, or a Box with periodic=False there"
            )
        for axis in self.sides or ():
            if axis >= box.dim or box.periodic[axis]:
                raise ValueError(
                    f"sides = {self.sides} of walls in a box of {box.dim} axes with periodic = "
                    f"{box.periodic}; allowed: axes that are there and not periodic"
                )
        for axis, (length, has_walls) in enumerate(zip(box.lengths, self.axes(box), strict=True)):
            if has_walls and length < widest:
                raise ValueError(
                    f"walls {length} d apart along axis {axis}; allowed: at least {widest} d"
                    f"{rounded(length, widest)}; enlarge the box"
                )


@dataclass(frozen=True, kw_only=True)
class ShakenWalls(Walls):
    """Walls of a container that moves as -amplitude cos(2 pi frequency t) along an axis.

    It starts at rest at its lowest point, so that velocities at the start are the same in its frame and in
    the frame at rest.

    Args:
        amplitude: in d, 0 or more.
        frequency: per time unit, 0 or more.
        axis: direction of the motion; not a periodic one.
        wall_damping: "relative" for dashpots by the velocity relative to the wall, "absolute" for dashpots by
            the velocity in the frame at rest, as in the program of [thesis].

    Raises:
        TypeError: a value of another class.
        ValueError: a value outside its range.
    """

    amplitude: float
    frequency: float
    axis: int = -1
    wall_damping: Literal["relative", "absolute"] = "relative"

    def __post_init__(self):
        super().__post_init__()
        set_fields(
            self,
            amplitude=number("amplitude of shaken walls", self.amplitude, 0, FARTHEST),
            frequency=number("frequency of shaken walls", self.frequency, 0, FARTHEST),
            axis=integer("axis of shaken walls", self.axis, -3, 2),
            wall_damping=word("wall_damping", self.wall_damping, ("relative", "absolute")),
        )

    @property
    def speed(self) -> float:
        """Largest speed of the container, in d per time unit."""
        return 2 * math.pi * self.frequency * self.amplitude

    def displacement(self, time: float) -> float:
        """Return the displacement of the container from its mean position, in d.

        Args:
            time: since the start, in time units.
        """
        time = number("time", time, -FARTHEST, FARTHEST)
        return -self.amplitude * math.cos(2 * math.pi * self.frequency * time)

    def velocity(self, time: float) -> float:
        """Return the velocity of the container along its axis, in d per time unit.

        Args:
            time: since the start, in time units.
        """
        time = number("time", time, -FARTHEST, FARTHEST)
        return self.speed * math.sin(2 * math.pi * self.frequency * time)

    def check(self, box: Box, law: PairLaw, dt: float, narrowest: float, widest: float) -> None:
        """Check whether the walls fit a box and are stiff enough for their motion.

        Raises:
            ValueError: as for walls at rest; an axis that is periodic or missing; or a container that moves
                too far in a step, or so fast that its walls are too soft to accelerate a sphere.
        """
        super().check(box, law, dt, narrowest, widest)
        integer("axis of shaken walls", self.axis, -box.dim, box.dim - 1)
        if not self.axes(box)[self.axis]:
            raise ValueError(
                f"walls shaken along axis {self.axis % box.dim}, which is periodic or open; give the Box "
                "periodic=False there, or shake along another"
            )
        fastest, deepest = FASTEST * narrowest, DEEPEST * narrowest
        if self.speed * dt > fastest:
            raise ValueError(
                f"amplitude = {self.amplitude} at frequency = {self.frequency}: the walls move by up to "
                f"{self.speed * dt:.3g} d in a step of dt = {dt:.3g} and crush spheres at rest; allowed: "
                f"up to {fastest:g} d; lower amplitude, frequency or dt"
            )
        pressed = self.speed * self.duration(law) / math.pi  # for a spring without a dashpot
        if pressed > deepest:
            raise ValueError(
                f"amplitude = {self.amplitude} at frequency = {self.frequency}: walls so soft press "
                f"{pressed:.3g} d into a sphere before it follows them, and crush it; allowed: up to "
                f"{deepest:g} d; lower amplitude, frequency or contact_time"
            )
