"""Files that are whole or not there, and files that one process at a time appends to.

What is written stands beside its place under a name of its own until it is whole and on the disk, and takes
its place in one move: a reader sees one whole file or another, however many processes write. Where the
place is a link, the file that it leads to is replaced and the link stays; what a partial name leads to is
never written. A new file has the permissions that the system gives new files, one that takes the place of
another has those of that one. The partial file of a process that was killed goes when the next is written.

A claim is a lock (`flock`) on a file, which ends with the process that has it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from md.checks import path as as_path

try:
    import fcntl
except ImportError:  # a system without: then nothing is locked
    fcntl = None

LONGEST_NAME = 40  # characters of the file's name in that of its partial file, which may not be too long


def write_atomically(path: str | Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file beside its place, bring it to the disk, and move it there.

    Until the move, whatever goes wrong (a full disk, a killed process, a power cut) leaves what was there.

    Args:
        path: of the file; where it is a link, the file it leads to.
        write: writes to the file it is given.

    Raises:
        TypeError: a path of another class.
        OSError: it cannot be written; tells the path, and nothing is left of the attempt.
    """
    path = as_path("path", path)
    try:
        with replacing(path) as file:
            write(file)
    except OSError as error:
        told = f"{error.strerror or error}; nothing was written, and a file that was there is as it was"
        raise OSError(error.errno, told, str(path)) from error


@contextlib.contextmanager
def replacing(path: Path, new: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which then takes its place in one move; nothing is left of one that was not written.

    Args:
        path: where the file goes; where it is a link, the file it leads to.
        new: refuse to take the place of another file.

    Yields:
        The file under its partial name (`name`), open and locked. Others may write to it by that name.

    Raises:
        OSError: it cannot be written.
        FileExistsError: there is a file; only if it is to be new.
    """
    place = Path(os.path.realpath(path))
    mode = _mode(place)
    _sweep(place)
    with _partial(place, mode) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _move(file.name, place, new)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.name)
            raise
    with contextlib.suppress(OSError):  # not every file system can
        _bring_to_disk(place.parent)


class Claim:
    """The right of this process alone to append to a file, until it is given up or forgotten.

    Args:
        handle: of the file, open and locked; closed with the claim.
    """

    def __init__(self, handle: int):
        self._handle: int | None = handle
        _claims[_key(handle)] = self

    def __del__(self):
        self.end()

    def end(self) -> None:
        """Give it up."""
        handle, self._handle = self._handle, None
        if handle is not None:
            if _claims.get(_key(handle)) is self:
                del _claims[_key(handle)]
            os.close(handle)


_claims: WeakValueDictionary[tuple[int, int], Claim] = WeakValueDictionary()  # of this process, by file


def _forget() -> None:
    """End the claims that a process has as a copy of another's; those of the other stay."""
    for claim in list(_claims.values()):
        claim.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def claimed(path: Path) -> Claim:
    """A claim on a file that is there; the one that this process has, if it has one.

    Raises:
        BlockingIOError: another process has claimed it.
        OSError: it cannot be opened, or is no regular file.
    """
    while True:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file; give another name", str(path))
            if (ours := _claims.get(_key(handle))) is not None:
                os.close(handle)
                return ours
            _lock(handle)
            if _is_at(handle, path):
                return Claim(handle)
        except BlockingIOError as error:
            os.close(handle)
            told = (
                "another process is appending to it; allowed: one run at a time; end that one (or `release` "
                "its Trajectory), or give another name"
            )
            raise BlockingIOError(errno.EWOULDBLOCK, told, str(path)) from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was replaced in the meantime: look at the new one


def claim_of(file: BinaryIO) -> Claim:
    """The claim on a file of `replacing`, which holds once it is in its place."""
    return Claim(os.dup(file.fileno()))


def _mode(place: Path) -> int | None:
    """Permissions of the file at a place, or None where there is none.

    Raises:
        OSError: what is there is no regular file.
    """
    try:
        found = os.stat(place).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if not stat.S_ISREG(found):
        raise OSError(errno.EINVAL, "what is there is no regular file; give another name", str(place))
    return stat.S_IMODE(found) & 0o777


def _partial(place: Path, mode: int | None) -> BinaryIO:
    """A new file beside a place, open and locked."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o666 if mode is None else mode)

    while True:
        name = place.with_name(f".{place.name[:LONGEST_NAME]}.{secrets.token_hex(8)}.partial")
        try:
            file = open(name, "xb", opener=opener)
        except FileExistsError:  # whatever it is, a link too, it is not written
            continue
        try:
            with contextlib.suppress(BlockingIOError):
                _lock(file.fileno())
                if _is_at(file.fileno(), name):  # or it was swept before it was locked
                    if mode is not None and hasattr(os, "fchmod"):
                        with contextlib.suppress(OSError):  # not every file system can
                            os.fchmod(file.fileno(), mode)
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _move(name: str, place: Path, new: bool) -> None:
    """Give a partial file its place."""
    if new:
        try:
            os.link(name, place)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(place):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        else:
            os.unlink(name)
            return
    os.replace(name, place)


def _sweep(place: Path) -> None:
    """Remove what processes left half written that were killed: no lock is on it."""
    if fcntl is None:
        return
    pattern, names = re.compile(rf"\.{re.escape(place.name[:LONGEST_NAME])}\.[0-9a-f]{{16}}\.partial"), []
    with contextlib.suppress(OSError):  # a folder that cannot be looked into, or that is none
        names = os.listdir(place.parent)
    for name in filter(pattern.fullmatch, names):
        partial = place.with_name(name)
        with contextlib.suppress(OSError):  # it is not ours to remove, in use, or gone already
            handle = os.open(partial, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(partial)
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    """Lock an open file for this process alone, where the file system can.

    Raises:
        BlockingIOError: another has.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _key(handle: int) -> tuple[int, int]:
    """What tells open files apart."""
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _bring_to_disk(folder: Path) -> None:
    """Make a move within a folder outlive a power cut, where folders can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
