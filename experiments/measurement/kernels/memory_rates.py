"""Micro-benchmarks of memory: rates of sectors in no order, times of loads that wait for each other.

They give the rates of the second cache and of memory of an `sfc.cache.Machine`, and latencies. Their kernels
are in memory_rates.cu. Each result is compared with numpy's before a time is kept.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from experiments.measurement.correctness import WrongResultError
from md.backend import Backend, OnDevice
from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.compile import kernel

SECTOR, NUMBERS = 32, 8  # bytes, and numbers of 4 bytes, of a sector
THREADS, EACH = 2**20, 512  # threads, and loads of each: some ms, beside which a launch takes no time
SAMPLES = 5
CHECKED = 2**10  # threads with sums that are compared with numpy's
STEPS = 2**14  # loads of a chain


def sector_rate(backend: Backend, size: int, threads: int = THREADS, each: int = EACH) -> float:
    """Measure how many sectors of 32 bytes in no order are loaded, on a device past its first cache.

    Args:
        backend: CPU or device.
        size: bytes from which the sectors are drawn, at least 32; rounded down to whole sectors.
        threads: number of threads.
        each: loads of a thread.

    Returns:
        10^9 sectors a second: the best of a few launches.

    Raises:
        TypeError: a size that is no integer.
        ValueError: a size out of range.
        WrongResultError: sums that are not numpy's.
    """
    sectors = checks.integer("size", size, SECTOR, SECTOR * (2**31 - 1), unit="bytes") // SECTOR
    numbers = np.arange(sectors, dtype=np.uint32) * np.uint32(2654435761)  # each sector has another
    data = _spread(backend, numbers)
    sums, kernels, times = backend.zeros(threads, np.int32), _kernels(backend), []
    for seed in range(SAMPLES + 1):
        with backend.stopwatch() as elapsed:
            kernels.random_sectors(threads, data, sectors, each, seed, sums)
        times.append(elapsed[0])
    some = min(threads, CHECKED)
    expected = numbers[drawn(some, sectors, each, SAMPLES)].sum(axis=1, dtype=np.uint32)
    if not np.array_equal(backend.download(sums)[:some].view(np.uint32), expected):
        raise WrongResultError("sums of random sectors differ from numpy's; not recorded")
    return threads * each / min(times[1:]) / 1e6


def drawn(threads: int, sectors: int, each: int, seed: int) -> np.ndarray:
    """Return the sectors that the first threads draw: (threads, each) int64."""
    with np.errstate(over="ignore"):
        word = np.arange(threads * each, dtype=np.uint64) + (np.uint64(seed) << np.uint64(40))
        word = mixed.py_func(word) >> np.uint64(32)
    return (word * np.uint64(sectors) >> np.uint64(32)).astype(np.int64).reshape(threads, each)


def load_time(backend: Backend, size: int, steps: int = STEPS, seed: int = 0) -> float:
    """Measure the time of a load that waits for the one before, which gives its address, in ns.

    Args:
        backend: CPU or device.
        size: bytes in which the loads are, at least 64. Each launch goes on where the last one ended, so that
            it takes other sectors, if there are more than loads.
        steps: number of loads.
        seed: of the order of the sectors.

    Returns:
        The time of a load: the best of a few launches, less one of a single load.

    Raises:
        TypeError: a size that is no integer.
        ValueError: a size out of range.
        WrongResultError: an end of the chain that is not numpy's.
    """
    sectors = checks.integer("size", size, 2 * SECTOR, SECTOR * (2**31 - 1), unit="bytes") // SECTOR
    order = np.random.default_rng(seed).permutation(sectors).astype(np.uint32)
    following = np.empty(sectors, np.uint32)
    following[order] = np.roll(order, -1)
    data, at, kernels = _spread(backend, following), backend.zeros(1, np.int32), _kernels(backend)
    times, taken = [], 0
    for count in (1, steps):
        for _ in range(SAMPLES + 1):
            with backend.stopwatch() as elapsed:
                kernels.chain(1, data, count, at)
            times.append(elapsed[0])
            taken += count
    start = int(np.flatnonzero(order == 0)[0])
    if int(backend.download(at)[0]) != int(order[(start + taken) % sectors]):
        raise WrongResultError("the end of a chain differs from numpy's; not recorded")
    once, often = min(times[1 : SAMPLES + 1]), min(times[SAMPLES + 2 :])
    return (often - once) / (steps - 1) * 1e6


@kernel(parallel=True)
def random_sectors(n, data, sectors, each, seed, sums):
    """Add up the first numbers of sectors in no order, `each` for one of n sums."""
    for i in numba.prange(n):
        total = np.uint32(0)
        for k in range(each):
            word = mixed((np.uint64(seed) << np.uint64(40)) + np.uint64(i * each + k)) >> np.uint64(32)
            sector = np.int64(word * np.uint64(sectors) >> np.uint64(32))
            total += np.uint32(data[NUMBERS * sector])
        sums[i] = np.int32(total)


@OnDevice(threads=32)
@kernel
def chain(n, following, steps, last):
    """Follow a chain of sectors from the one at which the last call ended."""
    at = np.int64(last[0])
    for _ in range(steps):
        at = np.int64(following[NUMBERS * at])
    last[0] = at


def _kernels(backend: Backend) -> Any:
    return backend.kernels(__name__, constants={"NUMBERS": NUMBERS})


def _spread(backend: Backend, numbers: np.ndarray) -> np.ndarray:
    """Put a number at the beginning of each sector, zeros behind it."""
    data = np.zeros((len(numbers), NUMBERS), np.int32)
    data[:, 0] = numbers.view(np.int32)
    return backend.upload(data.ravel())
