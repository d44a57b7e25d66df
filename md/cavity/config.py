"""Choices of a cavity: checks of the arguments, the strategy that "auto" takes, what does not go together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from md import backend as backends
from md import checks
from md.backend.base import Backend
from md.cavity.base import Order, Strategy
from md.cavity.scheme import SAFETY, Scheme, is_finite, largest_dt, spacing
from md.cavity.sides import Side, Sides, checked_sides, driven
from md.cavity.strategies import STRATEGIES
from md.errors import BackendUnavailableError
from sfc import ordering

GRIDS = ("collocated", "staggered")
PRESSURES = ("jacobi", "converged", "sor")
LAYOUTS = ("arrays", "structs")
PRECISIONS = ("float64", "float32")
AUTO = {  # for each backend: the first that supports all other choices
    "cuda": ("spectral", "persistent", "cuda"),
    "cpu": ("blocked", "threads", "numpy", "staggered"),
}
MOST_POINTS = 2**31 - 1  # neighbour tables are of 32-bit numbers
MOST_SWEEPS = 2**31 - 1  # so are the arguments of kernels


@dataclass(frozen=True)
class Problem:
    """Arguments of `md.Cavity` that define the problem; checked by `checked`.

    Args:
        shape, viscosity, dt, density, lid, size, sweeps, pressure, grid, sides, precision: as there.
    """

    shape: tuple[int, int]
    viscosity: float
    dt: float | None
    density: float
    lid: float
    size: float
    sweeps: int
    pressure: str
    grid: str
    sides: Sides | Mapping[str, Side] | None
    precision: str

    def checked(self) -> Problem:
        """Return the problem with plain values of all arguments.

        Raises:
            TypeError: an argument of another class.
            ValueError: a value that is not allowed, or sides that contradict each other or the lid.
        """
        ny, nx = checks.integers("shape", self.shape, 3, count=2, unit="points", remedy="(ny, nx)")
        if ny * nx > MOST_POINTS:
            raise checks.refuse_value("shape", (ny, nx), f"up to {MOST_POINTS} points in all")
        lid = checks.number("lid", self.lid, unit="speed along +x")
        sides = None if self.sides is None else checked_sides(self.sides, (ny, nx))
        if sides is not None and lid != 1.0:
            raise ValueError(
                f"lid = {lid} beside sides; allowed: one of them; give the speed of the top as "
                f"sides={{'top': md.cavity.Wall({lid}, 'dirichlet'), ...}}"
            )
        return replace(
            self,
            shape=(ny, nx),
            viscosity=checks.number("viscosity", self.viscosity, above=0.0),
            dt=None if self.dt is None else checks.number("dt", self.dt, above=0.0),
            density=checks.number("density", self.density, above=0.0),
            lid=lid,
            size=checks.number("size", self.size, above=0.0, unit="width"),
            sweeps=checks.integer("sweeps", self.sweeps, 1, MOST_SWEEPS),
            pressure=checks.word("pressure", self.pressure, PRESSURES),
            grid=checks.word("grid", self.grid, GRIDS),
            sides=sides,
            precision=checks.word("precision", self.precision, PRECISIONS),
        )

    def scheme(self) -> Scheme:
        """Return the discretised problem; the default time step is `SAFETY` times the bound.

        Raises:
            ValueError: numbers too large or too small for a time step and coefficients that are finite.
        """
        sides = driven(self.lid) if self.sides is None else checked_sides(self.sides, self.shape)
        h = spacing(self.shape, self.size)
        dt = SAFETY * largest_dt(h, self.viscosity, sides.fastest) if self.dt is None else self.dt
        scheme = Scheme(
            self.shape, h, self.viscosity, self.density, dt, self.sweeps, sides, self.precision,
            self.pressure, self.grid,
        )  # fmt: skip
        if not is_finite(scheme):
            name = "lid" if self.sides is None else "speed of sides"
            raise ValueError(
                f"viscosity = {self.viscosity}, {name} = {sides.fastest}, size = {self.size}, "
                f"density = {self.density}, dt = {dt}; allowed: numbers with 0 < dt < inf, and "
                f"finite coefficients and boundary values in {self.precision}; take numbers nearer to 1"
            )
        return scheme


class Choice(NamedTuple):
    """Choices of how a problem is computed.

    Attributes:
        strategy: class or object of a strategy.
        problem: the problem, checked.
        layout: one of `LAYOUTS`.
        order: order of the points in memory.
        backend: of the arrays.
    """

    strategy: Strategy | type[Strategy]
    problem: Problem
    layout: str
    order: Order
    backend: Backend


def chosen(
    strategy: object, problem: Problem, layout: object, order: object, backend: object
) -> tuple[Strategy, str, Order, Backend]:
    """Check how a problem is to be computed; choose the strategy and the backend that are "auto".

    Args:
        strategy: "auto", a name of `STRATEGIES`, or a strategy.
        problem: the problem, checked.
        layout: as in `md.Cavity`.
        order: as in `md.Cavity`.
        backend: as in `md.Cavity`.

    Returns:
        Strategy, layout, order and backend.

    Raises:
        TypeError: an argument of another class.
        ValueError: an unknown name, an order that does not fill the shape, or a choice that the strategy
            does not support.
        BackendUnavailableError: a device that is not there.
    """
    layout = checks.word("layout", layout, LAYOUTS)
    ordering(order, problem.shape[::-1])  # type: ignore[arg-type]  # checked there
    kept: Order = order  # type: ignore[assignment]  # a name or a curve
    given = backends.checked(backend)  # type: ignore[arg-type]  # checked there
    known = "auto", *STRATEGIES
    found: Strategy | type[Strategy] | None
    if isinstance(strategy, Strategy):
        found = strategy
    else:  # None for "auto"
        found = STRATEGIES.get(checks.word("strategy", strategy, known, "or a md.cavity.Strategy"))
    if found is None:
        given = ("cpu" if backends.why_not() else "cuda") if given == "auto" else given
    elif given == "auto" and len(found.backends) == 1:
        given = found.backends[0]
    try:
        made = backends.get(given)
    except BackendUnavailableError as error:
        if backend != "auto":
            raise
        raise BackendUnavailableError(f"{error}; take strategy='auto'") from error
    choice = Choice(found or STRATEGIES["numpy"], problem, layout, kept, made)
    if found is None:
        first = _first(choice)
        if first is None and backend == "auto":  # no strategy of the device supports the other choices
            choice = choice._replace(backend=backends.get("cpu"))
            first = _first(choice)
        if first is None:
            raise ValueError(_unsupported(choice))
        choice = choice._replace(strategy=first)
    if lacking := _lacking(choice):
        others = [name for name, one in STRATEGIES.items() if not _lacking(choice._replace(strategy=one))]
        remedy = f"take strategy={others[0]!r}" if others else _unsupported(choice)
        raise ValueError(f"strategy {choice.strategy.name!r} does not support {lacking}; {remedy}")
    taken = choice.strategy
    return taken() if isinstance(taken, type) else taken, layout, kept, choice.backend


def _lacking(choice: Choice) -> str:
    """Return the first choice that the strategy does not support, and what is allowed; empty if none."""
    one, problem, layout, order, backend = choice
    rest = "sides=None", "a lid with p = 0 and walls at rest"
    for found, is_supported, allowed in (
        (f"grid={problem.grid!r}", problem.grid in one.grids, one.grids),
        (f"pressure={problem.pressure!r}", problem.pressure in one.pressures, one.pressures),
        (f"layout={layout!r}", layout in one.layouts, one.layouts),
        (f"order={checks.shown(order)}", one.any_order or order == "row", ("row",)),
        ("sides", one.any_sides or _is_driven(problem), rest),
        (f"backend={backend.name!r}", backend.name in one.backends, one.backends),
    ):
        if not is_supported:
            return f"{found}; allowed: {', '.join(allowed)}"
    shapes = one.allowed_shapes(problem.shape, backend)
    return f"shape={problem.shape}; allowed: {shapes}" if shapes else ""


def _is_driven(problem: Problem) -> bool:
    """Return whether the sides are those of the lid-driven cavity, with one speed of the lid."""
    top = getattr(problem.sides, "top", None)
    speed = getattr(top, "speed", None)
    return problem.sides is None or (isinstance(speed, float) and problem.sides == driven(speed))


def _unsupported(choice: Choice) -> str:
    """Say that no strategy supports a choice, and which changes of one part of it help."""
    problem = choice.problem

    def of_problem(**other: object) -> Choice:
        return choice._replace(problem=replace(problem, **other))  # type: ignore[arg-type]  # of its fields

    parts: dict[str, tuple[object, dict[object, Choice]]] = {  # name: value, other choices by theirs
        "grid": (problem.grid, {}),
        "pressure": (problem.pressure, {one: of_problem(pressure=one) for one in PRESSURES}),
        "layout": (choice.layout, {one: choice._replace(layout=one) for one in LAYOUTS}),
        "order": (choice.order, {"row": choice._replace(order="row")}),
        "sides": (problem.sides, {None: of_problem(sides=None)}),
        "backend": (choice.backend.name, {"cpu": choice._replace(backend=backends.get("cpu"))}),
    }
    helping = {
        name: [f"{name}={one!r}" for one, other in others.items() if one != value and _first(other)]
        for name, (value, others) in parts.items()
    }
    usual = {"collocated", "jacobi", "arrays", "row", "cpu"}
    found = [
        f"{name}={checks.shown(value)}"
        for name, (value, _) in parts.items()
        if helping[name] or not (value is None or (isinstance(value, str) and value in usual))
    ]
    allowed = " or ".join(itertools.chain(*helping.values()))
    return f"no strategy supports {' with '.join(found)}; allowed: {allowed or 'fewer of these choices'}"


def _first(choice: Choice) -> type[Strategy] | None:
    """Return the first strategy of `AUTO` that supports the other choices; None if there is none."""
    known = [STRATEGIES[name] for name in AUTO.get(choice.backend.name, ()) if name in STRATEGIES]
    return next((one for one in known if not _lacking(choice._replace(strategy=one))), None)
