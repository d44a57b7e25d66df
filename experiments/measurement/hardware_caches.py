"""Sizes of the caches of the CPU or GPU in use, from its vendor's tables or the operating system."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from md.backend import Backend
from sfc import checks

# Bytes of the L1 of a multiprocessor by compute capability, shared memory included, of which our searches
# use almost none. NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability.
_L1 = {"7.0": 128, "7.5": 96, "8.0": 192, "8.6": 128, "8.7": 192, "8.9": 128, "9.0": 256}
_L1 |= {"10.0": 256, "12.0": 128}
SECTOR = 32  # bytes that a miss of a GPU's cache loads
_WAYS = 16  # of a GPU's caches, assumed: it is not published
_ENTRIES = ("level", "type", "size", "ways_of_associativity", "coherency_line_size")  # of a cache, by Linux
SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")


class Cache(NamedTuple):
    """One level of cache.

    Attributes:
        name: "L1", "L2" or "L3".
        bytes: capacity.
        line: bytes that a miss loads.
        ways: lines of a set.
    """

    name: str
    bytes: int
    line: int
    ways: int

    @property
    def usable(self) -> int:
        """Return the bytes of all complete sets."""
        return self.bytes - self.bytes % (self.line * self.ways)


def caches(backend: Backend) -> tuple[Cache, ...]:
    """Return the first and the last level of data cache of a backend's device; L1 and L2 of a GPU.

    Raises:
        ValueError: an unknown kind of device, or a system that lists no caches.
    """
    if backend.name == "cuda":
        device = backend.describe()
        kind = device["compute_capability"]
        if kind not in _L1:
            raise ValueError(
                f"the L1 of a device of compute capability {kind} is not known; known: {', '.join(_L1)}; "
                "add its line to experiments/measurement/hardware_caches.py, from the CUDA C++ Programming "
                "Guide"
            )
        last = round(device["l2_MiB"] * 2**20)
        return Cache("L1", _L1[kind] * 2**10, SECTOR, _WAYS), Cache("L2", last, SECTOR, _WAYS)
    found = system_caches(SYSTEM)
    return found[0], found[-1]


def system_caches(folder: Path) -> list[Cache]:
    """Read the data caches of a core from Linux, the smallest level first.

    Args:
        folder: of the core's caches, /sys/devices/system/cpu/cpu0/cache.

    Raises:
        TypeError: a folder that is no path.
        ValueError: the folder lists no cache.
    """
    folder, found = checks.path("folder", folder), []
    for index in sorted(folder.glob("index*")):
        entries = {
            one.name: one.read_text("ascii").strip() for one in index.iterdir() if one.name in _ENTRIES
        }
        if len(entries) < len(_ENTRIES) or entries["type"] not in ("Data", "Unified"):
            continue
        level, _, size, ways, line = (entries[name] for name in _ENTRIES)
        if int(ways) >= 1:  # else unknown
            found.append(Cache(f"L{level}", int(size.removesuffix("K")) * 2**10, int(line), int(ways)))
    if not found:
        raise ValueError(f"{folder} lists no data cache; allowed: a Linux that lists them")
    return sorted(found)


def step_bytes(n: int, numbers: int, precision: str) -> int:
    """Return the bytes of positions, velocities and forces of n particles, of so many numbers each."""
    return 3 * n * numbers * np.dtype(precision).itemsize


def working_set(n: int, dim: int, precision: str, backend: Backend) -> dict[str, float | None]:
    """Compute the working set of a step and the size of the last cache, as columns.

    Args:
        n: number of particles.
        dim: number of axes.
        precision: "float32" or "float64".
        backend: of the particles.

    Returns:
        `working_set_MB`: positions, velocities and forces; `cache_MB`: of the last level, None if it is
        unknown.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a number out of range, or another precision.
    """
    n, dim = checks.integer("n", n, 0, unit="particles"), checks.integer("dim", dim, 2, 3)
    precision = checks.word("precision", precision, ("float32", "float64"))
    checks.instance("backend", backend, Backend, "an md.backend.Backend")
    width = 4 if backend.layout == "aos4" else dim
    held = step_bytes(n, width, precision)
    try:
        last = caches(backend)[-1].bytes
    except ValueError:
        last = None
    return {"working_set_MB": held / 1e6, "cache_MB": None if last is None else last / 1e6}
