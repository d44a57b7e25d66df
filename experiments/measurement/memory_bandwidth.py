"""Bandwidth of the memory of a backend, by a copy that does not fit its caches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from experiments.measurement.correctness import WrongResultError
from experiments.measurement.hardware_caches import caches
from md.backend import Backend
from sfc.compile import thread_count

BYTES = {"cpu": 2**28, "cuda": 2**31}  # of each of the two arrays, at least
TIMES = 2  # the last cache, at least
SAMPLES = 7


@lru_cache
def copy_bandwidth(backend: Backend) -> float:
    """Measure the bytes read and written by a copy, in GB/s: the best of a few copies, once in a process.

    On the CPU each of Numba's threads copies a part. An old line that a write loads first is not counted.

    Args:
        backend: of the arrays.
    """
    count = max(BYTES[backend.name], TIMES * caches(backend)[-1].bytes) // 8
    source, target = (backend.empty(count, np.float64) for _ in range(2))
    backend.fill(source, 1)
    backend.fill(target, 0)  # memory that was freed may hold the numbers of the source
    parts = thread_count() if backend.name == "cpu" else 1
    ends = np.linspace(0, count, parts + 1).astype(int)

    def copy(part: int) -> None:
        target[ends[part] : ends[part + 1]] = source[ends[part] : ends[part + 1]]

    times = []
    with ThreadPoolExecutor(parts) as pool:
        for _ in range(SAMPLES):
            with backend.stopwatch() as elapsed:
                list((pool.map if parts > 1 else map)(copy, range(parts)))  # a device belongs to its thread
            times.append(elapsed[0])
    if not bool((target == source).all()):
        raise WrongResultError("a copy in memory differs from its source; not recorded")
    return 2 * 8 * count / min(times) / 1e6
