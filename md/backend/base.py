"""What a backend is: where arrays live, how kernels are found, how phases are timed.

Contract. A stem is one module (`md.search.linked`) with its kernels: Numba functions in `linked.py`, CUDA
functions of the same names and parameters in `linked.cu`. `backend.kernels(stem)` gives an object with
those functions as attributes; the first parameter of each is the number of work items. Strategies call
kernels and know no backend.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import numpy as np

from md import checks
from md.backend.timings import Timings
from sfc.cache import LAYOUTS

Array = Any  # a numpy array on the host, a cupy array on a device
NO_FAULT = np.uint64(2**64 - 1)


class Backend(ABC):
    """Arrays, kernels and clocks of one kind of device.

    Args:
        layout: how (n, dim) particle arrays lie in memory: "soa" axis by axis, "aos" particle by particle,
            "aos4" particle by particle, each padded to four numbers; None for what suits the device.

    Attributes:
        name: as in `Simulation(backend=name)`.
        default_layout: what suits the device.
        check_interval: steps between two looks at the fault word; where the backend runs ahead, what one
            tells is heeded at the next.
        piece_lengths: steps that a device that runs ahead is given in one piece; few lengths, the
            longest first, so that what is recorded soon fits again.
        runs_ahead: whether work is given out before it is done, so that waiting for an answer costs time.
        workers: parts into which a kernel that is not one item a thread may cut its work.
        recorded: how often `record` was called, on any backend of the class.
    """

    name: ClassVar[str]
    default_layout: ClassVar[str]
    check_interval: int
    piece_lengths: ClassVar[tuple[int, ...]] = 16, 4, 1
    runs_ahead: ClassVar[bool] = False
    workers: int
    recorded: ClassVar[int] = 0

    def __init__(self, layout: str | None = None):
        remedy = "None for what suits the device"
        self.layout = (
            self.default_layout if layout is None else checks.word("layout", layout, LAYOUTS, remedy)
        )

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What computes: `device` (its name) and whatever else a reader of timings must know."""

    def free_memory(self) -> int:
        """Bytes that may still be asked for where the arrays live."""
        return checks.host_memory()

    @abstractmethod
    def upload(self, array: np.ndarray) -> Array:
        """A copy of a host array on the backend."""

    @abstractmethod
    def download(self, array: Array) -> np.ndarray:
        """A copy of a backend array on the host; waits for the work that fills it."""

    def look(self, array: Array) -> Callable[[], np.ndarray]:
        """A copy of a small array as it is once all work given so far is done.

        Returns:
            A function that waits for that moment alone, not for what was given to the device since.
        """
        copied = self.download(array)
        return lambda: copied

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype) -> Array:
        """A new array with undefined content."""

    @abstractmethod
    def zeros(self, shape: int | tuple[int, ...], dtype) -> Array:
        """A new array of zeros."""

    @abstractmethod
    def fill(self, array: Array, value: int) -> None:
        """Set every entry of an array to a number; -1 sets all bits on a device, whatever they stand for."""

    def rows(self, n: int, dim: int, dtype) -> Array:
        """A new (n, dim) array in the backend's layout, with undefined content."""
        if self.layout == "soa":
            return self.empty((dim, n), dtype).T
        if self.layout == "aos":
            return self.empty((n, dim), dtype)
        return self.zeros((n, 4), dtype)[:, :dim]

    def upload_rows(self, array: np.ndarray) -> Array:
        """A copy of an (n, dim) host array in the backend's layout."""
        rows = self.rows(*array.shape, array.dtype)
        rows[...] = self.upload(array)
        return rows

    @abstractmethod
    def sort_scratch(self, n: int, bins: int) -> Any:
        """What `sort` needs to sort n keys into a number of bins."""

    @abstractmethod
    def sort(self, keys: Array, start: Array, order: Array, scratch: Any) -> None:
        """Stable counting sort.

        Args:
            keys: (n,) int32 in [0, bins).
            start: (bins + 1,) int32, filled: the keys of bin k stand at start[k] .. start[k + 1] - 1 when
                sorted.
            order: (n,) int32, filled: the place each sorted key comes from.
            scratch: of `sort_scratch`, for as many keys and bins.
        """

    @abstractmethod
    def radix_scratch(self, keys: Array) -> Any:
        """What `radix_sort` needs to sort keys like these."""

    @abstractmethod
    def radix_sort(self, keys: Array, bits: int, order: Array, scratch: Any) -> None:
        """Stable sort by many-valued keys.

        Args:
            keys: (n,) uint32 or uint64, sorted in place.
            bits: how many of each key, from the lowest, may differ from 0.
            order: (n,) int32, filled: the place each sorted key comes from.
            scratch: of `radix_scratch`, for as many keys of that type.
        """

    @abstractmethod
    def kernels(self, stem: str, law: Any = None) -> Any:
        """The kernels of a stem, compiled for a law where they take one.

        Args:
            stem: module name, `__name__` of the strategy.
            law: the law the kernels call, or None.
        """

    def require_code_of(self, law: Any) -> None:
        """Refuse a law that this backend's kernels cannot call.

        Args:
            law: of a class with a pair function (`md.laws.pair`).

        Raises:
            BackendUnavailableError: it has no functions for them.
        """
        return

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """What work launches, as one function that launches it again.

        Args:
            work: launches kernels and fills, and nothing else on the backend. It runs once, by name only: on
                a device nothing of it is done before the function returned is called.
        """
        raise NotImplementedError(f"backend {self.name!r} does not run ahead, so there is nothing to record")

    @abstractmethod
    def mark(self) -> Any:
        """This moment of the work given so far, to take times between; waits for nothing."""

    @abstractmethod
    def between(self, first: Any, second: Any) -> float:
        """Milliseconds from one mark to a later one; waits for it."""

    @contextmanager
    def profiled(self):
        """What is done inside is seen by a profiler that was told to wait; nothing where none can be told."""
        yield

    @contextmanager
    def host_ahead(self, seconds: float):
        """Inside, a device waits so long when a stopwatch starts, while the host gives it the first steps.

        Phases then hold the device's work alone, and none of its waiting for launches. Nothing where the host
        computes.

        Args:
            seconds: longer than it takes to launch what is timed; on a device some 2e-4 a step in phases.
        """
        yield

    @abstractmethod
    def phase(self, timings: Timings, name: str, step: int) -> AbstractContextManager:
        """Time what is done inside as one phase of a step."""

    @abstractmethod
    def stopwatch(self) -> AbstractContextManager[list[float]]:
        """Time what is done inside, the backend's pending work included; the list holds the ms afterwards."""
