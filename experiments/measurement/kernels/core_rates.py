"""Micro-benchmarks of the memory of a CPU: loads that wait for each other, in no order, and in sequence.

They give the latencies, times of lines and bytes of the last cache of an `sfc.cache.core.Processor`. Threads
work on parts of the same memory at the same time. Results are compared with numpy's before a time is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from experiments.measurement.correctness import WrongResultError
from sfc import checks
from sfc.compile import kernel, thread_count

LINE, NUMBERS = 64, 8  # bytes of a line, and numbers of 8 bytes in it
SAMPLES = 5
STEPS, LOADS = 2**17, 2**20  # loads of a chain, and in no order, of a thread
MOST = LINE * (2**31 - 1)  # bytes: lines that an int32 counts


def chain_time(size: int, seed: int = 0) -> float:
    """Measure the time of a load that waits for the one before, which gives its address, in ns.

    Args:
        size: bytes in which the loads are, at least two lines.
        seed: of their order.

    Raises:
        TypeError: a size that is no integer.
        ValueError: a size out of range.
        WrongResultError: an end of the chain that is not numpy's.
    """
    count = checks.integer("size", size, 2 * LINE, MOST, unit="bytes") // LINE
    order = np.random.default_rng(seed).permutation(count)
    following = np.zeros(count * NUMBERS, np.int64)
    following[NUMBERS * order] = np.roll(order, -1)
    at, taken = np.zeros(1, np.int64), (SAMPLES + 1) * STEPS
    best = _best(lambda: _chain(following, STEPS, at))
    start = int(np.flatnonzero(order == 0)[0])
    if at[0] != order[(start + taken) % count]:
        raise WrongResultError("the end of a chain differs from numpy's; not recorded")
    return best / STEPS * 1e9


def line_times(size: int, threads: int = 1, seed: int = 0) -> tuple[float, float]:
    """Measure the times of a line in no order, with an address that is known, and of one in sequence, in ns.

    Args:
        size: bytes in which the lines are, at least two lines for each thread.
        threads: that load at the same time.
        seed: of the order.

    Returns:
        Times for a thread.

    Raises:
        TypeError: a number that is no integer.
        ValueError: a number out of range.
        WrongResultError: sums that are not numpy's.
    """
    threads = checks.integer("threads", threads, 1, thread_count())
    count = checks.integer("size", size, 2 * LINE * threads, MOST, unit="bytes") // LINE
    data = np.zeros(count * NUMBERS, np.int64)
    data[::NUMBERS] = np.arange(count)
    generator = np.random.default_rng(seed)
    before, sums = numba.get_num_threads(), np.zeros(threads, np.int64)
    numba.set_num_threads(threads)
    try:
        random = []
        for _ in range(SAMPLES + 1):  # other lines each time, of which a large cache has none
            lines = generator.integers(0, count, (threads, LOADS), np.int32)
            began = time.perf_counter()
            _in_no_order(data, lines, sums)
            random.append(time.perf_counter() - began)
            if not np.array_equal(sums, lines.sum(axis=1, dtype=np.int64)):
                raise WrongResultError("sums of lines in no order differ from numpy's; not recorded")
        each = count // threads
        often = max(1, LOADS // each)
        sequence = _best(lambda: _in_sequence(data, each, often, sums))
        expected = often * np.arange(each * threads).reshape(threads, each).sum(axis=1)
        if not np.array_equal(sums, expected):
            raise WrongResultError("sums of lines in sequence differ from numpy's; not recorded")
    finally:
        numba.set_num_threads(before)
    return min(random[1:]) / LOADS * 1e9, sequence / (often * each) * 1e9


def _best(run: Callable[[], Any]) -> float:
    """Return the least time of some runs but the first, in s."""
    times = []
    for _ in range(SAMPLES + 1):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times[1:])


@kernel
def _chain(following, steps, last):
    at = last[0]
    for _ in range(steps):
        at = following[NUMBERS * at]
    last[0] = at


@kernel(parallel=True)
def _in_no_order(data, lines, sums):
    for thread in numba.prange(len(lines)):
        total = 0
        for k in range(lines.shape[1]):
            total += data[NUMBERS * lines[thread, k]]
        sums[thread] = total


@kernel(parallel=True)
def _in_sequence(data, each, often, sums):
    for thread in numba.prange(len(sums)):
        total, own = 0, data[NUMBERS * thread * each : NUMBERS * (thread + 1) * each]
        for _ in range(often):
            for number in own:
                total += number
        sums[thread] = total
