"""Find the commit of a run by the hash of its sources, where the checkout of the run cannot name it.

A machine on which runs are made may hold a copy of the sources without their git history, or with an old
one. The hash of `experiments.core.provenance.code_of` identifies the sources, and a commit whose files have
the same hash holds the same sources. Git's objects are read, each once; nothing is checked out.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from experiments.core.provenance import CODE, SOURCES, hash_sources
from experiments.core.settings import UsageError
from experiments.processes.lifetime import program
from md.checks import path as as_path
from sfc import checks

_FOLDER = b"40000"  # mode of a folder in a tree object
_FILES = (b"100644", b"100755")  # modes of a file; links and submodules are no sources


def find_commit(root: Path, sources: str) -> str | None:
    """Find the commit in the history of a checkout that introduced the given sources.

    If they were introduced more than once, it is the last time. Commits before it are not read.

    Args:
        root: the folder that holds the packages, the top of a git checkout.
        sources: hash of the sources, of `code_of`.

    Returns:
        The commit, 40 hexadecimal digits; None if no commit of `HEAD`'s history has these sources.

    Raises:
        UsageError: a root whose history cannot be read.
    """
    checks.text("sources", sources, "64 hexadecimal digits of SHA-256")
    introduced = None
    for commit, found in commits(root):
        if found == sources:
            introduced = commit
        elif introduced:
            break
    return introduced


def commits(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the commits of a checkout's history, newest first, each with the hash of its sources.

    Args:
        root: the folder that holds the packages, the top of a git checkout.

    Raises:
        UsageError: a root whose history cannot be read.
    """
    root = as_path("root", root)
    command = ["git", "-C", str(root), "log", "--topo-order", "--format=%H %T", "HEAD"]
    try:
        log = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise UsageError(
            f"the history of {root} cannot be read: {reason.strip()}; allowed: the top of a git checkout"
        ) from error
    command = ["git", "-C", str(root), "cat-file", "--batch"]
    with program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        objects = _Objects(process)
        for line in log.splitlines():
            commit, tree = line.split()
            yield commit, objects.sources_of(tree)


class _Objects:
    """Git's objects, read from `git cat-file --batch` and kept.

    Args:
        process: of that program, with pipes.
    """

    def __init__(self, process: Any):
        self._process = process
        self._entries = cache(self._read_tree)
        self._files = cache(self._read_files)
        self._hash = cache(self._hash_parts)

    def sources_of(self, tree: str) -> str:
        """Return the hash of the sources in the tree of a commit."""
        entries = self._entries(tree)
        return self._hash(tuple(entries.get(name.encode()) for name in (*CODE, "pyproject.toml")))

    def _hash_parts(self, parts: tuple[tuple[bytes, str] | None, ...]) -> str:
        """Hash the sources of the packages and pyproject.toml; commits that change none of them share it."""
        found: dict[PurePosixPath, bytes] = {}
        for package, part in zip(CODE, parts, strict=False):
            if part is not None and part[0] == _FOLDER:
                found |= {package / path: data for path, data in self._files(part[1]).items()}
        if (project := parts[-1]) is not None and project[0] in _FILES:
            found[PurePosixPath("pyproject.toml")] = self._read(project[1])
        return hash_sources(found)

    def _read_files(self, tree: str) -> dict[PurePosixPath, bytes]:
        """Read the source files below a tree: path -> content."""
        found: dict[PurePosixPath, bytes] = {}
        for name, (mode, identifier) in self._entries(tree).items():
            path = PurePosixPath(name.decode())
            if mode == _FOLDER:
                below = self._files(identifier)
                found |= {path / inner: data for inner, data in below.items()}
            elif mode in _FILES and path.suffix in SOURCES:
                found[path] = self._read(identifier)
        return found

    def _read_tree(self, tree: str) -> dict[bytes, tuple[bytes, str]]:
        """Read a tree object: name -> mode and identifier. A line is `mode name`, a zero, the identifier."""
        data, found, size = self._read(tree), {}, len(tree) // 2
        while data:
            head, _, rest = data.partition(b"\0")
            mode, _, name = head.partition(b" ")
            found[name] = (mode, rest[:size].hex())
            data = rest[size:]
        return found

    def _read(self, identifier: str) -> bytes:
        """Read an object."""
        self._process.stdin.write(identifier.encode() + b"\n")
        self._process.stdin.flush()
        header = self._process.stdout.readline().split()
        if len(header) != 3:  # missing in an incomplete clone
            raise UsageError(
                f"git has no object {identifier}; allowed: a complete clone; take git fetch --unshallow"
            )
        data = self._process.stdout.read(int(header[2]))
        self._process.stdout.read(1)  # the end of the line
        return data
