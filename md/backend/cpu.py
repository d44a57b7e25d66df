"""The CPU backend: numpy arrays, Numba kernels. The readable reference, and the default where no GPU is."""

import sys
import time
from contextlib import contextmanager

import numba
import numpy as np

from md.backend.base import Backend, Timings
from sfc.compile import compiler

kernel = compiler("sfc", "md")


class Cpu(Backend):
    """Numba on the host's cores; `NUMBA_NUM_THREADS` sets how many."""

    name = "cpu"
    check_interval = 1

    def __init__(self):
        self.workers = numba.get_num_threads()

    def describe(self) -> dict:
        """The number of threads that kernels run on."""
        return {"device": f"the CPU ({self.workers} threads)", "threads": self.workers}

    def upload(self, array: np.ndarray) -> np.ndarray:
        """A C-ordered copy."""
        return np.array(array, order="C")

    def download(self, array: np.ndarray) -> np.ndarray:
        """A copy."""
        return array.copy()

    def empty(self, shape, dtype) -> np.ndarray:
        """`np.empty`."""
        return np.empty(shape, dtype)

    def kernels(self, stem: str, law=None):
        """The stem's own module: Numba picks the law by the type of its parameters."""
        return sys.modules[stem]

    @contextmanager
    def phase(self, timings: Timings, name: str, step: int):
        """Wall time by `time.perf_counter`."""
        start = time.perf_counter()
        yield
        timings.milliseconds[name].append(1e3 * (time.perf_counter() - start))
        timings.steps[name].append(step)

    @contextmanager
    def stopwatch(self):
        """Wall time by `time.perf_counter`."""
        elapsed: list[float] = []
        start = time.perf_counter()
        yield elapsed
        elapsed.append(1e3 * (time.perf_counter() - start))
