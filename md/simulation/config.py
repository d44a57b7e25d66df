"""Choices of a simulation as plain data, and made again from it: numbers, words, lists, nothing that runs.

Contract. A class that stands in a registry is told as its name there and the parameters of its constructor,
which it keeps as attributes of the same names. What is made again comes from the registries alone. A new
kind of choice is one line in `SLOTS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from md import backend as backends
from md import checks
from md.backend import Cpu, Cuda
from md.boundaries import WALLS
from md.boundaries.airfoil import Airfoil
from md.boundaries.base import Boundary
from md.boundaries.inflow import Inflow
from md.boundaries.walls import Walls
from md.boundaries.wing import Wing
from md.integrate import INTEGRATORS, Integrator, integrator
from md.laws import LAWS, PairLaw
from md.laws.pair import require_law
from md.particles.state import State
from md.reorder import TRIGGERS, Reorder
from md.search import SEARCHES, Search, search
from sfc import Curve

SLOTS: dict[str, Mapping[str, type]] = {  # what may stand where, by the name of the parameter
    "airfoil": {"airfoil": Airfoil},
    "backend": {"cpu": Cpu, "cuda": Cuda},
    "integrator": INTEGRATORS,
    "law": LAWS,
    "reorder": {"reorder": Reorder},
    "schedule": TRIGGERS,
    "search": SEARCHES,
    "surrounding": {"wing": Wing, "inflow": Inflow},
    "walls": WALLS,
}
ONE_OF = {"surroundings": "surrounding"}  # what a list of choices is a list of
OPTIONAL = ("reorder", "walls")  # where there may be none
CURVE = ("name", "dim", "base", "rank", "next", "start")


def told(slot: str, choice: Any) -> Any:
    """A choice as plain data for JSON.

    Args:
        slot: where it stands, a key of `SLOTS` or the name of a plain parameter.
        choice: the object. One of a class that is in no registry is told by name alone.
    """
    for name, kind in SLOTS.get(slot, {}).items():
        if type(choice) is kind:
            parameters = inspect.signature(kind).parameters
            return {"name": name, "with": {p: told(p, getattr(choice, p)) for p in parameters}}
    if choice is None or isinstance(choice, str) or type(choice) in (bool, int, float):
        return choice
    if isinstance(choice, (tuple, list)):
        return [told(ONE_OF.get(slot, ""), value) for value in choice]
    if isinstance(choice, np.ndarray):
        return choice.tolist()
    if type(choice) is Curve:
        return {"curve": {p: np.asarray(getattr(choice, p)).tolist() for p in CURVE}}
    named = choice if hasattr(choice, "__qualname__") else type(choice)
    return {"unknown": f"{named.__module__}.{named.__qualname__}"}


def made(slot: str, plain: Any) -> Any:
    """The choice that was told.

    Args:
        slot: as for `told`.
        plain: what `told` gave.

    Raises:
        ValueError: a class that is in no registry, or data that is none of a choice.
    """
    if isinstance(plain, dict) and "unknown" in plain:
        raise ValueError(f"{slot} is of {plain['unknown']!r}, which is in no registry of md")
    if slot in SLOTS:
        return None if plain is None and slot in OPTIONAL else _of_registry(slot, plain)
    if plain is None or isinstance(plain, (bool, int, float, str)):
        return plain
    if isinstance(plain, list):
        return tuple(made(ONE_OF.get(slot, ""), value) for value in plain)
    try:
        if "curve" in plain:
            return Curve(**{p: plain["curve"][p] for p in CURVE})
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{slot} = {plain!r:.100}: {error}") from error
    raise ValueError(f"{slot} = {plain!r:.100}; allowed: a number, a word, a list, a curve")


def _of_registry(slot: str, plain: Any) -> Any:
    registry = SLOTS[slot]
    name, parameters = (plain.get(k) if isinstance(plain, dict) else None for k in ("name", "with"))
    if not isinstance(name, str) or name not in registry or not isinstance(parameters, dict):
        raise ValueError(f"{slot} = {plain!r:.100}; known: {', '.join(registry)}")
    taken = inspect.signature(registry[name]).parameters
    if set(parameters) - set(taken):
        raise ValueError(
            f"{slot} {name!r} does not take {sorted(set(parameters) - set(taken))}; allowed: "
            f"{', '.join(taken) or 'no parameters'}"
        )
    try:
        return registry[name](**{p: made(p, value) for p, value in parameters.items()})
    except (TypeError, ArithmeticError) as error:
        raise ValueError(f"{slot} {name!r}: {error}") from error


STEPS_PER_CONTACT = 50


def check_classes(
    state: Any, walls: Any, reorder: Any, surroundings: Any
) -> tuple[State, Walls | None, Reorder | None, tuple[Boundary, ...]]:
    """What was given for a simulation, the surroundings as a tuple.

    Raises:
        TypeError: one of another class.
    """
    checks.instance("state", state, State, "an md.State", "make one of your arrays: md.State(pos, vel, box)")
    return state, _walls(walls), _reorder(reorder), _surroundings(surroundings)


def check_given(given: Mapping[str, Any], dim: int) -> None:
    """Look at each of those choices of a simulation that take the place of a file's.

    Args:
        given: by name; what `ALONE` does not name is not looked at.
        dim: axes of the box.

    Raises:
        TypeError: one of another class.
        ValueError: one that could not be a choice of any simulation of so many axes.
    """
    for name, choice in given.items():
        if name in ALONE:
            ALONE[name](choice)
        elif name == "gravity" and choice is not None:
            checks.numbers(name, choice, dim, unit="d / time^2")


def _walls(walls: Any) -> Walls | None:
    allowed = "md.Walls, md.ShakenWalls or None"
    return checks.instance("walls", walls, (Walls, type(None)), allowed)


def _reorder(reorder: Any) -> Reorder | None:
    remedy = 'such as md.Reorder("hilbert", md.Every(500))'
    return checks.instance("reorder", reorder, (Reorder, type(None)), "an md.Reorder or None", remedy)


def _surroundings(surroundings: Any) -> tuple[Boundary, ...]:
    allowed, remedy = "surroundings, such as an md.Wing or an md.Inflow", "give one as [wing]"
    surroundings = checks.sequence("surroundings", surroundings, allowed, remedy=remedy)
    for k, surrounding in enumerate(surroundings):
        checks.instance(f"surroundings[{k}]", surrounding, Boundary, "an md.Wing or an md.Inflow")
    return surroundings


ALONE: dict[str, Callable[[Any], Any]] = {  # by name, what looks at a choice without the others
    "law": require_law,
    "search": search,
    "integrator": integrator,
    "walls": _walls,
    "reorder": _reorder,
    "surroundings": _surroundings,
    "backend": backends.checked,
    "fused": partial(checks.flag, "fused"),
    "allow_overlap": partial(checks.flag, "allow_overlap"),
}


def check_compatible(
    law: PairLaw,
    search: Search,
    integrator: Integrator,
    reorder: Reorder | None,
    fused: bool,
    surroundings: Sequence[Boundary] = (),
) -> None:
    """Look at what a simulation is to compute with.

    Raises:
        TypeError: a law of which kernels know nothing.
        ValueError: two choices of which one makes the other senseless.
    """
    require_law(law)
    if fused and not integrator.fuses:
        raise ValueError(
            f"integrator {integrator.name!r} cannot be fused into the force kernel; take fused=False"
        )
    if fused and surroundings:
        raise ValueError("surroundings with fused=True; steps with them are not fused; take fused=False")
    if surroundings and type(integrator).step_times is Integrator.step_times:
        raise ValueError(
            f"surroundings with integrator {integrator.name!r}; allowed: velocity_verlet, adaptive_euler, or "
            "one that tells its `step_times`: whose step is a kick and a drift"
        )
    if surroundings and reorder is not None and reorder.mode == "shadow":
        raise ValueError(
            "surroundings with a reorder of mode 'shadow', whose search has a copy of the particles; "
            "allowed: mode 'data' or 'threads', or none"
        )
    if fused and not search.fuses:
        raise ValueError(
            f"search {search.name!r} as chosen adds up or moves forces after its kernel, so that no step can "
            "be fused into it; take fused=False, or of 'reflexive' met='twice', atomics='none', data='sorted'"
        )
    if reorder is not None and search.sorts_data:
        raise ValueError(
            f"search {search.name!r} sorts the data itself at every build, so a separate reorder "
            f"({reorder.ordering!r}) has no effect; give it cell_order={reorder.ordering!r} instead"
        )
    if fused and reorder is not None and reorder.mode == "shadow":
        raise ValueError(
            "mode 'shadow' with fused=True would move the copy, which the next step makes anew; allowed: "
            "fused=False, or mode 'data' or 'threads'"
        )


def time_step(
    dt: float | None,
    law: PairLaw,
    walls: Walls | None,
    narrowest: float = 1.0,
    surroundings: Sequence[Boundary] = (),
) -> float:
    """The time step asked for, or a fiftieth of the shortest contact.

    Args:
        dt: in time units; None for what the contacts allow.
        law: between two particles.
        walls: None for none.
        narrowest: least diameter of a particle, in d: as the square root of it goes the contact time of two
            (`md.laws.polydisperse`), but for what dashpots add.
        surroundings: what else they touch.

    Raises:
        TypeError: a step that is no number.
        ValueError: a step that is not positive and finite, or none and no contact to derive it from.
    """
    if dt is None:
        contact_time = float(np.sqrt(narrowest)) * getattr(law, "contact_time", np.inf)
        if walls is not None:
            contact_time = min(contact_time, walls.duration(law))
        contact_time = min([contact_time, *(s.contact_time for s in surroundings)])
        if not np.isfinite(contact_time):
            raise ValueError(
                f"dt = None, but {law} has no contact time to derive it from; give dt in time units"
            )
        return float(contact_time / STEPS_PER_CONTACT)  # a law of one's own may tell a numpy number
    remedy = "None for a fiftieth of the contact time"
    return checks.number("dt", dt, above=0, unit="time units", remedy=remedy)
