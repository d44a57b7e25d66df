"""Checkpoints: all that a run needs to go on, to the last bit, in one file that runs no code.

A file holds numpy arrays without pickle, in the zip of `numpy.savez`. `format` and `version` identify it;
`config` is JSON, with the choices of the simulation (`md.simulation.config`), box, step, energy of the start and
version of the package; `pos`, `vel` and `id` are the arrays in their memory order, the velocity as the integrator
stores it (that of `velocity_verlet` is half a step behind), and in a file of version 3 there may be `radius` too;
`integrator_*`, `reorder_*` and `surroundings_*` are the `state_dict` of these parts, of a boundary with its
number. A file holds neither the structure of a search nor its plan: saving resets the search (`Search.reset`), so
that the run that is saved and the one that is loaded go on alike.

The arrays are not compressed, so that they take no more memory than the file has bytes. An entry that no
checkpoint has is refused by name.
"""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from md.checks import host_memory, integer, memory
from md.checks import path as as_path
from md.errors import CheckpointError
from md.io.atomic_write import write_atomically
from md.particles.box import Box
from md.particles.state import State

FORMAT, VERSION = "spatial-locality checkpoint", 2
PACKAGE = "0.2.0"  # version of this package; files without one were written by 0.1.0
LATER = 3  # of a file with radii, open sides or surroundings, of which a package that reads 2 knows nothing
STATES = {  # by part, the names of the arrays that the parts in the registries have
    "integrator": ("elapsed",),
    "reorder": ("applied", "order", "last", "home"),
    "surroundings": ("given", "renewed"),
}
COPIES = 3  # of the arrays that there are at one time: as read, as a state, and as particles
MOST_CONFIG = 2**26  # bytes of the config, at four a character
BROKEN = (  # what zipfile and numpy raise for one byte or another that is wrong
    ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, RuntimeError, MemoryError,
    TypeError, AttributeError, SyntaxError, tokenize.TokenError,
)  # fmt: skip
MOST_STEPS = 2**62  # above those of any run
CHOICES = (  # arguments of a simulation that a file has
    "law", "search", "integrator", "dt", "reorder", "walls", "gravity", "surroundings", "backend",
    "precision", "fused", "allow_overlap",
)  # fmt: skip
FLAGS = ("fused", "allow_overlap")


class Checkpoint:
    """Saves the simulation at intervals; a reporter for `Simulation.run(reporters=[...])`.

    Let it be the last of the reporters: one after it misses a step if the run is killed in between.

    Args:
        path: of the file, usually `.npz`; each takes the place of the one before.
        interval: in steps, at least 1.

    Raises:
        TypeError: an argument of another class.
        ValueError: an interval below 1.
    """

    def __init__(self, path: str | Path, interval: int):
        self.path = as_path("path", path)
        self.interval = integer("interval of Checkpoint", interval, unit="steps")

    def report(self, simulation: Any) -> None:
        """Save; see `Simulation.save`."""
        simulation.save(self.path)


class SavedRun(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        choices: plain data of each choice (`md.simulation.config.to_plain`).
        state: the particles in memory order, their velocities as the integrator keeps them.
        step: steps taken so far.
        start_energy: `start` of `md.simulation.energy_monitor.EnergyMonitor`.
        states: `state_dict` of the integrator, the reorder and the surroundings, by these words.
    """

    choices: dict[str, Any]
    state: State
    step: int
    start_energy: float | None
    states: dict[str, dict[str, np.ndarray]]

    def write(self, path: str | Path) -> None:
        """Put the file in its place, once it is whole and on the disk.

        Raises:
            OSError: it cannot be written; what was there is as it was.
        """
        state = self.state
        choices = {name: plain for name, plain in self.choices.items() if name != "surroundings" or plain}
        later = state.radius is not None or any(state.box.open) or "surroundings" in choices
        version = LATER if later else VERSION
        config = {
            "simulation": choices,
            "box": {"lengths": state.box.lengths, "periodic": state.box.periodic, "open": state.box.open},
            "step": self.step,
            "start_energy": self.start_energy,
            "sized": state.radius is not None,
            "package": PACKAGE,
        }
        arrays = {"pos": state.pos, "vel": state.vel, "id": state.id}
        if state.radius is not None:
            arrays["radius"] = state.radius
        for part in STATES:
            arrays |= {f"{part}_{name}": array for name, array in self.states.get(part, {}).items()}
        arrays |= {"format": FORMAT, "version": version, "config": json.dumps(config)}
        write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))

    @classmethod
    def read(cls, path: str | Path) -> SavedRun:
        """Read a file.

        Raises:
            TypeError: a path of another class.
            OSError: there is none, or it cannot be read.
            CheckpointError: it is cut short or damaged, another's, of a newer version, or holds what cannot
                be.
        """
        path = as_path("path", path)
        arrays = _arrays(path)
        try:
            config = json.loads(str(arrays["config"]), object_hook=_number)
            sides = config["box"]
            box = Box(tuple(sides["lengths"]), tuple(sides["periodic"]), tuple(sides.get("open", (False,))))
            choices, step, energy = dict(config["simulation"]), config["step"], config["start_energy"]
            _refuse_others(path, arrays, choices)
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
        _require(path, "law", None, "law" in choices, "one of the registry, by name")
        good = type(step) is int and 0 <= step < MOST_STEPS
        _require(path, "step", step, good, f"an integer from 0 to {MOST_STEPS - 1}")
        good = energy is None or (type(energy) in (int, float) and 0 <= energy < np.inf)
        _require(path, "start_energy", energy, good, "null, or a number of at least 0")
        for name in FLAGS:
            flag = choices.get(name, False)
            _require(path, name, flag, type(flag) is bool, "true or false")
        for name in ("pos", "vel", "radius") if "radius" in arrays else ("pos", "vel"):
            kind = arrays[name].dtype
            _require(
                path,
                f"dtype of {name}",
                kind,
                kind == choices.get("precision"),
                "the precision in its config",
            )
        try:
            state = State(arrays["pos"], arrays["vel"], box, arrays["id"], arrays.get("radius"))
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}; the file is damaged") from error
        states = {
            part: {
                name.removeprefix(f"{part}_"): arrays[name] for name in arrays if name.startswith(f"{part}_")
            }
            for part in STATES
        }
        return cls(choices, state, step, energy, states)


@contextmanager
def blamed_on(path: str | Path):
    """Around what makes a simulation from a file's data: says of an error which file it was.

    Raises:
        CheckpointError: no simulation can be made.
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
    """An object of JSON; the number alone of one that tells its dtype too, as files once did."""
    return plain["number"] if plain.keys() == {"number", "dtype"} else plain


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file of this format, read without pickle."""
    with open(path, "rb") as raw:
        if not zipfile.is_zipfile(raw):
            raise CheckpointError(
                f"{path} is cut short, or never was a checkpoint: it does not end as one; take the one before"
            )
        size = os.fstat(raw.fileno()).st_size
        try:
            with zipfile.ZipFile(raw) as file:
                _judge(path, file.infolist(), size)
            raw.seek(0)
            with np.load(raw, allow_pickle=False) as file:
                sized = _version(path, file) == LATER and "radius" in file.files
                names = {"config", "pos", "vel", "id", *(("radius",) if sized else ())} | {
                    name for name in file.files if name.startswith(tuple(f"{part}_" for part in STATES))
                }
                for name in file.files:
                    if name not in names and name not in ("format", "version"):
                        raise _other(path, name)
                arrays = {name: file[name] for name in names}
                for name, array in arrays.items():
                    _require(path, name, array, isinstance(array, np.ndarray), "an array")
                return arrays
        except CheckpointError:
            raise
        except MemoryError as error:
            raise CheckpointError(
                f"{path} has {size} bytes, and there is no memory for its arrays: {error}; allowed: what "
                "there is memory for; load it on a larger machine, or take the one before if it is damaged"
            ) from error
        except BROKEN as error:
            raise CheckpointError(f"{path} is damaged: {error}; take the one before") from error


def _judge(path: Path, entries: list[zipfile.ZipInfo], size: int) -> None:
    """Look, before any is read, at how much memory the entries of a file ask for.

    Args:
        path: of the file, for messages.
        entries: all.
        size: of the file, in bytes.
    """
    asked, allowed = sum(entry.file_size for entry in entries), "what Simulation.save wrote"
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED:
            raise CheckpointError(
                f"{path}: entry {entry.filename!r:.100} is compressed, {entry.compress_size} bytes for "
                f"{entry.file_size}; allowed: {allowed}, which is not; take the one before, or write the "
                "arrays again with numpy.savez if the file can be trusted"
            )
    if asked > size:
        raise CheckpointError(
            f"{path} has {size} bytes, and its entries ask for {asked}; allowed: {allowed}, where they take "
            "no more than the file; it is damaged, take the one before"
        )
    try:
        memory(f"arrays of {path}", COPIES * asked, host_memory(), "load it on a larger machine")
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    for entry in entries:
        if entry.filename == "config.npy" and entry.file_size > MOST_CONFIG:
            raise CheckpointError(
                f"{path}: its config has {entry.file_size} bytes; allowed: up to {MOST_CONFIG}; the file is "
                "damaged, take the one before"
            )


def _refuse_others(path: Path, arrays: Mapping[str, np.ndarray], choices: Mapping[str, Any]) -> None:
    """Refuse what no memory has. Of a choice that is in no registry, the names are its own."""
    around = choices.get("surroundings")
    for part, names in STATES.items():
        if not _registered(choices.get(part)):
            continue
        if part == "surroundings":
            count = len(around) if isinstance(around, list) else 0
            names = [f"{k}_{name}" for k in range(count) for name in names]
        allowed = {f"{part}_{name}" for name in names}
        for name in arrays:
            if name.startswith(f"{part}_") and name not in allowed:
                raise _other(path, name)


def _registered(plain: Any) -> bool:
    """Whether a choice, as plain data, is made of what is in a registry alone."""
    if isinstance(plain, dict):
        return "unknown" not in plain and all(map(_registered, plain.values()))
    return all(map(_registered, plain)) if isinstance(plain, list) else True


def _other(path: Path, name: str) -> CheckpointError:
    return CheckpointError(
        f"{path} holds {name!r:.100}, which no checkpoint has; allowed: a file that Simulation.save wrote; "
        "take the one before"
    )


def _version(path: str | Path, file: Mapping[str, np.ndarray]) -> int:
    if "format" not in file or str(file["format"]) != FORMAT:
        raise CheckpointError(
            f"{path} holds {', '.join(sorted(file)) or 'nothing'}, and no checkpoint; allowed: a file that "
            "Simulation.save wrote"
        )
    version = file["version"]
    good = isinstance(version, np.ndarray) and version.shape == () and version.dtype.kind in "iu"
    _require(path, "version", version, good, "an integer")
    if version not in (VERSION, LATER):
        raise CheckpointError(
            f"{path} is of version {version}, written by spatial-locality {_writer(file)}; allowed: {VERSION}, "
            f"{LATER}, which version {PACKAGE} of the package reads; load it with the version that wrote it"
        )
    return int(version)


def _writer(file: Mapping[str, np.ndarray]) -> str:
    """Version of the package that wrote a file: 0.1.0 if the file has none."""
    try:
        return f"{json.loads(str(file['config']))['package']:.20}"
    except (KeyError, TypeError, ValueError, RecursionError):
        return "0.1.0"


def _require(path: str | Path, name: str, found: Any, good: bool, allowed: str) -> None:
    if not good:
        raise CheckpointError(f"{path}: {name} = {found!r:.100}; allowed: {allowed}; the file is damaged")
