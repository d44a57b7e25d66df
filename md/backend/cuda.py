"""The CUDA backend: cupy arrays from its memory pool, kernels compiled from the .cu files by NVRTC.

cupy is imported only when a `Cuda` is made.
"""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from md import checks
from md.backend.base import Array, Backend
from md.backend.kernels.launcher import Launcher, functor_of, takes_packed_rows, wrapped_law
from md.backend.kernels.launches import KernelLaunches
from md.backend.kernels.on_device import THREADS
from md.backend.sorting import radix
from md.errors import BackendUnavailableError, DeviceMemoryError

SCAN_TILE = 8 * THREADS  # counts of a block in the scan of counting.cu
RADIX_TILE = 2**14  # bytes of the keys of a block in radix.cu
_takes_packed: Callable[[type], bool] = cache(takes_packed_rows)
_launchers: dict[tuple, Launcher] = {}  # with their compiled kernels, for all backend objects of the process
_launches: list[KernelLaunches] = []  # of all backend objects: one, made with the first of them


MEMORY_ALLOCATION = 2  # status of CUDA for memory that is used up
OF_RANK = "SPATIAL_LOCALITY_DEVICE"  # variable with the number of the device, modulo those of the host


def why_not() -> str | None:
    """Return the reason why CUDA cannot be used here, or None if it can."""
    try:
        import cupy
    except ImportError:
        return "cupy is not installed (in the checkout: pip install -e '.[cuda]', or '.[cuda12]' for CUDA 12)"
    return None if cupy.cuda.is_available() else "no CUDA device is visible"


class Cuda(Backend):
    """The current CUDA device, or that of the number in `SPATIAL_LOCALITY_DEVICE`, which ranks set.

    Args:
        layout: of particle arrays; None for "aos4".
        fmad: let the compiler fuse multiply and add. Without fusing, results are closer to those of the CPU.

    Raises:
        BackendUnavailableError: no cupy, or no device.
        ValueError: a variable that is no number.
    """

    name = "cuda"
    default_layout = "aos4"
    check_interval = 50
    runs_ahead = True
    workers = 1

    def __init__(self, layout: str | None = None, fmad: bool = True):
        super().__init__(layout)
        self.fmad = checks.flag("fmad", fmad)
        reason = why_not()
        if reason is not None:
            raise BackendUnavailableError(f"backend 'cuda' cannot run here: {reason}")
        import cupy

        if OF_RANK in os.environ:
            if not os.environ[OF_RANK].isdecimal():
                raise ValueError(
                    f"{OF_RANK} = {os.environ[OF_RANK]!r}; allowed: the number of a device, 0 or more"
                )
            cupy.cuda.Device(int(os.environ[OF_RANK]) % cupy.cuda.runtime.getDeviceCount()).use()
        self._cupy, self._device = cupy, cupy.cuda.runtime.getDevice()
        if not _launches:
            _launches.append(KernelLaunches(cupy))
        self.options = ("--std=c++17", "-lineinfo", "--fmad=true" if fmad else "--fmad=false")
        self._capture_stream: Any = None  # made at the first capture
        self._delay = 0.0  # delay of a stopwatch, in seconds

    def __repr__(self) -> str:
        return f"Cuda(layout={self.layout!r}, fmad={self.fmad})"

    def describe(self) -> dict[str, Any]:
        """Return name, size and software versions of the device, and its clocks if nvidia-smi is found.

        Threads, registers and shared bytes are those of a multiprocessor; `clock_GHz` is its highest clock.
        """
        runtime = self._cupy.cuda.runtime
        device = runtime.getDevice()
        properties = runtime.getDeviceProperties(device)
        return {
            "device": properties["name"].decode(),
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": properties["multiProcessorCount"],
            "threads": properties["maxThreadsPerMultiProcessor"],
            "registers": properties["regsPerMultiprocessor"],
            "shared_bytes": properties["sharedMemPerMultiprocessor"],
            "clock_GHz": properties["clockRate"] / 1e6,
            "l2_MiB": properties["l2CacheSize"] / 2**20,
            "memory_GiB": round(properties["totalGlobalMem"] / 2**30, 1),
            "driver_cuda": runtime.driverGetVersion(),
            "runtime_cuda": runtime.runtimeGetVersion(),
            **_nvidia_smi(self.bus),
            "layout": self.layout,
            "compiler_options": self.options,
        }

    @property
    def bus(self) -> str:
        """PCI bus id of the device, in the format of nvidia-smi."""
        runtime = self._cupy.cuda.runtime
        return runtime.deviceGetPCIBusId(runtime.getDevice())

    def free_memory(self) -> int:
        """Return the free bytes of the device, including the free blocks of the memory pool.

        Simulations hold references in circles, so that the arrays of one that is no longer used are freed by
        Python's garbage collector. It runs here if less than half of the device is free.
        """
        runtime, pool = self._cupy.cuda.runtime, self._cupy.get_default_memory_pool()
        free, total = runtime.memGetInfo()
        if free + pool.free_bytes() < total / 2:
            gc.collect()
        return int(runtime.memGetInfo()[0] + pool.free_bytes())

    def release(self) -> None:
        """Free the memory pool's blocks that hold no array; waits for the device."""
        self._cupy.get_default_memory_pool().free_all_blocks()

    @property
    def staging_memory(self) -> int:
        """Bytes of shared memory of a block of a kernel that uses tensor cores; 0 without tensor cores."""
        device = self._cupy.cuda.Device()
        has_cores = int(device.compute_capability) >= 80  # of products of 16 x 16 matrices
        return int(device.attributes["MaxSharedMemoryPerBlockOptin"]) if has_cores else 0

    @property
    def resident_blocks(self) -> int:
        """Number of multiprocessors of the device: each runs one block of a resident kernel (`OnDevice`)."""
        return int(self._cupy.cuda.Device().attributes["MultiProcessorCount"])

    def upload(self, array: np.ndarray) -> Array:
        """Copy a host array to the device, in C order."""
        copied = self.empty(array.shape, array.dtype)
        copied.set(np.ascontiguousarray(array))
        return copied

    def download(self, array: Array) -> np.ndarray:
        """Copy a device array to the host, in C order; waits for the work that fills it."""
        return np.ascontiguousarray(self._cupy.asnumpy(array))

    def look(self, array: Array) -> Callable[[], np.ndarray]:
        """Start an asynchronous copy to pinned memory, with an event; see `Backend.look`."""
        pinned = self._cupy.cuda.alloc_pinned_memory(max(1, array.nbytes))
        copied = np.frombuffer(pinned, array.dtype, array.size)
        if array.size:
            array.data.copy_to_host_async(copied.ctypes.data, array.nbytes)
        done = self._cupy.cuda.Event(disable_timing=True)
        done.record()

        def wait() -> np.ndarray:
            done.synchronize()
            return copied

        return wait

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Allocate an array with undefined content from the memory pool."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._memory_for(f"an array of shape {shape} ({size / 2**30:.2f} GiB)"):
            try:
                return self._cupy.empty(shape, dtype)
            except self._cupy.cuda.memory.OutOfMemoryError:
                gc.collect()  # arrays of simulations that are no longer used
                return self._cupy.empty(shape, dtype)

    @contextmanager
    def _memory_for(self, purpose: str) -> Iterator[None]:
        """Convert cupy's out-of-memory error to `DeviceMemoryError`.

        Raises:
            DeviceMemoryError: the memory of the device is used up.
        """
        try:
            yield
        except (self._cupy.cuda.memory.OutOfMemoryError, self._cupy.cuda.runtime.CUDARuntimeError) as error:
            if getattr(error, "status", MEMORY_ALLOCATION) != MEMORY_ALLOCATION:
                raise
            free, total = self._cupy.cuda.runtime.memGetInfo()
            raise DeviceMemoryError(
                f"no room on the device for {purpose}: {free / 2**30:.2f} of {total / 2**30:.2f} GiB are "
                f"free; take fewer particles, a smaller box, float32, or the CPU"
            ) from error

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Allocate an array of zeros from the memory pool."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def alone(self, size: int, dtype: DTypeLike) -> Array:
        """Allocate a (size,) array outside the memory pool, so that other processes can open it."""
        cuda, bytes = self._cupy.cuda, max(1, size) * np.dtype(dtype).itemsize
        with self._memory_for(f"{size} numbers of {np.dtype(dtype)} in one allocation"):
            try:
                memory = cuda.Memory(bytes)
            except cuda.runtime.CUDARuntimeError:  # the pool may hold memory that is free
                gc.collect()
                self.release()
                memory = cuda.Memory(bytes)
        return self._cupy.ndarray(size, dtype, cuda.MemoryPointer(memory, 0))

    def address_of(self, array: Array) -> int:
        """Return the address of an array on the device."""
        return int(array.data.ptr)

    def handle_of(self, array: Array) -> tuple[bytes, int]:
        """Return the handle of the allocation of an array, and where the array begins in it, in bytes."""
        begin = array.data.mem.ptr
        return self._cupy.cuda.runtime.ipcGetMemHandle(begin), int(array.data.ptr - begin)

    def open_handle(self, handle: bytes) -> int:
        """Return the address, here, of an allocation of another process."""
        return int(self._cupy.cuda.runtime.ipcOpenMemHandle(handle))

    def copy_from(self, array: Array, address: int) -> None:
        """Fill an array from memory at an address of any device, after all work launched so far."""
        cuda = self._cupy.cuda
        kind, stream = cuda.runtime.memcpyDefault, cuda.get_current_stream().ptr
        cuda.runtime.memcpyAsync(array.data.ptr, address, array.nbytes, kind, stream)

    def close_handle(self, address: int) -> None:
        """Close an allocation of another process."""
        self._cupy.cuda.runtime.ipcCloseMemHandle(address)

    @property
    def has_nccl(self) -> bool:  # type: ignore[override]  # False for other backends
        """Whether CuPy finds NCCL."""
        from cupy.cuda import nccl

        return bool(nccl.available)

    def channel(self, size: int, rank: int, of_first: Callable[[Any], Any]) -> Any:
        """Return an NCCL communicator of the devices of all ranks; all of them call it.

        Args:
            size: number of ranks.
            rank: this one.
            of_first: returns on all ranks the value that the first of them gives.

        Raises:
            BackendUnavailableError: no NCCL.
        """
        from cupy.cuda import nccl

        if not nccl.available:
            raise BackendUnavailableError(
                "transport 'nccl' of Division: NCCL is not installed; allowed: with its library (in the "
                "checkout: pip install -e '.[mpi-cuda]'), or another transport"
            )
        return nccl.NcclCommunicator(size, of_first(nccl.get_unique_id() if rank == 0 else None), rank)

    def exchange(self, channel: Any, outgoing: Mapping[int, Array], incoming: Mapping[int, Array]) -> None:
        """Send an array to each of some ranks, and fill one from each, by a launch.

        Args:
            channel: from `channel`.
            outgoing: rank -> contiguous array.
            incoming: rank -> contiguous array, filled.
        """
        from cupy.cuda import nccl

        cuda = self._cupy.cuda

        def work() -> None:
            stream = cuda.get_current_stream().ptr
            nccl.groupStart()
            for rank, array in outgoing.items():
                channel.send(array.data.ptr, array.nbytes, nccl.NCCL_CHAR, rank, stream)
            for rank, array in incoming.items():
                channel.recv(array.data.ptr, array.nbytes, nccl.NCCL_CHAR, rank, stream)
            nccl.groupEnd()

        _launches[0].make(work)

    def wait(self) -> None:
        """Wait for the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    def arange(self, n: int) -> Array:
        """Allocate the (n,) int32 array of the numbers 0 .. n - 1, filled on the device."""
        with self._memory_for(f"{n} numbers of 32 bits"):
            return self._cupy.arange(n, dtype=np.int32)

    def fill(self, array: Array, value: int | np.integer) -> None:
        """Set every entry of an array to a number, by memset if all its bytes are equal."""
        if value in (0, -1):
            _launches[0].make(partial(array.data.memset_async, value & 0xFF, array.nbytes))
        else:
            _launches[0].make(partial(array.fill, value))

    def kernels(self, stem: str, law: Any = None, constants: Mapping[str, int] | None = None) -> Launcher:
        """Return the kernels of a stem; a kernel is compiled at the first call with given argument types."""
        defined = tuple(sorted((constants or {}).items()))
        key = (stem, type(law), type(wrapped_law(law)), defined, self.layout, self.options, self._device)
        if key not in _launchers:
            compile = partial(self._cupy.RawModule, options=self.options, backend="nvrtc")
            _launchers[key] = Launcher(stem, law, self.layout, compile, constants, _launches[0].start)
        return _launchers[key]

    def require_code_of(self, law: Any) -> None:
        """Raise an error for a law without a `.cuh` file next to the module of its class."""
        functor_of(type(law))

    def packs_rows_for(self, law: Any) -> bool:
        """Return whether the layout is "aos4" and the law takes velocities as `velocity*`, not as `real*`.

        So must the law that it wraps, if it wraps one.
        """
        laws = [one for one in (law, wrapped_law(law)) if one is not None]
        return self.layout == "aos4" and all(_takes_packed(type(one)) for one in laws)

    def sort_scratch(self, n: int, bins: int) -> tuple:
        """Allocate counts of bins and status words of the scan in one block, and a rank for each key."""
        counts = -(-bins // 4) * 4  # so that the status words are aligned to 16 bytes
        tiles = bins // SCAN_TILE + 1  # of starts, of which there is one more than bins
        block = self.empty(counts + 2 * (1 + tiles), np.int32)
        return block, block[:bins], block[counts:].view(np.uint64), self.empty(n, np.int32)

    def count_cells(self, pos: Array, table: Array, grid: np.ndarray, keys: Array, scratch: tuple) -> None:
        """Compute the sort keys of particles and count them, in one kernel, before `sort`."""
        block, counts, _, rank = scratch
        self.fill(block, 0)
        kernels = self.kernels("md.backend.sorting.counting")
        kernels.count_cells(len(keys), pos, table, grid, keys, counts, rank)

    def sort(
        self, keys: Array, start: Array, order: Array, scratch: tuple, are_counted: bool = False,
        stable_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Sort keys with a counting sort: count by atomics, scan, place, sort within each bin.

        The last step makes the sort stable.
        """
        n, bins = len(keys), len(start) - 1
        block, counts, status, rank = scratch
        kernels = self.kernels("md.backend.sorting.counting")
        if not are_counted:
            self.fill(block, 0)
            kernels.count(n, keys, counts, rank)
        kernels.scan(THREADS * (len(status) - 1), bins, counts, start, status)
        kernels.place(n, keys, start, rank, order)
        kernels.sort_bins(bins if stable_bins is None else stable_bins, start, order)

    def radix_scratch(self, keys: Array) -> tuple:
        """Allocate two more arrays of keys and of orders, counts of each tile, and the status of the scan."""
        n = len(keys)
        counts = radix.VALUES * -(-n * keys.dtype.itemsize // RADIX_TILE)
        words = 1 + counts // SCAN_TILE + 1
        more = [(self.empty(n, keys.dtype), self.empty(n, np.int32)) for _ in range(2)]
        counted = self.empty(counts, np.int32), self.empty(counts + 1, np.int32)
        return more, counted, self.empty(words, np.uint64)

    def radix_sort(self, keys: Array, bits: int, order: Array, scratch: tuple) -> None:
        """Sort keys in place with a stable radix sort: for each digit count in tiles, scan, place."""
        n, (more, (counts, start), status) = len(keys), scratch
        kernels = self.kernels("md.backend.sorting.counting")
        constants = {"WIDE_KEYS": 1} if keys.dtype.itemsize == 8 else {}
        radixes = self.kernels("md.backend.sorting.radix", constants=constants)
        passes, own = radix.passes_of(bits), (keys, order)
        targets = [more[0], own] * (passes // 2)  # what each pass writes to: the last to the keys themselves
        if passes % 2:
            targets = [more[0], more[1], own, *targets[2:]]
        source = keys, self.empty(0, np.int32)
        for digit, target in enumerate(targets):
            shift = radix.DIGIT * digit
            radixes.count_digits(len(counts), n, source[0], shift, counts)
            self.fill(status, 0)
            kernels.scan(THREADS * (len(status) - 1), len(counts), counts, start, status)
            radixes.place_digits(len(counts), n, source[0], source[1], shift, start, *target)
            source = target

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the launches of a function as a CUDA graph.

        The kernels that `work` launches must have been called before, so that they are loaded.
        """
        type(self).recorded += 1
        if self._capture_stream is None:
            self._capture_stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._capture_stream as stream:
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return graph.launch

    def note(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do work that only launches kernels and fills arrays; what it launches is prepared once."""
        return _launches[0].note(work)

    def mark(self) -> Any:
        """Record a CUDA event."""
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def between(self, first: Any, second: Any) -> float:
        """Return the device time between two events, in ms; waits for the later one."""
        second.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(first, second))

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Call cudaProfilerStart before and cudaProfilerStop after the work, each on an idle device."""
        runtime = self._cupy.cuda.runtime
        self._cupy.cuda.Device().synchronize()
        runtime.profilerStart()
        try:
            yield
            self._cupy.cuda.Device().synchronize()
        finally:
            runtime.profilerStop()

    @contextmanager
    def beside(self) -> Iterator[Callable[[], None]]:
        """Launch the work inside the context on a stream of its own; see `Backend.beside`."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            yield stream.synchronize

    @contextmanager
    def delay_device(self, seconds: float) -> Iterator[None]:
        """Delay the device by a host function that sleeps in the stream, while the host launches steps."""
        before, self._delay = self._delay, seconds
        try:
            yield
        finally:
            self._delay = before

    @contextmanager
    def stopwatch(self) -> Iterator[list[float]]:
        """Time the work inside the context as device time between two events, after all earlier work.

        Work that was launched `beside` it goes on.
        """
        self._cupy.cuda.get_current_stream().synchronize()
        if self._delay:
            self._cupy.cuda.get_current_stream().launch_host_func(time.sleep, self._delay)
        with super().stopwatch() as elapsed:
            yield elapsed


def _nvidia_smi(bus: str) -> dict[str, str]:
    """Query driver version, and present and highest clocks in MHz, of a device; {} without nvidia-smi."""
    fields = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    command = ["nvidia-smi", f"--id={bus}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields.split(","), (part.strip() for part in found.split(",")), strict=False))
