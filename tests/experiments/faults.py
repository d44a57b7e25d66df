"""Faults planted between any two changes of the disk: the process ends there, or the disk is full."""

import contextlib
import errno
import io
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.core.settings import UsageError

CHANGES = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "truncate", "link")
MOST = 200  # changes of one call
KILLED, FULL = "killed", "full"


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond a size in bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Killed(BaseException):
    """The process has ended: it changes nothing more."""


def each_fault(
    kind: str, folder: Path, prepare: Callable[[], None], call: Callable[[], object]
) -> Iterator[int]:
    """Call again and again, with a fault at each change of a folder in turn, and yield after each call.

    Args:
        kind: `KILLED`: from the change on there are no others; `FULL`: that one has no room.
        folder: in which changes count.
        prepare: makes the disk as it was.
        call: that is disturbed.
    """
    for at in range(MOST):
        prepare()
        with pytest.MonkeyPatch.context() as patch:
            made = _plant(patch, kind, folder, at)
            with contextlib.suppress(Killed, OSError, UsageError):
                call()
        if made[0] <= at:
            assert at > 0
            return
        yield at
    raise AssertionError(f"more than {MOST} changes")


def _plant(patch: pytest.MonkeyPatch, kind: str, folder: Path, at: int) -> list[int]:
    made = [0]

    def count(path: object) -> None:
        if not str(path).startswith(str(folder)):  # one by number is of a folder that is removed as a whole
            return
        made[0] += 1
        if kind == KILLED and made[0] > at:
            raise Killed
        if kind == FULL and made[0] == at + 1:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def counted(change: Callable) -> Callable:
        return lambda path, *more, **named: (count(path), change(path, *more, **named))[1]

    def opened(path: object, flags: int, *more, **named) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            count(path)
        return os_open(path, flags, *more, **named)

    def file(path: object, mode: str = "r", *more, **named) -> io.IOBase:
        if set(mode) & set("wax+"):
            count(path)
        return io_open(path, mode, *more, **named)

    os_open, io_open = os.open, open
    for name in CHANGES if kind == KILLED else ("mkdir",):  # only what is made needs room
        patch.setattr(os, name, counted(getattr(os, name)))
    patch.setattr(os, "fsync", lambda handle: None)  # takes most of the time
    patch.setattr(os, "open", opened)
    patch.setattr(io, "open", file)
    patch.setattr("builtins.open", file)
    return made
