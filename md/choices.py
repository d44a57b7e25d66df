"""Choices of a simulation as plain data, and made again from it: numbers, words, lists, nothing that runs.

Contract. A class that stands in a registry is told as its name there and the parameters of its constructor,
which it keeps as attributes of the same names. What is made again comes from the registries alone. A new
kind of choice is one line in `SLOTS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from md.backend import Cpu, Cuda
from md.boundaries import WALLS
from md.boundaries.airfoil import Airfoil
from md.boundaries.inflow import Inflow
from md.boundaries.wing import Wing
from md.integrate import INTEGRATORS
from md.laws import LAWS
from md.reorder import SCHEDULES, Reorder
from md.search import SEARCHES
from sfc import Curve

SLOTS: dict[str, Mapping[str, type]] = {  # what may stand where, by the name of the parameter
    "airfoil": {"airfoil": Airfoil},
    "backend": {"cpu": Cpu, "cuda": Cuda},
    "integrator": INTEGRATORS,
    "law": LAWS,
    "reorder": {"reorder": Reorder},
    "schedule": SCHEDULES,
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
