"""Find the commit of a run by the hash of its sources, where the checkout of the run cannot name it.

A machine on which runs are made may hold a copy of the sources without their git history, or with an old
one. The hash of `experiments.core.provenance.code_of` identifies the sources, and a commit whose files have
the same hash holds the same sources. Git writes each commit as an archive in memory; nothing is checked out.
"""

import io
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

from experiments.core.provenance import CODE, PATHSPECS, PROJECT, SOURCES, git, hash_sources
from experiments.core.settings import UsageError
from md.checks import path as as_path
from sfc import checks

_NO_SOURCES = (":(exclude)results", ":(exclude)tests", ":(exclude)*.md")  # spare an archive its largest part


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
    root = as_path("root", root)
    checks.text("sources", sources, "64 hexadecimal digits of SHA-256")
    log = _git(
        root, "log", "--full-history", "--topo-order", "--format=%H", "HEAD", "--", *PATHSPECS, PROJECT
    )
    return next((commit for commit in log.decode().split() if sources_at(root, commit) == sources), None)


def sources_at(root: Path, commit: str) -> str:
    """Return the hash of the sources of a commit, as `code_of` has it for a checkout of that commit.

    Args:
        root: the top of a git checkout.
        commit: of its history.

    Raises:
        UsageError: a commit that cannot be read, as in an incomplete clone.
    """
    found: dict[PurePosixPath, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", commit, *_NO_SOURCES))) as archive:
        for member in archive:
            path, file = PurePosixPath(member.name), archive.extractfile(member) if member.isfile() else None
            is_source = path.parts[0] in CODE and path.suffix in SOURCES
            if file is not None and (is_source or member.name == PROJECT):
                found[path] = file.read()
    return hash_sources(found)


def _git(root: Path, *arguments: str) -> bytes:
    """Return what git prints about the history of the checkout at `root`."""
    try:
        return git(root, *arguments)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode(errors="replace") or str(error)
        raise UsageError(
            f"the history of {root} cannot be read: {reason.strip()}; allowed: the top of a git checkout "
            "with its history; git fetch --unshallow completes one"
        ) from error
