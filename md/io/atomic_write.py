"""Atomic writes of files, and locks on files to which one process at a time appends.

A file is written under a partial name in the same folder, brought to the disk, and moved to its place in one
step: a reader finds one whole file or another, for any number of writing processes. If the path is a link,
its target is replaced and the link stays; the target of a partial name is never written. A new file has the
permissions of new files of the system, a file that replaces another has the permissions of that one. The
partial file of a killed process is removed at the next write.

A claim is a lock (`flock`) on a file, which ends with its process.
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
except ImportError:  # a system without it: then nothing is locked
    fcntl = None  # type: ignore[assignment]  # a module on other systems

LONGEST_NAME = 40  # characters of the file's name in the name of its partial file


def write_atomically(path: str | Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file under a partial name, bring it to the disk, and move it to its place.

    Any failure before the move (a full disk, a killed process, a power cut) leaves the old file unchanged.

    Args:
        path: of the file; if it is a link, its target is replaced.
        write: function that writes to a given file.

    Raises:
        TypeError: a path of another class.
        OSError: the file cannot be written; names the path, and no partial file is left.
    """
    path = as_path("path", path)
    try:
        with replacing(path) as file:
            write(file)
    except OSError as error:
        reason = f"{error.strerror or error}; nothing was written, and a file that was there is as it was"
        raise OSError(error.errno, reason, str(path)) from error


@contextlib.contextmanager
def replacing(path: Path, new: bool = False) -> Iterator[BinaryIO]:
    """Open a partial file, and move it to its place at the end of the context; remove it after an error.

    Args:
        path: of the file; if it is a link, its target is replaced.
        new: raise an error if there is a file already.

    Yields:
        The file under its partial name (`name`), open and locked. Other libraries may write to that name.

    Raises:
        OSError: the file cannot be written.
        FileExistsError: there is a file already; only with `new`.
    """
    place = Path(os.path.realpath(path))
    mode = _mode(place)
    _remove_stale(place)
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
    with contextlib.suppress(OSError):  # not supported by every file system
        _sync_folder(place.parent)


class Claim:
    """Exclusive right of this process to append to a file, until `end` or the end of the object.

    Args:
        handle: descriptor of the file, open and locked; closed with the claim.
    """

    def __init__(self, handle: int):
        self._handle: int | None = handle
        _claims[_key(handle)] = self

    def __del__(self) -> None:
        self.end()

    def end(self) -> None:
        """Close the file and release the lock."""
        handle, self._handle = self._handle, None
        if handle is not None:
            if _claims.get(_key(handle)) is self:
                del _claims[_key(handle)]
            os.close(handle)


_claims: WeakValueDictionary[tuple[int, int], Claim] = WeakValueDictionary()  # of this process, by file


def _end_inherited_claims() -> None:
    """End the claims that a forked process has as copies; those of the parent process stay."""
    for claim in list(_claims.values()):
        claim.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_inherited_claims)


def claimed(path: Path) -> Claim:
    """Claim an existing file; return the claim of this process if it has one.

    Raises:
        BlockingIOError: another process has claimed the file.
        OSError: the file cannot be opened, or is not a regular file.
    """
    while True:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file; give another name", str(path))
            if (known := _claims.get(_key(handle))) is not None:
                os.close(handle)
                return known
            _lock(handle)
            if _is_at(handle, path):
                return Claim(handle)
        except BlockingIOError as error:
            os.close(handle)
            reason = (
                "another process is appending to it; allowed: one run at a time; end that one (or `release` "
                "its Trajectory), or give another name"
            )
            raise BlockingIOError(errno.EWOULDBLOCK, reason, str(path)) from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the file was replaced in the meantime: open the new one


def claim_of(file: BinaryIO) -> Claim:
    """Claim a file of `replacing`; the claim is valid once the file is at its place."""
    return Claim(os.dup(file.fileno()))


def _mode(place: Path) -> int | None:
    """Return the permissions of the file at a path, or None without a file.

    Raises:
        OSError: something else than a regular file.
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
    """Create a partial file in the folder of a path, open and locked."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o666 if mode is None else mode)

    while True:
        name = place.with_name(f".{place.name[:LONGEST_NAME]}.{secrets.token_hex(8)}.partial")
        try:
            file = open(name, "xb", opener=opener)
        except FileExistsError:  # a file or a link of that name is not written
            continue
        try:
            with contextlib.suppress(BlockingIOError):
                _lock(file.fileno())
                if _is_at(file.fileno(), name):  # else it was removed before it was locked
                    if mode is not None and hasattr(os, "fchmod"):
                        with contextlib.suppress(OSError):  # not supported by every file system
                            os.fchmod(file.fileno(), mode)
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _move(name: str, place: Path, new: bool) -> None:
    """Move a partial file to its place."""
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


def _remove_stale(place: Path) -> None:
    """Remove the partial files of killed processes, which are not locked."""
    if fcntl is None:
        return
    pattern = re.compile(rf"\.{re.escape(place.name[:LONGEST_NAME])}\.[0-9a-f]{{16}}\.partial")
    names: list[str] = []
    with contextlib.suppress(OSError):  # a folder that cannot be read, or does not exist
        names = os.listdir(place.parent)
    for name in filter(pattern.fullmatch, names):
        partial = place.with_name(name)
        with contextlib.suppress(OSError):  # without permission, in use, or already removed
            handle = os.open(partial, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(partial)
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    """Lock an open file for this process only, if the file system supports locks.

    Raises:
        BlockingIOError: another process has locked the file.
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
    """Check that an open file is the file at a path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _key(handle: int) -> tuple[int, int]:
    """Return device and inode of an open file, which identify the file."""
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _sync_folder(folder: Path) -> None:
    """Bring the entries of a folder to the disk; an OSError on systems that cannot open folders."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
