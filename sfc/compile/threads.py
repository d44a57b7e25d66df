"""Calls side by side on the threads of kernels.

A kernel with parallel loops takes more than twice as long to compile as the same kernel for one thread. A
kernel for one thread that takes a range of its items, called on several threads, needs no second version:
kernels release the GIL.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sfc.compile.lazy_module import numba

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item, on `numba.get_num_threads()` threads, and return the results in order.

    Kernels that `work` calls run on one thread. The threads take 0.1 ms to start.

    Args:
        work: the function; it may be called on several threads at once.
        items: its arguments.

    Returns:
        What `work` returned for each item.

    Raises:
        Exception: what `work` raised for the first of the items for which it raised something.
    """
    threads = min(len(items), numba.get_num_threads())
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads, initializer=numba.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(work, items))
