"""The caches of the chip at hand, as its maker or its system tells them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from md.backend import Backend
from sfc import checks

# Bytes of the L1 of a multiprocessor by compute capability, shared memory included, of which our searches
# take next to none. NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability.
_L1 = {(7, 0): 128, (7, 5): 96, (8, 0): 192, (8, 6): 128, (8, 7): 192, (8, 9): 128, (9, 0): 256}
_L1 |= {(10, 0): 256, (12, 0): 128}
SECTOR = 32  # bytes that a miss of a GPU's cache brings
_WAYS = 16  # of a GPU's caches, assumed: it is not published
_SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")


class Cache(NamedTuple):
    """A level.

    Attributes:
        name: "L1", "L2" or "L3".
        bytes: that it holds.
        line: bytes that a miss brings.
        ways: lines of a set.
    """

    name: str
    bytes: int
    line: int
    ways: int

    @property
    def usable(self) -> int:
        """Bytes, as many as make whole sets."""
        return self.bytes - self.bytes % (self.line * self.ways)


def caches(backend: Backend) -> tuple[Cache, ...]:
    """The first and the last level of data cache where a backend runs; of a GPU L1 and L2.

    Raises:
        ValueError: a device of a kind that is not known, or a system that does not tell.
    """
    if backend.name == "cuda":
        told = backend.describe()
        kind = tuple(int(number) for number in told["compute_capability"].split("."))
        if kind not in _L1:
            raise ValueError(
                f"the L1 of a device of compute capability {kind[0]}.{kind[1]} is not known; known: "
                + ", ".join(f"{a}.{b}" for a, b in _L1)
                + "; add its line to experiments/measurement/hardware_caches.py, from the CUDA C++ "
                "Programming Guide"
            )
        last = round(told["l2_MiB"] * 2**20)
        return Cache("L1", _L1[kind] * 2**10, SECTOR, _WAYS), Cache("L2", last, SECTOR, _WAYS)
    found = system_caches(_SYSTEM)
    return found[0], found[-1]


def system_caches(folder: Path) -> list[Cache]:
    """The data caches of a core, from the smallest level on, as Linux tells them.

    Args:
        folder: of the core's caches, /sys/devices/system/cpu/cpu0/cache.

    Raises:
        TypeError: a folder that is no path.
        ValueError: it tells of none.
    """
    folder, found = checks.path("folder", folder), []
    for index in sorted(folder.glob("index*")):
        told = {
            name: (index / name).read_text().strip()
            for name in ("level", "type", "size", "ways_of_associativity", "coherency_line_size")
            if (index / name).is_file()
        }
        complete = {"size", "ways_of_associativity", "coherency_line_size"} <= set(told)
        if told.get("type") in ("Data", "Unified") and complete:
            size = int(told["size"].removesuffix("K")) * 2**10
            ways = int(told["ways_of_associativity"])
            if ways < 1:
                continue  # not told
            found.append(Cache("L" + told["level"], size, int(told["coherency_line_size"]), ways))
    if not found:
        raise ValueError(f"no data cache is told of in {folder}; allowed: a Linux that lists them")
    return sorted(found)


def working_set(n: int, dim: int, precision: str, backend: Backend) -> dict[str, float | None]:
    """Bytes that a step reads and writes of particles, and of the last cache, as columns.

    Args:
        n: particles.
        dim: axes.
        precision: "float32" or "float64".
        backend: where they are.

    Returns:
        `working_set_MB`: positions, velocities and forces; `cache_MB`: of the last level, None where it is
        not told.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a number out of range, or another precision.
    """
    n, dim = checks.integer("n", n, 0, unit="particles"), checks.integer("dim", dim, 2, 3)
    precision = checks.word("precision", precision, ("float32", "float64"))
    checks.instance("backend", backend, Backend, "an md.backend.Backend")
    width = 4 if backend.layout == "aos4" else dim
    held = 3 * n * width * np.dtype(precision).itemsize
    try:
        last = caches(backend)[-1].bytes
    except ValueError:
        last = None
    return {"working_set_MB": held / 1e6, "cache_MB": None if last is None else last / 1e6}
