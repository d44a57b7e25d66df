"""Abstract backend: arrays, kernels, sorts and timers of one kind of device.

Contract. A stem is one module (`md.search.grid.linked`) with its kernels: Numba functions in its .py, CUDA
functions of the same names and parameters in its .cu. `backend.kernels(stem)` returns an object with
those functions as attributes; the first parameter of each is the number of work items. Strategies call
kernels only through that object, so that their code is the same on each backend.
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from md import checks
from md.backend.timings import Timings
from sfc.cache import LAYOUTS

Array = Any  # a numpy array on the host, a cupy array on a device
NO_FAULT = np.uint64(2**64 - 1)


class Backend(ABC):
    """Arrays, kernels, sorts and timers of one kind of device.

    Args:
        layout: how (n, dim) particle arrays lie in memory: "soa" axis by axis, "aos" particle by particle,
            "aos4" particle by particle, each padded to four numbers; None for the default of the device.

    Attributes:
        name: as in `Simulation(backend=name)`.
        default_layout: layout used where none is given.
        check_interval: least number of steps between two reads of the fault word, which is read between
            calls that take steps; on a backend that runs ahead, the value read at one is processed at the
            next.
        piece_lengths: numbers of steps that may be captured and launched as one graph, the longest first;
            few, so that captured graphs are used again. Fused steps are captured up to the longest.
        runs_ahead: whether kernel launches return before the work is done (asynchronous launches), so that
            waiting for a result costs time.
        workers: parts into which a kernel that is not one item a thread may cut its work.
        recorded: number of calls of `record`, on all backends of the class.
    """

    name: ClassVar[str]
    default_layout: ClassVar[str]
    check_interval: int
    piece_lengths: ClassVar[tuple[int, ...]] = 16, 4, 2, 1
    runs_ahead: ClassVar[bool] = False
    workers: int
    recorded: ClassVar[int] = 0

    def __init__(self, layout: str | None = None):
        remedy = "None for the default of the device"
        self.layout = (
            self.default_layout if layout is None else checks.word("layout", layout, LAYOUTS, remedy)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(layout={self.layout!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__repr__() == other.__repr__()

    def __hash__(self) -> int:
        return hash((type(self), self.layout))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe the device for records of timings.

        Returns:
            `device` (its name) and what else a time depends on: threads or clocks, versions, layout.
        """

    def free_memory(self) -> int:
        """Return the bytes that can still be allocated in the memory that holds the arrays."""
        return checks.host_memory()

    def release(self) -> None:
        """Return the memory of freed arrays to the device, before large arrays are allocated; waits for it.

        The process keeps that memory in a pool. Arrays larger than each free piece of the pool take more. On
        the CPU there is no pool, and nothing is done.
        """
        return

    @property
    def staging_memory(self) -> int:
        """Bytes of shared memory of a block of a kernel that uses tensor cores; 0 without tensor cores."""
        return 0

    @property
    def resident_blocks(self) -> int:
        """Number of blocks of a resident kernel (`OnDevice`) that a device runs at once; 1 on the CPU."""
        return 1

    @abstractmethod
    def upload(self, array: np.ndarray) -> Array:
        """Copy a host array to the backend."""

    @abstractmethod
    def download(self, array: Array) -> np.ndarray:
        """Copy a backend array to the host; waits for the work that fills it."""

    def look(self, array: Array) -> Callable[[], np.ndarray]:
        """Start an asynchronous copy of a small array to the host, after all work launched so far.

        Returns:
            A function that waits for this copy, but not for work launched later, and returns the array.
        """
        copied = self.download(array)
        return lambda: copied

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Allocate an array with undefined content."""

    @abstractmethod
    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Allocate an array of zeros."""

    def alone(self, size: int, dtype: DTypeLike) -> Array:
        """Allocate a (size,) array with undefined content, alone in its allocation: others can open that."""
        return self.empty(size, dtype)

    def address_of(self, array: Array) -> int:
        """Return the address of an array in memory."""
        return int(array.ctypes.data)

    def handle_of(self, array: Array) -> tuple[bytes, int]:
        """Return the handle by which another process opens the allocation of an array of `alone`.

        Returns:
            The handle, and where the array begins in the allocation, in bytes.

        Raises:
            NotImplementedError: a backend whose memory no other process opens.
        """
        raise NotImplementedError(f"backend {self.name!r} has no memory that other processes open")

    def open_handle(self, handle: bytes) -> int:
        """Return the address, here, of an allocation of another process on this host."""
        raise NotImplementedError(f"backend {self.name!r} opens no memory of other processes")

    def copy_from(self, array: Array, address: int) -> None:
        """Fill an array from memory at an address, after all work launched so far."""
        ctypes.memmove(self.address_of(array), address, array.nbytes)

    def close_handle(self, address: int) -> None:
        """Close an allocation of another process."""
        return

    has_nccl: bool = False  # whether NCCL is installed

    def channel(self, size: int, rank: int, of_first: Callable[[Any], Any]) -> Any:
        """Return a channel between the devices of all ranks, for `exchange`; see `Cuda.channel`."""
        raise NotImplementedError(f"backend {self.name!r} has no channel between devices")

    def exchange(self, channel: Any, outgoing: Mapping[int, Array], incoming: Mapping[int, Array]) -> None:
        """Send arrays to other ranks through a channel, and fill others; see `Cuda.exchange`."""
        raise NotImplementedError(f"backend {self.name!r} has no channel between devices")

    def wait(self) -> None:
        """Wait for all work launched so far."""
        return

    @property
    def bus(self) -> str:
        """Name of the device on its host."""
        return self.name

    @abstractmethod
    def fill(self, array: Array, value: int | np.integer) -> None:
        """Set every entry of an array to a number; -1 sets all bits on a device, whatever the dtype."""

    def arange(self, n: int) -> Array:
        """Allocate the (n,) int32 array of the numbers 0 .. n - 1."""
        return self.upload(np.arange(n, dtype=np.int32))

    def rows(self, n: int, dim: int, dtype: DTypeLike) -> Array:
        """Allocate an (n, dim) array in the backend's layout, with undefined content."""
        if self.layout == "soa":
            return self.empty((dim, n), dtype).T
        if self.layout == "aos":
            return self.empty((n, dim), dtype)
        return self.zeros((n, 4), dtype)[:, :dim]

    def upload_rows(self, array: np.ndarray) -> Array:
        """Copy an (n, dim) host array to the backend, in the backend's layout."""
        n, dim = array.shape
        rows = self.rows(n, dim, array.dtype)
        rows[...] = self.upload(array)
        return rows

    @abstractmethod
    def sort_scratch(self, n: int, bins: int) -> Any:
        """Allocate the scratch memory that `sort` needs for n keys and a number of bins."""

    def count_cells(self, pos: Array, table: Array, grid: np.ndarray, keys: Array, scratch: Any) -> None:
        """Compute the sort keys of particles and count them for `sort`, on a backend that runs ahead.

        Args:
            pos: (n, dim) positions inside the box.
            table: int32 key of each cell by row-major number; (0,) for that number.
            grid: record of the cells.
            keys: (n,) int32, filled.
            scratch: as for `sort`.

        Raises:
            NotImplementedError: a backend that does not run ahead.
        """
        raise NotImplementedError(f"backend {self.name!r} computes keys and sorts them one after the other")

    @abstractmethod
    def sort(
        self, keys: Array, start: Array, order: Array, scratch: Any, are_counted: bool = False,
        stable_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Sort keys with a stable counting sort; the keys themselves are not moved.

        Args:
            keys: (n,) int32 in [0, bins).
            start: (bins + 1,) int32, filled: sorted, the keys of bin k are at start[k] .. start[k + 1] - 1.
            order: (n,) int32, filled: the index in `keys` of each sorted key.
            scratch: from `sort_scratch`, for as many keys and bins.
            are_counted: whether `count_cells` has made these keys.
            stable_bins: number of the first bins, in which the order is stable; in the others it may be any.
                None for all.
        """

    @abstractmethod
    def radix_scratch(self, keys: Array) -> Any:
        """Allocate the scratch memory that `radix_sort` needs for as many keys of this dtype."""

    @abstractmethod
    def radix_sort(self, keys: Array, bits: int, order: Array, scratch: Any) -> None:
        """Sort keys of 32 or 64 bits in place with a stable radix sort.

        Args:
            keys: (n,) uint32 or uint64, sorted in place.
            bits: number of bits of a key, from the lowest, that may differ from 0.
            order: (n,) int32, filled: the index before the sort of each sorted key.
            scratch: from `radix_scratch`, for as many keys of that dtype.
        """

    @abstractmethod
    def kernels(self, stem: str, law: Any = None, constants: Mapping[str, int] | None = None) -> Any:
        """Return the kernels of a stem, compiled for a law if they take one.

        Args:
            stem: module name, `__name__` of the strategy.
            law: the law that the kernels call, or None.
            constants: integers that CUDA sources are compiled for, by name; the CPU takes none.

        Returns:
            An object with the kernels as attributes.
        """

    def require_code_of(self, law: Any) -> None:
        """Raise an error for a law that this backend's kernels cannot call.

        Args:
            law: of a class with a pair function (`md.laws.pair`).

        Raises:
            BackendUnavailableError: the law has no functions for this backend.
        """
        return

    def packs_rows_for(self, law: Any) -> bool:
        """Return whether packed rows (`ParticleArrays.pack`) suit the device and the functions of a law."""
        return False

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the launches of a function, without executing them, as one graph.

        Args:
            work: launches kernels and fills, and nothing else on the backend. It is called once, for the
                capture alone: the device executes nothing before the returned function is called.

        Returns:
            A function that launches the captured graph.

        Raises:
            NotImplementedError: a backend without asynchronous launches.
        """
        raise NotImplementedError(
            f"backend {self.name!r} launches nothing asynchronously, so it captures nothing"
        )

    def note(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do work by launches that can be made again.

        Args:
            work: launches kernels of `kernels` and fills arrays by `fill`, and does nothing else on the
                backend.

        Returns:
            A function that does the same work with the same arguments again.
        """
        work()
        return work

    @abstractmethod
    def mark(self) -> Any:
        """Record a time stamp after the work launched so far, for `between`; does not wait."""

    @abstractmethod
    def between(self, first: Any, second: Any) -> float:
        """Return the milliseconds from one time stamp of `mark` to a later one; waits for the later one."""

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Limit an attached profiler to the work inside the context; without effect on the CPU."""
        yield

    @contextmanager
    def beside(self) -> Iterator[Callable[[], None]]:
        """Launch the work inside the context beside all other work of a device; a CPU does it at once.

        Returns:
            A function that waits for the end of this work.
        """
        yield lambda: None

    @contextmanager
    def delay_device(self, seconds: float) -> Iterator[None]:
        """Delay the device at the start of each stopwatch, so that the host launches steps meanwhile.

        Phases then hold the time of the device's work, without its idle time between launches. Without effect
        on the CPU.

        Args:
            seconds: the delay; longer than the launches of what is timed, on a device about 2e-4 a step in
                phases.
        """
        yield

    @contextmanager
    def phase(self, timings: Timings, name: str, step: int) -> Iterator[None]:
        """Time the work inside the context as one phase of a step; does not wait."""
        start = self.mark()
        yield
        stop = self.mark()
        timings.add(name, step, lambda: self.between(start, stop))

    @contextmanager
    def stopwatch(self) -> Iterator[list[float]]:
        """Time the work inside the context until it is done.

        Returns:
            A context with a list, which holds the milliseconds after the context ends.
        """
        elapsed: list[float] = []
        start = self.mark()
        yield elapsed
        elapsed.append(self.between(start, self.mark()))
