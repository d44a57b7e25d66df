"""How much faster than along an order a use could be, if only the bytes that it needs counted.

A use that reads each of its arrays once, and writes its results once, takes about the time in which a copy
moves as many bytes, if they do not fit the last cache; where it mostly reads, up to a fifth less. What a
memory order can save lies above that time. The bytes are known of a list of neighbours, cells, a matrix and a
trace, but not of a search within a cutoff or in a tree, nor of a user's own function.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import md
from experiments.advice.uses import CELLS, CUDA, MATRIX, NEIGHBOURS, SCIPY, TRACE, Use
from experiments.measurement.hardware_caches import caches
from experiments.results.answers import rounded
from sfc import checks

NUMBER, INDEX = 8, 4  # bytes of a float, and of an index of items
LEAST = 2**26  # bytes of each array of a copy
BEYOND = 2  # last caches that bytes fill at least: of fewer a part stays there from use to use
SAMPLES = 5
NO_ORDER = 1.05  # headroom that is none


class Memory(NamedTuple):
    """Memory, as one thread sees that of the host, or all of a GPU its own.

    Attributes:
        rate: bytes in a second, read and written by a copy.
        cache: bytes of the last cache; 0 if the system lists none.
    """

    rate: float
    cache: int


@lru_cache
def memory(backend: Any = None) -> Memory:
    """Measure the rate of a copy, the best of a few; once in a process.

    Args:
        backend: of a GPU, which times it; None for one thread of the host, by CPU time.
    """
    if backend is not None:
        return _of_gpu(backend)
    try:
        cache = caches(md.backend.get("cpu"))[-1].bytes
    except ValueError:
        cache = 0
    source = np.ones(max(LEAST, BEYOND * cache) // NUMBER)
    target, times = np.full_like(source, 2.0), []
    for _ in range(SAMPLES):
        began = time.process_time()
        np.copyto(target, source)
        times.append(time.process_time() - began)
    return Memory(2 * source.nbytes / min(times), cache)


def _of_gpu(backend: Any) -> Memory:
    """Measure the rate of copies of a GPU."""
    cache = int(backend.describe()["l2_MiB"] * 2**20)
    source = backend.zeros(max(LEAST, BEYOND * cache) // NUMBER, np.float64)
    target, times = backend.zeros(source.shape, np.float64), []
    for _ in range(SAMPLES):
        with backend.stopwatch() as elapsed:
            np.copyto(target, source)
        times.append(1e-3 * elapsed[0])
    return Memory(2 * source.nbytes / min(times), cache)


def least_bytes(use: Use) -> int | None:
    """Return the bytes of a use if each number is read once, and each result is written once.

    Args:
        use: of a list of neighbours, cells, a matrix or a trace.

    Returns:
        The bytes, of the items that are read, each once. None for another use.
    """
    if use.kind == NEIGHBOURS and use.code != SCIPY:
        return use.points.nbytes + INDEX * use.items * int(use.reach) + NUMBER * use.items
    if use.kind == CELLS:
        return INDEX * use.cells.size + NUMBER * (use.numbers * _seen(use.cells.ravel()) + use.items)
    if use.kind == MATRIX:
        number = use.matrix.dtype.itemsize if use.code == SCIPY else NUMBER
        return (
            (number + INDEX) * use.matrix.nnz
            + INDEX * (use.items + 1)
            + NUMBER * (_seen(scipy.sparse.csr_array(use.matrix).indices) + use.items)
        )
    if use.kind == TRACE:
        row = NUMBER * use.numbers
        results = len(use.trace) if use.code == CUDA else 0  # of each read
        return NUMBER * (len(use.trace) + results) + row * _seen(use.trace)
    return None


def _seen(items: np.ndarray) -> int:
    """Return the number of different items."""
    return int(np.count_nonzero(np.bincount(items)))


def least_ms(use: Use, machine: Memory | None = None) -> float | None:
    """Return the time of a use if only its bytes counted, in ms.

    Args:
        use: that is timed.
        machine: memory in which it works; None for that of this one, which is measured for a use of known
            bytes.

    Returns:
        The time; None for a use of unknown bytes, or of fewer than `BEYOND` last caches.

    Raises:
        ValueError: a rate that is not above 0.
    """
    moved = least_bytes(use)
    if moved is None:
        return None
    machine = memory(use.backend) if machine is None else machine
    rate = checks.number("rate", machine.rate, above=0, unit="bytes/s", remedy="measure it with memory()")
    return None if moved < BEYOND * machine.cache else 1e3 * moved / rate


def headroom(time_ms: float, least: float) -> float:
    """Return how many times as fast a use could be.

    Args:
        time_ms: that it takes, above 0.
        least: that its bytes take, in ms, above 0.

    Raises:
        ValueError: a time that is not above 0.
    """
    return checks.number("time_ms", time_ms, above=0) / checks.number("least", least, above=0, unit="ms")


def sentence(order: str, time_ms: float, least: float) -> str:
    """Say how much a better order could still gain; "" if that is nothing.

    Args:
        order: name of the fastest order.
        time_ms: of a use along it.
        least: that its bytes take, in ms.

    Raises:
        ValueError: a time that is not above 0.
    """
    found = headroom(time_ms, least)
    alone = f"Its bytes alone take {rounded(least)} ms"
    if found < NO_ORDER:
        return ""
    return f"{alone}: at most about {rounded(found)} times as fast as {order}."
