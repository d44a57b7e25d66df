"""The CPU backend: numpy arrays, Numba kernels. The readable reference, and the default where no GPU is."""

import sys
import time
from contextlib import contextmanager

import numpy as np
from numba import get_num_threads

from md.backend.base import Backend
from md.backend.sorting import radix
from md.backend.sorting.counting import MAX_PARTS, counting_sort, fill
from md.backend.timings import Timings
from md.backend.waiting import wait_passively

wait_passively()  # before the first thread starts


class Cpu(Backend):
    """Numba on the host's cores; `NUMBA_NUM_THREADS` sets how many.

    Args:
        layout: of particle arrays; "aos" if not given.
    """

    name = "cpu"
    default_layout = "aos"
    check_interval = 1

    def __init__(self, layout: str | None = None):
        super().__init__(layout)
        self.workers = get_num_threads()

    def describe(self) -> dict:
        """The number of threads that kernels run on."""
        return {"device": f"the CPU ({self.workers} threads)", "threads": self.workers, "layout": self.layout}

    def upload(self, array: np.ndarray) -> np.ndarray:
        """A C-ordered copy."""
        return np.array(array, order="C")

    def download(self, array: np.ndarray) -> np.ndarray:
        """A C-ordered copy."""
        return array.copy()

    def empty(self, shape, dtype) -> np.ndarray:
        """`np.empty`."""
        return np.empty(shape, dtype)

    def zeros(self, shape, dtype) -> np.ndarray:
        """`np.zeros`."""
        return np.zeros(shape, dtype)

    def fill(self, array, value: int) -> None:
        """On all threads."""
        fill(array, value)

    def sort_scratch(self, n: int, bins: int) -> np.ndarray:
        """A count per bin for each part."""
        return np.zeros((min(self.workers, MAX_PARTS), bins), np.int32)

    def sort(self, keys, start, order, scratch) -> None:
        """In parts, one for each thread up to eight."""
        counting_sort(len(keys), keys, scratch, start, order)

    def radix_scratch(self, keys) -> tuple:
        """Keys and order of every other pass, and counts of each part."""
        counts = np.zeros((min(self.workers, radix.MAX_PARTS), radix.VALUES), np.int32)
        return np.empty_like(keys), np.empty(len(keys), np.int32), counts

    def radix_sort(self, keys, bits, order, scratch) -> None:
        """In parts, one for each thread up to eight."""
        radix.radix_sort(len(keys), radix.passes_of(bits), keys, order, *scratch)

    def kernels(self, stem: str, law=None):
        """The stem's own module: Numba picks the law's functions by the type of the law."""
        return sys.modules[stem]

    def mark(self) -> float:
        """`time.perf_counter`."""
        return time.perf_counter()

    def between(self, first: float, second: float) -> float:
        """The difference."""
        return 1e3 * (second - first)

    @contextmanager
    def phase(self, timings: Timings, name: str, step: int):
        """Wall time by `time.perf_counter`."""
        start = time.perf_counter()
        yield
        timings.add(name, step, 1e3 * (time.perf_counter() - start))

    @contextmanager
    def stopwatch(self):
        """Wall time by `time.perf_counter`."""
        elapsed: list[float] = []
        start = time.perf_counter()
        yield elapsed
        elapsed.append(1e3 * (time.perf_counter() - start))
