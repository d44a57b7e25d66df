"""Files that are whole or not there: what is written takes its place in one move."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file beside its place, bring it to the disk, and move it there.

    Until the move, whatever goes wrong (a full disk, a killed process, a power cut) leaves what was there.

    Args:
        path: of the file; where it is a link, the file it leads to.
        write: writes to the file it is given.

    Raises:
        OSError: it cannot be written; tells the path, and nothing is left of the attempt.
    """
    place = Path(os.path.realpath(path))
    partial = place.with_name(f".{place.name}.partial")
    try:
        try:
            with open(partial, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, place)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        told = f"{error.strerror or error}; nothing was written, and a file that was there is as it was"
        raise OSError(error.errno, told, str(path)) from error
    with contextlib.suppress(OSError):  # not every file system can
        _bring_to_disk(place.parent)


def _bring_to_disk(folder: Path) -> None:
    """Make a move within a folder outlive a power cut, where folders can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
