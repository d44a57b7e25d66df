"""The CPU backend: numpy arrays, Numba kernels. The reference, and the default without a GPU."""

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from md.backend.base import Backend
from md.backend.sorting import radix
from md.backend.sorting.counting import MAX_PARTS, counting_sort, fill
from md.backend.waiting import wait_passively
from sfc.compile import thread_count

wait_passively()  # before the first thread starts


class Cpu(Backend):
    """The host's cores, with kernels compiled by Numba.

    Args:
        layout: of particle arrays; None for "aos".

    Attributes:
        workers: threads of a kernel, set by `NUMBA_NUM_THREADS`; 1 in a child of a fork.
    """

    name = "cpu"
    default_layout = "aos"
    check_interval = 1

    def __init__(self, layout: str | None = None):
        super().__init__(layout)
        self.workers = thread_count()

    def describe(self) -> dict[str, Any]:
        """Return `device`, `threads` (on which kernels run) and `layout`."""
        return {"device": f"the CPU ({self.workers} threads)", "threads": self.workers, "layout": self.layout}

    def upload(self, array: np.ndarray) -> np.ndarray:
        """Copy an array to C order."""
        return np.array(array, order="C")

    def download(self, array: np.ndarray) -> np.ndarray:
        """Copy an array to C order."""
        return array.copy()

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Allocate an array with undefined content."""
        return np.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Allocate an array of zeros."""
        return np.zeros(shape, dtype)

    def fill(self, array: np.ndarray, value: int | np.integer) -> None:
        """Set every entry of an array to a number, on all threads."""
        fill(array, value)

    def sort_scratch(self, n: int, bins: int) -> np.ndarray:
        """Allocate a count per bin for each part of the keys."""
        return np.zeros((min(self.workers, MAX_PARTS), bins), np.int32)

    def sort(
        self,
        keys: np.ndarray,
        start: np.ndarray,
        order: np.ndarray,
        scratch: np.ndarray,
        are_counted: bool = False,
        stable_bins: int | None = None,
    ) -> None:
        """Sort keys with a stable counting sort, in one part for each thread, at most eight."""
        counting_sort(len(keys), keys, scratch, start, order)

    def radix_scratch(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Allocate keys and order for every other pass, and counts of each part."""
        counts = np.zeros((min(self.workers, radix.MAX_PARTS), radix.VALUES), np.int32)
        return np.empty_like(keys), np.empty(len(keys), np.int32), counts

    def radix_sort(
        self,
        keys: np.ndarray,
        bits: int,
        order: np.ndarray,
        scratch: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Sort keys in place with a stable radix sort, in one part for each thread, at most eight."""
        radix.radix_sort(radix.passes_of(bits), keys, order, *scratch)

    def kernels(self, stem: str, law: Any = None, constants: Mapping[str, int] | None = None) -> Any:
        """Return the module of a stem; Numba selects the law's functions by the type of the law."""
        return sys.modules[stem]

    def mark(self) -> float:
        """Return `time.perf_counter()` in seconds."""
        return time.perf_counter()

    def between(self, first: float, second: float) -> float:
        """Return the milliseconds between two time stamps of `mark`."""
        return 1e3 * (second - first)
