"""Reading of checkpoint files: arrays in the zip format of numpy, checked before they are read.

The arrays are neither pickled nor compressed, so that they take no more memory than the file has bytes.
"""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from md.checks import host_memory, require_bytes
from md.errors import CheckpointError

COPIES = 3  # copies of the arrays in memory at one time: as read, as a state, and on the backend
MOST_STEPS = 2**62  # more than any run takes
MOST_CONFIG = 2**26  # bytes of the config, at four a character
BROKEN = (  # errors that zipfile and numpy raise for a damaged file
    ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, RuntimeError, MemoryError,
    TypeError, AttributeError, SyntaxError, tokenize.TokenError,
)  # fmt: skip


def read_arrays(
    path: Path, writer: str, format: str, expected: Callable[[Any, int], set[str]]
) -> dict[str, np.ndarray]:
    """Return the arrays of a file, read without pickle.

    Args:
        path: of the file.
        writer: function that writes such files, for messages: "Simulation.save".
        format: in the file; its last word says what the file holds.
        expected: takes the open file and its version, checks the version, and returns the names of the arrays
            to read. Any other array of the file, but for `format` and `version`, is an error.

    Raises:
        OSError: the file is missing or cannot be read.
        CheckpointError: the file is cut short, damaged or of another format, an entry is compressed, asks for
            more memory than allowed, or is not expected.
    """
    with open(path, "rb") as raw:
        if not zipfile.is_zipfile(raw):
            raise CheckpointError(
                f"{path} is cut short, or never was a checkpoint: it does not end as one; take the one before"
            )
        size = os.fstat(raw.fileno()).st_size
        try:
            with zipfile.ZipFile(raw) as file:
                _check_sizes(path, writer, file.infolist(), size)
            raw.seek(0)
            with np.load(raw, allow_pickle=False) as file:
                names = expected(file, _version(path, writer, format, file))
                for name in file.files:
                    if name not in names and name not in ("format", "version"):
                        raise unknown_entry(path, writer, name)
                arrays = {name: file[name] for name in names}
                for name, array in arrays.items():
                    require(path, name, array, isinstance(array, np.ndarray), "an array")
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


def part_of(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays with a prefix in their names, by name without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def require_step(path: str | Path, step: Any) -> None:
    """Raise a CheckpointError for a number of steps that no run has taken."""
    good = type(step) is int and 0 <= step < MOST_STEPS
    require(path, "step", step, good, f"an integer from 0 to {MOST_STEPS - 1}")


def require(path: str | Path, name: str, found: Any, good: bool, allowed: str) -> None:
    """Raise a CheckpointError that names file, entry, value and what is allowed, unless the entry is good."""
    if not good:
        raise CheckpointError(f"{path}: {name} = {found!r:.100}; allowed: {allowed}; the file is damaged")


def unknown_entry(path: Path, writer: str, name: str) -> CheckpointError:
    """Return the error for an entry that no checkpoint has."""
    return CheckpointError(
        f"{path} holds {name!r:.100}, which no checkpoint has; allowed: a file that {writer} wrote; "
        "take the one before"
    )


def _version(path: Path, writer: str, format: str, file: Mapping[str, np.ndarray]) -> int:
    """Return the version of an open file, after a check of its format."""
    if "format" not in file or str(file["format"]) != format:
        raise CheckpointError(
            f"{path} holds {', '.join(sorted(file)) or 'nothing'}, and no {format.split()[-1]}; allowed: a "
            f"file that {writer} wrote"
        )
    version = file["version"]
    good = isinstance(version, np.ndarray) and version.shape == () and version.dtype.kind in "iu"
    require(path, "version", version, good, "an integer")
    return int(version)


def _check_sizes(path: Path, writer: str, entries: list[zipfile.ZipInfo], size: int) -> None:
    """Check the memory that the entries of a file need, before any is read.

    Args:
        path: of the file, for messages.
        writer: function that writes such files.
        entries: all entries.
        size: of the file, in bytes.

    Raises:
        CheckpointError: an entry is compressed, or the entries need more memory than allowed.
    """
    needed, allowed = sum(entry.file_size for entry in entries), f"what {writer} wrote"
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED:
            raise CheckpointError(
                f"{path}: entry {entry.filename!r:.100} is compressed, {entry.compress_size} bytes for "
                f"{entry.file_size}; allowed: {allowed}, which is not; take the one before, or write the "
                "arrays again with numpy.savez if the file can be trusted"
            )
    if needed > size:
        raise CheckpointError(
            f"{path} has {size} bytes, and its entries ask for {needed}; allowed: {allowed}, where they take "
            "no more than the file; it is damaged, take the one before"
        )
    try:
        require_bytes(f"arrays of {path}", COPIES * needed, host_memory(), "load it on a larger machine")
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    for entry in entries:
        if entry.filename == "config.npy" and entry.file_size > MOST_CONFIG:
            raise CheckpointError(
                f"{path}: its config has {entry.file_size} bytes; allowed: up to {MOST_CONFIG}; the file is "
                "damaged, take the one before"
            )
