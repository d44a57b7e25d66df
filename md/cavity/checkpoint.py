"""Checkpoints of cavities: all that a run needs to resume, to the last bit, in one file without code.

A file holds numpy arrays without pickle, in the zip format of `numpy.savez`. `format` and `version` identify
it. `config` is JSON, with the arguments of the cavity and the step. `u`, `v` and `p` are the fields, row by
row, and `state_*` what a strategy keeps besides (`Solver.state_dict`). The arrays are not compressed; what no
checkpoint holds is an error with its name (`md.io.archive`).
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from md import checks
from md.cavity.base import Order, Strategy
from md.cavity.sides import Sides, from_plain
from md.cavity.strategies import STRATEGIES
from md.errors import CheckpointError
from md.io.archive import part_of, read_arrays, require, require_step
from md.io.atomic_write import write_atomically
from sfc import Curve

FORMAT, VERSION = "spatial-locality cavity", 1
WRITER = "Cavity.save"
FIELDS = ("u", "v", "p")
CURVE = ("name", "dim", "base", "rank", "next", "start")  # parameters of a curve
ARGUMENTS = (  # of a cavity, that a file holds
    "shape", "viscosity", "dt", "density", "lid", "size", "sweeps", "strategy", "order", "pressure", "grid",
    "sides", "layout", "precision", "backend",
)  # fmt: skip


class SavedCavity(NamedTuple):
    """Content of a checkpoint.

    Attributes:
        arguments: of `md.Cavity`, by name.
        step: steps taken so far.
        fields: u, v and p, (ny, nx) each.
        state: what the strategy keeps besides, by name.
        strategy: name of the strategy that keeps it.
    """

    arguments: dict[str, Any]
    step: int
    fields: tuple[np.ndarray, np.ndarray, np.ndarray]
    state: dict[str, np.ndarray]
    strategy: str

    def write(self, path: str | Path) -> None:
        """Write the file atomically: it replaces an existing one once it is complete and on the disk.

        Raises:
            TypeError: a path of another class.
            OSError: the file cannot be written; an existing file is not changed.
        """
        plain = {name: _plain(value) for name, value in self.arguments.items()}
        config = json.dumps({"cavity": plain, "step": self.step})
        arrays: dict[str, Any] = dict(zip(FIELDS, self.fields, strict=True))
        arrays |= {f"state_{name}": array for name, array in self.state.items()}
        arrays |= {"format": FORMAT, "version": VERSION, "config": config}
        write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))

    @classmethod
    def read(cls, path: str | Path) -> SavedCavity:
        """Read a file and check its content, but for the arguments, which the cavity checks.

        Raises:
            TypeError: a path of another class.
            OSError: the file is missing or cannot be read.
            CheckpointError: the file is cut short, damaged, no checkpoint, of an unknown version, or has
                invalid content.
        """
        path = checks.path("path", path)
        arrays = read_arrays(path, WRITER, FORMAT, lambda file, version: _expected(path, file, version))
        try:
            config = json.loads(str(arrays["config"]))
            plain, step = dict(config["cavity"]), config["step"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{path}: its config cannot be read: {error!r}; the file is damaged"
            ) from error
        for name in plain.keys() ^ set(ARGUMENTS):
            require(path, "arguments", name, False, ", ".join(ARGUMENTS))
        require_step(path, step)
        shape, precision = plain["shape"], plain["precision"]
        for name in FIELDS:
            array = arrays[name]
            found = f"an array of {array.dtype} and shape {array.shape}"
            good = list(array.shape) == shape and array.dtype == precision
            require(path, name, found, good, f"{precision} of shape {shape}, as its config has it")
        try:
            strategy = plain["strategy"]["name"]
            arguments = {name: _made(name, value) for name, value in plain.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"{path}: its config: {error}; the file is damaged") from error
        fields = arrays["u"], arrays["v"], arrays["p"]
        return cls(arguments, step, fields, part_of(arrays, "state_"), strategy)


def _expected(path: Path, file: Any, version: int) -> set[str]:
    """Return the names of the arrays of an open file of this version."""
    require(path, "version", version, version == VERSION, str(VERSION))
    return {"config", *FIELDS, *(name for name in file.files if name.startswith("state_"))}


def _plain(value: Any) -> Any:
    """Return an argument as plain data for JSON."""
    if isinstance(value, Strategy):
        parameters: list[str] = [one.name for one in fields(value)] if is_dataclass(value) else []
        return {"name": value.name, "with": {name: getattr(value, name) for name in parameters}}
    if isinstance(value, Curve):
        return {"curve": {name: np.asarray(getattr(value, name)).tolist() for name in CURVE}}
    return value.to_plain() if isinstance(value, Sides) else value


def _made(name: str, plain: Any) -> Any:
    """Return the argument of a name from plain data.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: data that describe no argument.
    """
    if name == "strategy":
        return STRATEGIES[checks.word("strategy", plain["name"], STRATEGIES)](**plain["with"])
    if name == "sides" and plain is not None:
        return from_plain(plain)
    if name == "order" and not isinstance(plain, str):
        order: Order = Curve(**{parameter: plain["curve"][parameter] for parameter in CURVE})
        return order
    return tuple(plain) if name == "shape" else plain
