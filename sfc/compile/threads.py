"""Calls side by side on the threads of kernels.

A kernel with parallel loops takes more than twice as long to compile as the same kernel for one thread. A
kernel for one thread that takes a range of its items, called on several threads, needs no second version:
kernels release the GIL.

Contract. After a fork, a child of a process in which Numba had started its threads computes on one thread:
GNU OpenMP ends a child that enters a parallel loop. `thread_count` is the number of threads to divide work
by; `numba.get_num_threads` does not know of forks.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from sfc.compile.forks import starting
from sfc.compile.lazy_module import numba

MANY = 2**16  # items of little work, for which threads are worth their start
Item = TypeVar("Item")
Result = TypeVar("Result")
_is_forked = _has_started = False


def thread_count() -> int:
    """Return the number of threads that kernels run on: as set in Numba, but 1 in a child of a fork.

    If no threads of Numba had started before the fork, the child starts as many as any process.
    """
    if _is_forked or numba.config.NUMBA_NUM_THREADS == 1:
        return 1
    return numba.get_num_threads() if _has_started else _start_threads()


def _start_threads() -> int:
    """Start the threads of Numba, and return their number. A fork waits for the start."""
    global _has_started
    with starting:
        count = int(numba.get_num_threads())
        _has_started = True
    return count


def _note_fork() -> None:
    """Note in a child of a fork that threads of Numba were started before."""
    global _is_forked
    loaded: Any = sys.modules.get("numba")  # an import could wait for a thread that the child does not have
    with suppress(AttributeError, ValueError):  # imported in part; no threads yet
        _is_forked = bool(loaded.threading_layer()) or _is_forked


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item, on `thread_count()` threads, and return the results in order.

    Kernels that `work` calls run on one thread. The threads stay for the next call.

    Args:
        work: the function; it may be called on several threads at once.
        items: its arguments.

    Returns:
        What `work` returned for each item.

    Raises:
        Exception: what `work` raised for the first of the items for which it raised something.
    """
    threads = thread_count() if len(items) > 1 else 1
    if threads == 1:
        return [work(item) for item in items]
    pool, calls = _pool(threads), []
    try:
        try:
            for item in items:
                calls.append(pool.submit(_alone, work, item))
        except RuntimeError:  # Python is ending, and no pool takes calls any more
            return [call.result() for call in calls] + [work(item) for item in items[len(calls) :]]
        return [call.result() for call in calls]
    finally:  # after an exception too, nothing writes to the arguments of a call that has ended
        for call in calls:
            call.cancel()
        wait(calls)


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Start threads for kernels."""
    return ThreadPoolExecutor(threads)


def _alone(work: Callable[[Item], Result], item: Item) -> Result:
    """Call a function on a thread of a pool, where its kernels run on this thread alone."""
    numba.set_num_threads(1)
    return work(item)


def in_parts(
    work: Callable[[slice], Result], n: int, many: int | None = None, rows: int | None = None
) -> list[Result]:
    """Call a function with each part of a range, on `thread_count()` threads, one part for each.

    Args:
        work: takes a slice with a start and a stop; it may be called on several threads at once.
        n: length of the range.
        many: rows from which there is a part for each thread, None for `MANY`; a range of fewer is one part.
        rows: of the range in all; None for n.

    Returns:
        What `work` returned for each part, in order.

    Raises:
        Exception: as `in_threads`.
    """
    is_long = (n if rows is None else rows) >= (MANY if many is None else many)
    parts = thread_count() if is_long else 1
    return in_threads(work, [slice(p * n // parts, (p + 1) * n // parts) for p in range(parts)])


def first_in_parts(find: Callable[[slice], int], n: int) -> int:
    """Find the first row of a kind with the parts of `in_parts`.

    Args:
        find: takes a slice of the rows, and returns the first row of the kind, counted from the start of the
            slice, or the length of the slice if it has none.
        n: number of rows.

    Returns:
        The first row of the kind, or n if there is none.
    """

    def row(part: slice) -> int:
        found = part.start + find(part)
        return int(found) if found < part.stop else n

    return min(in_parts(row, n))
