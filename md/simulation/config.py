"""Configuration of a simulation: all choices, checked together once, and as plain data for a checkpoint.

An object of a registered class becomes its registered name and the parameters of its constructor, which are
attributes of the same names. Only registered classes are made from plain data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from md import backend as backends
from md import checks
from md.backend import Backend, Cpu, Cuda
from md.boundaries import BOUNDARIES, WALLS
from md.boundaries.airfoil import Airfoil
from md.boundaries.base import Boundary
from md.boundaries.walls import Walls
from md.errors import BackendUnavailableError, CheckpointError
from md.integrate import INTEGRATORS, Integrator, integrator
from md.io.checkpoint import SavedRun
from md.laws import LAWS, PairLaw
from md.laws.pair import gives_increments, kernel_law, require_law
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.state import State
from md.particles.system import System
from md.reorder import TRIGGERS, Reorder
from md.search import SEARCHES, SearchConfig, search
from md.simulation.time_step import time_step, warn_if_endless
from sfc import Curve

PRECISIONS = ("float32", "float64")
SLOTS: dict[str, Mapping[str, type]] = {  # name of a field or parameter -> its registered classes
    "airfoil": {"airfoil": Airfoil},
    "backend": {"cpu": Cpu, "cuda": Cuda},
    "integrator": INTEGRATORS,
    "law": LAWS,
    "reorder": {"reorder": Reorder},
    "schedule": TRIGGERS,
    "search": SEARCHES,
    "surrounding": BOUNDARIES,
    "walls": WALLS,
}
ELEMENT = {"surroundings": "surrounding"}  # name of a list -> name of its elements
OPTIONAL = ("reorder", "walls")  # may be None
CURVE = ("name", "dim", "base", "rank", "next", "start")


@dataclass(frozen=True)
class SimulationConfig:
    """Checked choices of a simulation except its initial state: plain data, stored in a checkpoint.

    Attributes:
        law: between pairs.
        search, integrator: configurations, with their parameters; names are replaced by what they stand for.
        dt: time step in time units; None for that which resolves every contact (`time_step`).
        reorder: None for none.
        walls: None for none.
        gravity: (dim,) acceleration in d / time^2; None for none.
        surroundings: other boundaries.
        backend: CPU or CUDA; a name is replaced by the backend.
        precision: "float32" or "float64".
        fused: whether the integrator's step is part of the force kernel.
        allow_overlap: whether centres may be closer at the start than the law's `closest_start`.
        deterministic: whether forces are summed in order of id.

    Raises:
        TypeError: a choice of another class than described, or a law of a class without a pair function.
        ValueError: an unknown name, or choices that do not go together (`INCOMPATIBLE`).
        BackendUnavailableError: CUDA is not available, or the law has no `.cuh`.
    """

    law: PairLaw
    search: SearchConfig
    integrator: Integrator
    dt: float | None
    reorder: Reorder | None
    walls: Walls | None
    gravity: tuple[float, ...] | None
    surroundings: tuple[Boundary, ...]
    backend: Backend
    precision: str
    fused: bool
    allow_overlap: bool
    deterministic: bool = False

    def __post_init__(self):
        set_field = partial(object.__setattr__, self)
        for name, check in ALONE.items():
            set_field(name, check(getattr(self, name)))
        set_field("precision", checks.word("precision", self.precision, PRECISIONS))
        require_law(self.law)
        for condition, message in INCOMPATIBLE:
            if condition(self):
                raise ValueError(message.format(c=self))
        set_field("backend", backends.get(self.backend))
        self.backend.require_code_of(self.law)
        kernel_law(self.law, np.dtype(self.precision))  # raises for its numbers here, not at the first step

    def build_system(self, state: State) -> System:
        """Make the shared state of a simulation from its initial state.

        Raises:
            TypeError: a time step that is no number.
            ValueError: a box too small for the cutoff, too many cells, radii under a law without sizes, or a
                time step that is not positive and finite, or None without a contact time to derive it from.
        """
        if state.radius is not None and gives_increments(self.law):
            raise ValueError(
                f"a state with radii under {self.law}, whose particles have no size; allowed: a state with "
                "radius=None"
            )
        dtype = np.dtype(self.precision)
        particles = ParticleArrays(state, dtype, self.backend)
        grid = CellGrid(state.box, self.law.cutoff * particles.widest, dtype, self.backend)
        dt = time_step(self.dt, self.law, self.walls, self.surroundings)
        warn_if_endless(self.law, self.surroundings)
        may_overlap = self.allow_overlap or gives_increments(self.law)
        system = System(particles, grid, dt, may_overlap)
        system.by_id = self.deterministic
        return system

    def with_step(self, dt: float, gravity: Sequence[float] | None) -> SimulationConfig:
        """Return the configuration with the derived time step and the gravity as a tuple of floats."""
        gravity = None if gravity is None else tuple(map(float, gravity))
        return replace(self, dt=dt, gravity=gravity)

    def to_plain(self) -> dict[str, Any]:
        """Return each choice as plain data for JSON."""
        return {field.name: to_plain(field.name, getattr(self, field.name)) for field in fields(self)}


def to_plain(slot: str, choice: Any) -> Any:
    """Return a choice as plain data for JSON.

    Args:
        slot: name of the field or parameter.
        choice: the object. An object of an unregistered class becomes its qualified name only.
    """
    for name, kind in SLOTS.get(slot, {}).items():
        if type(choice) is kind:
            parameters = inspect.signature(kind).parameters
            return {"name": name, "with": {p: to_plain(p, getattr(choice, p)) for p in parameters}}
    if choice is None or isinstance(choice, str) or type(choice) in (bool, int, float):
        return choice
    if isinstance(choice, (tuple, list)):
        return [to_plain(ELEMENT.get(slot, ""), value) for value in choice]
    if isinstance(choice, np.ndarray):
        return choice.tolist()
    if type(choice) is Curve:
        return {"curve": {p: np.asarray(getattr(choice, p)).tolist() for p in CURVE}}
    named = choice if hasattr(choice, "__qualname__") else type(choice)
    return {"unknown": f"{named.__module__}.{named.__qualname__}"}


def from_plain(slot: str, plain: Any) -> Any:
    """Make a choice from the plain data that `to_plain` returned.

    Args:
        slot: name of the field or parameter.
        plain: the data.

    Raises:
        ValueError: an unregistered class, or data that describe no choice.
    """
    if isinstance(plain, dict) and "unknown" in plain:
        raise ValueError(f"{slot} is of {plain['unknown']!r}, which is in no registry of md")
    if slot in SLOTS:
        return None if plain is None and slot in OPTIONAL else _of_registry(slot, plain)
    if plain is None or isinstance(plain, (bool, int, float, str)):
        return plain
    if isinstance(plain, list):
        return tuple(from_plain(ELEMENT.get(slot, ""), value) for value in plain)
    try:
        if "curve" in plain:
            return Curve(**{p: plain["curve"][p] for p in CURVE})
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{slot} = {plain!r:.100}: {error}") from error
    raise ValueError(f"{slot} = {plain!r:.100}; allowed: a number, a word, a list, a curve")


def _of_registry(slot: str, plain: Any) -> Any:
    """Build a registered strategy from plain data; see `from_plain`."""
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
        return registry[name](**{p: from_plain(p, value) for p, value in parameters.items()})
    except (TypeError, ArithmeticError) as error:
        raise ValueError(f"{slot} {name!r}: {error}") from error


def _walls(walls: Any) -> Walls | None:
    """Check walls, and return the same."""
    allowed = "md.Walls, md.ShakenWalls or None"
    return checks.instance("walls", walls, (Walls, type(None)), allowed)


def _reorder(reorder: Any) -> Reorder | None:
    """Check a reorder, and return the same."""
    remedy = 'such as md.Reorder("hilbert", md.Every(500))'
    return checks.instance("reorder", reorder, (Reorder, type(None)), "an md.Reorder or None", remedy)


def _surroundings(surroundings: Any) -> tuple[Boundary, ...]:
    """Check surroundings, a sequence of boundaries, and return a tuple of them."""
    allowed, remedy = "surroundings, such as an md.Wing or an md.Inflow", "give one as [wing]"
    surroundings = checks.sequence("surroundings", surroundings, allowed, remedy=remedy)
    for k, boundary in enumerate(surroundings):
        checks.instance(
            f"surroundings[{k}]", boundary, Boundary, "an md.Wing or an md.Inflow, or another Boundary"
        )
    return surroundings


ALONE: dict[str, Callable[[Any], Any]] = {  # name -> check of a choice without the others, which returns it
    "walls": _walls,
    "reorder": _reorder,
    "surroundings": _surroundings,
    "search": search,
    "integrator": integrator,
    "fused": partial(checks.flag, "fused"),
    "allow_overlap": partial(checks.flag, "allow_overlap"),
    "deterministic": partial(checks.flag, "deterministic"),
}


def check_given(given: Mapping[str, Any], dim: int) -> None:
    """Check the choices that replace those of a file, each without the others.

    Args:
        given: choices by name; a name of another choice is not checked.
        dim: number of axes of the box.

    Raises:
        TypeError: a choice of another class.
        ValueError: a choice that is invalid for every simulation of so many axes.
    """
    check = ALONE | {"law": require_law, "backend": backends.checked}
    for name, choice in given.items():
        if name in check:
            check[name](choice)
        elif name == "gravity" and choice is not None:
            checks.numbers(name, choice, dim, unit="d / time^2")


def _takes_other_laws(c: SimulationConfig) -> bool:
    """Return whether the integrator takes increments and the law gives forces, or the reverse."""
    return c.integrator.capabilities.takes_increments != gives_increments(c.law)


def _sorts_otherwise(c: SimulationConfig) -> bool:
    """Return whether the search sorts the particles, and cannot along the ordering of the reorder."""
    if c.reorder is None or not c.search.capabilities.moves_particles:
        return False
    known = {order for dim in (2, 3) for order in type(c.search).cell_orders(dim)}
    return isinstance(c.reorder.ordering, str) and c.reorder.ordering not in known


def _copies(c: SimulationConfig) -> bool:
    """Return whether the search works on a sorted copy of the particles."""
    return c.reorder is not None and c.reorder.mode == "shadow"


INCOMPATIBLE: tuple[tuple[Callable[[SimulationConfig], bool], str], ...] = (  # (condition, message)
    (
        lambda c: _takes_other_laws(c) and c.integrator.capabilities.takes_increments,
        "integrator {c.integrator.name!r} takes increments of velocity, and {c.law} gives forces; allowed: a "
        "law such as md.laws.Boids(), or integrator='velocity_verlet'",
    ),
    (
        _takes_other_laws,
        "{c.law} gives increments of velocity, and integrator {c.integrator.name!r} takes forces; allowed: "
        "integrator='flight'",
    ),
    (
        lambda c: c.fused and not c.integrator.capabilities.fusable,
        "integrator {c.integrator.name!r} cannot be fused into the force kernel; take fused=False",
    ),
    (
        lambda c: c.fused and bool(c.surroundings),
        "surroundings with fused=True; steps with them are not fused; take fused=False",
    ),
    (
        lambda c: bool(c.surroundings) and not c.integrator.capabilities.kicks_and_drifts,
        "surroundings with integrator {c.integrator.name!r}; allowed: velocity_verlet, adaptive_euler, or "
        "another that takes one kick and one drift a step (`md.integrate.Capabilities`)",
    ),
    (
        lambda c: bool(c.surroundings) and _copies(c),
        "surroundings with a reorder of mode 'shadow', which searches on a copy of the particles; "
        "allowed: mode 'data' or 'threads', or none",
    ),
    (
        lambda c: c.fused and not c.search.capabilities.fusable,
        "search {c.search.name!r} as chosen sums or moves forces after its kernel, so no step can be fused "
        "into it; take fused=False, or 'reflexive' with met='twice', atomics='none', data='sorted'",
    ),
    (
        lambda c: c.reorder is not None and not getattr(c.search, "sorts", True),
        "search {c.search.name!r} with sorts=False leaves the particles where they are, so it takes no "
        "reorder ({c.reorder.ordering!r}); allowed: a state that is in order, or sorts=True with "
        "cell_order={c.reorder.ordering!r}",
    ),
    (
        _sorts_otherwise,
        "search {c.search.name!r} sorts the data itself, and not along {c.reorder.ordering!r}, so a "
        "separate reorder has no effect; allowed: no reorder, or search 'coherent' with "
        "cell_order={c.reorder.ordering!r}",
    ),
    (
        lambda c: c.reorder is not None and c.search.capabilities.moves_particles,
        "search {c.search.name!r} sorts the data itself, so a separate reorder "
        "({c.reorder.ordering!r}) has no effect; give it cell_order={c.reorder.ordering!r} instead",
    ),
    (
        lambda c: c.deterministic and (c.search.name != "verlet" or backends.get(c.backend).name != "cpu"),
        "deterministic=True with search {c.search.name!r} on {c.backend!r}; allowed: search 'verlet' on the "
        "CPU, with lists sorted by id",
    ),
    (
        lambda c: c.fused and _copies(c),
        "mode 'shadow' with fused=True would move the copy, which is overwritten at the next step; allowed: "
        "fused=False, or mode 'data' or 'threads'",
    ),
)


def require_divisible(config: SimulationConfig, system: System) -> None:
    """Raise an error for choices that cannot be divided among ranks.

    Args:
        config: the choices.
        system: made of them.

    Raises:
        ValueError: one that cannot.
    """
    integrator, search, ahead = config.integrator, config.search, config.backend.runs_ahead
    refused = {
        "a device and steps that are not fused; allowed: fused=True": ahead and not config.fused,
        f"a device and search {search.name!r}; allowed: 'verlet'": ahead and search.name != "verlet",
        f"a device and layout {config.backend.layout!r}; allowed: 'aos4'":
            ahead and config.backend.layout != "aos4" and config.backend.name == "cuda",
        f"search {search.name!r}; allowed: {divisible(SEARCHES)}": not search.capabilities.divisible,
        "a reorder; allowed: none, since ranks sort their particles themselves":
            config.reorder is not None,
        "surroundings; allowed: none": bool(config.surroundings),
        f"integrator {integrator.name!r}; allowed: {divisible(INTEGRATORS)}":
            not integrator.capabilities.divisible,
        "skin 'auto', which ranks would tune apart; allowed: a number or None":
            getattr(search, "skin", None) == "auto",
    }  # fmt: skip
    for what, is_refused in refused.items():
        if is_refused:
            raise ValueError(f"several ranks with {what}; take these, or one rank")


def divisible(choices: Mapping[str, Any]) -> str:
    """Return the names of the classes that work on several ranks."""
    return ", ".join(repr(name) for name, one in choices.items() if one.capabilities.divisible)


def holds(saved: SavedRun, slot: str, choice: Any) -> bool:
    """Return whether a choice equals the saved one."""
    return (to_plain(slot, choice) or None) == (saved.choices.get(slot) or None)


def choices_of(saved: SavedRun, path: str | Path, instead: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the choices in a checkpoint to arguments of `Simulation`.

    Args:
        saved: content of the file.
        path: of the file, for messages.
        instead: arguments that replace those of the file.

    Raises:
        CheckpointError: a choice of the file cannot be made here.
        BackendUnavailableError: the file's backend is not available.
        ValueError: an argument that the file does not have, or that cannot be replaced.
    """
    free = [slot for slot in saved.choices if slot not in ("dt", "precision")]
    for name in instead:
        if name not in free:
            raise ValueError(
                f"{name} = {instead[name]!r} in place of that of {path}; allowed: {', '.join(free)}"
            )
    given = instead.get("integrator")
    given = integrator(given) if isinstance(given, str) else given
    stored = saved.choices.get("integrator")
    if given is not None and "unknown" not in (stored or {}) and not holds(saved, "integrator", given):
        raise ValueError(
            f"integrator = {given!r} in place of that of {path}: velocities and time in the file "
            "are those of the saved integrator; allowed: the same; for another make a "
            "Simulation from the `state` of the one loaded"
        )
    chosen = dict(instead)
    for slot in saved.choices.keys() - instead.keys():
        try:
            chosen[slot] = from_plain(slot, saved.choices[slot])
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{path}: {error}; give another: load(..., {slot}=...), or `register` its class before"
            ) from error
        except BackendUnavailableError as error:
            raise BackendUnavailableError(
                f"{path} was saved on another backend: {error}; take load(..., backend='cpu'), which resumes "
                "here, where sums round differently"
            ) from error
    return chosen
