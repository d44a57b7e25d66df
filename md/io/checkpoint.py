"""Checkpoints: all that a run needs to resume, to the last bit, in one file that can be read without code.

A file holds numpy arrays without pickle, in the zip format of `numpy.savez`. `format` and `version` identify
it. `config` is JSON, with the choices of the simulation (`md.simulation.config`), box, step, energy of the
start and version of the package. `pos`, `vel` and `id` are the arrays in memory order, the velocity as the
integrator stores it (that of `velocity_verlet` is half a step behind); a file of version 3 may also have
`radius`. `integrator_*`, `reorder_*` and `surroundings_*` are the `state_dict` of these parts, with the
number of each boundary. A file holds neither the structure of a search nor its plan: saving resets the search
(`Search.reset`), so that the saved run and the loaded run continue in the same way.

The arrays are not compressed, and an entry that no checkpoint has raises an error with its name
(`md.io.archive`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from md.checks import integer
from md.checks import path as as_path
from md.errors import CheckpointError
from md.io.archive import part_of, read_arrays, require, require_step, unknown_entry
from md.io.atomic_write import write_atomically
from md.particles.box import Box
from md.particles.state import State

FORMAT, VERSION = "spatial-locality checkpoint", 2
PACKAGE = "0.3.0"  # version of this package; files without one were written by 0.1.0
LATER = 3  # version of a file with open sides or surroundings, which readers of version 2 do not support
SIZED = 4  # version of a file with radii; in one of version 3 a law of unequal spheres was another
STATES: dict[str, tuple[str, ...]] = {  # part -> names of the arrays of the registered classes
    "integrator": ("elapsed",),
    "reorder": ("applied", "order", "last", "home"),
    "surroundings": ("given", "renewed"),
}
BUILT_IN = {  # names of the integrators, reorders, triggers and boundaries whose arrays are those of STATES
    "velocity_verlet", "position_verlet", "adaptive_euler", "steepest_descent", "flight", "reorder", "never",
    "every", "moved", "decayed", "wing", "inflow", "airfoil",
}  # fmt: skip
WRITER = "Simulation.save"
CHOICES = (  # arguments of a simulation that a file holds
    "law", "search", "integrator", "dt", "reorder", "walls", "gravity", "surroundings", "backend",
    "precision", "fused", "allow_overlap", "deterministic",
)  # fmt: skip
FLAGS = ("fused", "allow_overlap", "deterministic")
LATER_CHOICES = ("surroundings", "deterministic")  # which a file holds only if they are made


class Checkpoint:
    """Reporter that saves the simulation at intervals, for `Simulation.run(reporters=[...])`.

    It should be the last reporter: one after it misses a step if the run is killed in between.

    Args:
        path: of the file, usually `.npz`; each checkpoint replaces the one before.
        interval: in steps, at least 1.

    Raises:
        TypeError: an argument of another class.
        ValueError: an interval below 1.
    """

    def __init__(self, path: str | Path, interval: int):
        self.path = as_path("path", path)
        self.interval = integer("interval of Checkpoint", interval, unit="steps")

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, interval={self.interval})"

    def report(self, simulation: Any) -> None:
        """Save the simulation; see `Simulation.save`."""
        simulation.save(self.path)


class SavedRun(NamedTuple):
    """Content of a checkpoint.

    Attributes:
        choices: plain data of each choice (`md.simulation.config.to_plain`).
        state: the particles in memory order, with velocities as the integrator stores them.
        step: steps taken so far.
        states: `state_dict` of the parts "integrator", "reorder" and "surroundings", and of the "energy"
            monitor, which the file has in its config; there also `step` when the run was saved.
    """

    choices: dict[str, Any]
    state: State
    step: int
    states: dict[str, dict[str, np.ndarray]]

    def write(self, path: str | Path) -> None:
        """Write the file atomically: it replaces an existing one once it is complete and on the disk.

        Raises:
            OSError: the file cannot be written; an existing file is not changed.
        """
        state, start = self.state, self.states["energy"]["start"]
        choices = {name: plain for name, plain in self.choices.items() if name not in LATER_CHOICES or plain}
        version = LATER if any(state.box.open) or "surroundings" in choices else VERSION
        version = version if state.radius is None else SIZED
        config = {
            "simulation": choices,
            "box": {"lengths": state.box.lengths, "periodic": state.box.periodic, "open": state.box.open},
            "step": self.step,
            "start_energy": float(start[0]) if len(start) else None,
            "sized": state.radius is not None,
            "package": PACKAGE,
        }
        arrays: dict[str, Any] = {"pos": state.pos, "vel": state.vel, "id": state.id}
        if state.radius is not None:
            arrays["radius"] = state.radius
        for part in STATES:
            arrays |= {f"{part}_{name}": array for name, array in self.states.get(part, {}).items()}
        arrays |= {"format": FORMAT, "version": version, "config": json.dumps(config)}
        write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))

    @classmethod
    def read(cls, path: str | Path) -> SavedRun:
        """Read a file and check its content.

        Raises:
            TypeError: a path of another class.
            OSError: the file is missing or cannot be read.
            CheckpointError: the file is cut short, damaged, no checkpoint, of an unknown version, or has
                invalid content.
        """
        path = as_path("path", path)
        arrays = _arrays(path)
        try:
            config = json.loads(str(arrays["config"]), object_hook=_number)
            sides = config["box"]
            box = Box(tuple(sides["lengths"]), tuple(sides["periodic"]), tuple(sides.get("open", (False,))))
            choices, step, energy = dict(config["simulation"]), config["step"], config["start_energy"]
            _check_entries(path, arrays, choices)
        except CheckpointError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise CheckpointError(
                f"{path}: its config cannot be read: {error!r}; the file is damaged"
            ) from error
        if config.get("sized", "radius" in arrays) != ("radius" in arrays):
            raise CheckpointError(
                f"{path} is damaged: its config and its radii disagree; take the one before"
            )
        known = ", ".join(CHOICES)
        for name in sorted(choices.keys() - set(CHOICES)):
            raise CheckpointError(f"{path}: unknown choice {name!r:.100}; allowed: {known}; it is damaged")
        require(path, "law", None, "law" in choices, "one of the registry, by name")
        require_step(path, step)
        good = energy is None or (type(energy) in (int, float) and 0 <= energy < np.inf)
        require(path, "start_energy", energy, good, "null, or a number of at least 0")
        for name in FLAGS:
            flag = choices.get(name, False)
            require(path, name, flag, type(flag) is bool, "true or false")
        for name in ("pos", "vel", "radius") if "radius" in arrays else ("pos", "vel"):
            kind, precision = arrays[name].dtype, choices.get("precision")
            require(path, f"dtype of {name}", kind, kind == precision, "the precision in its config")
        try:
            state = State(arrays["pos"], arrays["vel"], box, arrays["id"], arrays.get("radius"))
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}; the file is damaged") from error
        states = {part: part_of(arrays, f"{part}_") for part in STATES}
        start = np.array([] if energy is None else [energy], np.float64)
        states["energy"] = {"start": start, "step": np.array(step)}
        return cls(choices, state, step, states)


@contextmanager
def blamed_on(path: str | Path) -> Iterator[None]:
    """Add the name of a file to errors in the block, which makes a simulation from its data.

    Raises:
        CheckpointError: the block has raised an error.
    """
    try:
        yield
    except MemoryError as error:
        raise CheckpointError(
            f"{path} makes no simulation here: {error or 'out of memory'}; allowed: what there is memory "
            "for; give another search, load(..., search='lbvh'), or load it on a larger machine"
        ) from error
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        remedy = "" if "allowed" in str(error) else "; allowed: what `save` writes; the file is damaged"
        raise CheckpointError(f"{path} makes no simulation: {error}{remedy}") from error


def _number(plain: dict[str, Any]) -> Any:
    """Return an object of JSON; of a number with its dtype, as in older files, the number only."""
    return plain["number"] if plain.keys() == {"number", "dtype"} else plain


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file of this format."""

    def expected(file: Any, version: int) -> set[str]:
        _check_version(path, file, version)
        named = {name for name in file.files if name.startswith(tuple(f"{part}_" for part in STATES))}
        return named | {"config", "pos", "vel", "id", *(("radius",) if version == SIZED else ())}

    return read_arrays(path, WRITER, FORMAT, expected)


def _check_entries(path: Path, arrays: Mapping[str, np.ndarray], choices: Mapping[str, Any]) -> None:
    """Check the names of the arrays of each part; classes of a user may use any names.

    Raises:
        CheckpointError: an array that the part does not have.
    """
    boundaries = choices.get("surroundings")
    for part, names in STATES.items():
        if not _is_built_in(choices.get(part)):
            continue
        if part == "surroundings":
            count = len(boundaries) if isinstance(boundaries, list) else 0
            names = tuple(f"{k}_{name}" for k in range(count) for name in names)
        allowed = {f"{part}_{name}" for name in names}
        for name in arrays:
            if name.startswith(f"{part}_") and name not in allowed:
                raise unknown_entry(path, WRITER, name)


def _is_built_in(plain: Any) -> bool:
    """Return whether a choice, as plain data, is made of classes of this package only."""
    if isinstance(plain, dict):
        name = plain.get("name", plain.get("unknown"))
        known = "unknown" not in plain and (name is None or name in BUILT_IN)
        return known and all(map(_is_built_in, plain.values()))
    return all(map(_is_built_in, plain)) if isinstance(plain, list) else True


def _check_version(path: Path, file: Mapping[str, np.ndarray], version: int) -> None:
    if version == LATER and "radius" in file:
        raise CheckpointError(
            f"{path} has radii and is of version {version}, of a package with another law of unequal spheres "
            f"(md.laws.polydisperse); allowed: version {SIZED}; load it with spatial-locality "
            f"{_writer(file, '0.2.0')}, or make a Simulation of its arrays pos, vel, id and radius"
        )
    if version not in (VERSION, LATER, SIZED):
        writer = _writer(file, "0.1.0" if version < VERSION else "of a later version")
        raise CheckpointError(
            f"{path} is of version {version}, written by spatial-locality {writer}; allowed: "
            f"{VERSION}, {LATER}, {SIZED}, which version {PACKAGE} of the package reads; load it with the "
            "version that wrote it"
        )


def _writer(file: Mapping[str, np.ndarray], default: str) -> str:
    """Return the version of the package that wrote a file, or the default if the file has none."""
    try:
        return f"{json.loads(str(file['config']))['package']:.20}"
    except (KeyError, TypeError, ValueError, RecursionError):
        return default
