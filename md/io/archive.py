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
MOST_CONFIG = 2**26  # bytes of the config, at four a character
BROKEN = (  # errors that zipfile and numpy raise for a damaged file
    ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, RuntimeError, MemoryError,
    TypeError, AttributeError, SyntaxError, tokenize.TokenError,
)  # fmt: skip


def read_arrays(
    path: Path, writer: str, expected: Callable[[Mapping[str, np.ndarray]], set[str]]
) -> dict[str, np.ndarray]:
    """Return the arrays of a file, read without pickle.

    Args:
        path: of the file.
        writer: function that writes such files, for messages: "Simulation.save".
        expected: takes the open file, checks its format and version, and returns the names of the arrays to
            read. Any other array of the file, but for `format` and `version`, is an error.

    Raises:
        OSError: the file is missing or cannot be read.
        CheckpointError: the file is cut short or damaged, an entry is compressed, asks for more memory than
            allowed, or is not expected.
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
                names = expected(file)
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
