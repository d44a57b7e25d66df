"""Conditions at the four sides of a cavity: walls, inlets and outlets.

A side gives each of its boundary points a condition for u, for v and for the pressure p: a fixed value
(Dirichlet), or the value of the neighbouring point inside (zero gradient, Neumann). Speeds and pressures may
differ from point to point. Velocities are along +x (u) and +y (v).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from md import checks

NAMES = ("bottom", "top", "left", "right")
PRESSURES = ("neumann", "dirichlet")
Profile = float | tuple[float, ...]


class Conditions(NamedTuple):
    """Conditions for u, v and p along one side, over its points by increasing x or y.

    Attributes:
        u, v, p: (points,) float64 fixed values; None for zero gradient.
    """

    u: np.ndarray | None
    v: np.ndarray | None
    p: np.ndarray | None


@dataclass(frozen=True)
class Side:
    """Base class of the conditions at one side.

    Attributes:
        kind: the condition in plain data: "wall", "inlet" or "outlet".
    """

    kind: ClassVar[str]

    def conditions(self, name: str, points: int) -> Conditions:
        """Return the conditions for u, v and p.

        Args:
            name: of the side, one of `NAMES`.
            points: boundary points of the side, corners included.

        Raises:
            ValueError: a profile of another number of values than points.
        """
        raise NotImplementedError

    @property
    def fastest(self) -> float:
        """Largest speed that the side prescribes."""
        return float(np.abs(getattr(self, "speed", 0.0)).max())

    def to_plain(self) -> dict[str, object]:
        """Return the kind and the parameters as plain data, for a checkpoint."""
        return {"kind": self.kind} | {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class Wall(Side):
    """Wall that no fluid crosses, at rest or moving along itself.

    Args:
        speed: of the wall, along +x for bottom and top, along +y for left and right; a number, or one for
            each point of the side.
        pressure: "neumann" for zero gradient across the wall, or "dirichlet" for p = `value`.
        value: the fixed pressure, a number, or one for each point; only with "dirichlet".

    Raises:
        TypeError: an argument of another class.
        ValueError: a number that is not finite, an unknown pressure, or a value beside "neumann".
    """

    speed: Profile = 0.0
    pressure: str = "neumann"
    value: Profile = 0.0
    kind: ClassVar[str] = "wall"

    def __post_init__(self) -> None:
        object.__setattr__(self, "speed", _profile("speed of Wall", self.speed))
        _check_pressure(self)

    def conditions(self, name: str, points: int) -> Conditions:
        """Return the conditions for u, v and p; see `Side.conditions`."""
        along, across = _along(f"speed of {name}", self.speed, points), np.zeros(points)
        u, v = (along, across) if name in ("bottom", "top") else (across, along)
        return Conditions(u, v, _fixed_pressure(self, name, points))


@dataclass(frozen=True)
class Inlet(Side):
    """Side through which fluid enters at right angles, with a given speed.

    Args:
        speed: into the cavity, at least 0; a number, or one for each point of the side.
        pressure: "neumann" for zero gradient across the side, or "dirichlet" for p = `value`.
        value: the fixed pressure, a number, or one for each point; only with "dirichlet".

    Raises:
        TypeError: an argument of another class.
        ValueError: a speed below 0, speeds that are all 0, an unknown pressure, or a value beside "neumann".
    """

    speed: Profile = 1.0
    pressure: str = "neumann"
    value: Profile = 0.0
    kind: ClassVar[str] = "inlet"

    def __post_init__(self) -> None:
        remedy = "take an Outlet where fluid leaves"
        object.__setattr__(self, "speed", _profile("speed of Inlet", self.speed, low=0.0, remedy=remedy))
        if self.fastest == 0:
            allowed = "a number above 0 somewhere"
            raise checks.refuse_value("speed of Inlet", self.speed, allowed, "take a Wall")
        _check_pressure(self)

    def conditions(self, name: str, points: int) -> Conditions:
        """Return the conditions for u, v and p; see `Side.conditions`."""
        inward, along = _along(f"speed of {name}", self.speed, points), np.zeros(points)
        inward = -inward if name in ("top", "right") else inward
        u, v = (along, inward) if name in ("bottom", "top") else (inward, along)
        return Conditions(u, v, _fixed_pressure(self, name, points))


@dataclass(frozen=True)
class Outlet(Side):
    """Side through which fluid leaves: zero gradient of both velocities, and a fixed pressure.

    Args:
        value: the pressure, a number, or one for each point of the side.

    Raises:
        TypeError: a value of another class.
        ValueError: a value that is not finite.
    """

    value: Profile = 0.0
    pressure: ClassVar[str] = "dirichlet"
    kind: ClassVar[str] = "outlet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _profile("value of Outlet", self.value))

    def conditions(self, name: str, points: int) -> Conditions:
        """Return the conditions for u, v and p; see `Side.conditions`."""
        return Conditions(None, None, _fixed_pressure(self, name, points))


@dataclass(frozen=True)
class Sides:
    """Conditions at all four sides; a side that is not given is a wall at rest.

    If no side fixes the pressure, it is defined up to a constant. Jacobi sweeps then let its mean drift
    without bound; pressure="converged" and "sor" keep the mean 0.

    Args:
        bottom, top, left, right: a `Wall`, an `Inlet` or an `Outlet`.

    Raises:
        TypeError: a side of another class.
        ValueError: an inlet without an outlet.
    """

    bottom: Side = field(default_factory=Wall)
    top: Side = field(default_factory=Wall)
    left: Side = field(default_factory=Wall)
    right: Side = field(default_factory=Wall)

    def __post_init__(self) -> None:
        found = {name: getattr(self, name) for name in NAMES}
        for name, side in found.items():
            checks.instance(f"sides[{name!r}]", side, Side, "a Wall, an Inlet or an Outlet")
            if type(side) is Side:
                raise checks.refuse_class(f"sides[{name!r}]", side, "a Wall, an Inlet or an Outlet")
        inlets = [name for name, side in found.items() if isinstance(side, Inlet)]
        if inlets and not any(isinstance(side, Outlet) for side in found.values()):
            raise ValueError(
                f"sides: an inlet at {', '.join(inlets)} and no outlet; allowed: an inlet beside an outlet, "
                "as the fluid cannot be compressed; make another side an Outlet()"
            )

    @property
    def fastest(self) -> float:
        """Largest speed that any side prescribes."""
        return max(getattr(self, name).fastest for name in NAMES)

    def conditions(self, shape: tuple[int, int]) -> dict[str, Conditions]:
        """Return the conditions of each side by name.

        Args:
            shape: (ny, nx), points along y and x.

        Raises:
            ValueError: a profile of another number of values than the side has points.
        """
        points = {"bottom": shape[1], "top": shape[1], "left": shape[0], "right": shape[0]}
        return {name: getattr(self, name).conditions(name, points[name]) for name in NAMES}

    def to_plain(self) -> dict[str, dict[str, object]]:
        """Return all sides as plain data, for a checkpoint."""
        return {name: getattr(self, name).to_plain() for name in NAMES}


def driven(lid: float) -> Sides:
    """Return the sides of the lid-driven cavity: the top moves, with p = 0; the others are at rest.

    Args:
        lid: speed of the top along +x.
    """
    return Sides(top=Wall(lid, "dirichlet"))


def checked_sides(sides: object, shape: tuple[int, int]) -> Sides:
    """Check the sides of a cavity of some shape; return them as `Sides`.

    Args:
        sides: `Sides`, or a mapping from names of sides to conditions.
        shape: (ny, nx).

    Raises:
        TypeError: another class.
        ValueError: a name that no side has, sides that contradict each other, or a profile of another number
            of values than the side has points.
    """
    if isinstance(sides, Mapping):
        for name in sides:
            checks.word("name of a side", name, NAMES)
        sides = Sides(**sides)
    remedy = "such as {'top': md.cavity.Wall(1.0, 'dirichlet')}"
    found: Sides = checks.instance("sides", sides, Sides, "None, Sides, or a dict of sides by name", remedy)
    found.conditions(shape)
    return found


def from_plain(plain: Mapping[str, Mapping[str, object]]) -> Sides:
    """Return the sides that `Sides.to_plain` made plain.

    Raises:
        TypeError, ValueError, KeyError: data of another form.
    """
    kinds = {kind.kind: kind for kind in (Wall, Inlet, Outlet)}

    def made(kind: object, **parameters: Any) -> Side:
        return kinds[str(kind)](**parameters)

    return Sides(**{name: made(**given) for name, given in plain.items()})


def _check_pressure(side: Wall | Inlet) -> None:
    kind = type(side).__name__
    checks.word(f"pressure of {kind}", side.pressure, PRESSURES)
    object.__setattr__(side, "value", _profile(f"value of {kind}", side.value))
    if side.pressure == "neumann" and np.any(side.value):
        raise ValueError(
            f"value of {kind} = {checks.shown(side.value)} beside pressure 'neumann'; allowed: a value with "
            "pressure 'dirichlet' only; give one of them"
        )


def _profile(name: str, value: object, low: float = -np.inf, remedy: str = "") -> Profile:
    """Check a number, or one for each point; return a float or a tuple of floats."""
    if isinstance(value, (list, tuple, np.ndarray)):
        found = checks.numbers(name, value, low=low, remedy=remedy)
        if not found:
            raise checks.refuse_value(name, value, "a number, or one for each point of the side", remedy)
        return found
    return checks.number(name, value, low, remedy=remedy)


def _along(name: str, value: Profile, points: int) -> np.ndarray:
    """Return a profile as (points,) float64."""
    if isinstance(value, tuple) and len(value) != points:
        raise ValueError(
            f"{name} has {len(value)} values; allowed: a number, or {points} of them, one for each point of "
            "the side, corners included"
        )
    return np.full(points, value, np.float64)


def _fixed_pressure(side: Wall | Inlet | Outlet, name: str, points: int) -> np.ndarray | None:
    return _along(f"value of {name}", side.value, points) if side.pressure == "dirichlet" else None
