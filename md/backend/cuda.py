"""The CUDA backend: cupy arrays from its memory pool, kernels compiled from the .cu files by NVRTC.

cupy is imported only when a device is asked for.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from md import checks
from md.backend.base import Backend
from md.backend.cuda_launcher import THREADS, Launcher, asked_by, functor_of
from md.backend.sorting import radix
from md.backend.timings import Timings
from md.errors import BackendUnavailableError, DeviceMemoryError

SCAN_TILE = 8 * THREADS  # counts that a block of counting.cu's scan takes
RADIX_TILE = 2048  # keys that a block of radix.cu takes
_launchers: dict[tuple, Launcher] = {}  # with all they have compiled, for every backend object of the process


def why_not() -> str | None:
    """The reason why CUDA cannot be used here, or None where it can."""
    try:
        import cupy
    except ImportError:
        return "cupy is not installed (in the checkout: pip install -e '.[cuda]', or '.[cuda12]' for CUDA 12)"
    return None if cupy.cuda.is_available() else "no CUDA device is visible"


class Cuda(Backend):
    """The current CUDA device.

    Args:
        layout: of particle arrays; "aos4" if not given.
        fmad: let the compiler fuse multiply and add. Without it results come closer to the CPU's.

    Raises:
        BackendUnavailableError: no cupy, or no device.
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

        self._cupy, self._device = cupy, cupy.cuda.runtime.getDevice()
        self.options = ("--std=c++17", "-lineinfo", "--fmad=true" if fmad else "--fmad=false")
        self._recording = None  # the stream to record on
        self._head_start = 0.0  # seconds

    def describe(self) -> dict:
        """Name, size and software of the device, and its clocks where nvidia-smi tells them."""
        runtime = self._cupy.cuda.runtime
        device = runtime.getDevice()
        properties = runtime.getDeviceProperties(device)
        return {
            "device": properties["name"].decode(),
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": properties["multiProcessorCount"],
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
        """PCI bus id of the device, as nvidia-smi takes it."""
        runtime = self._cupy.cuda.runtime
        return runtime.deviceGetPCIBusId(runtime.getDevice())

    def free_memory(self) -> int:
        """Of the device, with what the memory pool has in store."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free + self._cupy.get_default_memory_pool().free_bytes())

    def upload(self, array: np.ndarray):
        """A C-ordered copy on the device."""
        copied = self.empty(array.shape, array.dtype)
        copied.set(np.ascontiguousarray(array))
        return copied

    def download(self, array) -> np.ndarray:
        """A C-ordered copy on the host; waits for the work that fills it."""
        return np.ascontiguousarray(self._cupy.asnumpy(array))

    def look(self, array):
        """By a copy to pinned memory, and an event."""
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

    def empty(self, shape, dtype):
        """`cupy.empty`, from the memory pool."""
        asked = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._room(f"an array of shape {shape} ({asked / 2**30:.2f} GiB)"):
            return self._cupy.empty(shape, dtype)

    @contextmanager
    def _room(self, purpose: str):
        """Turns cupy's report that memory ran out into this package's.

        Raises:
            DeviceMemoryError: it did.
        """
        try:
            yield
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            free, total = self._cupy.cuda.runtime.memGetInfo()
            raise DeviceMemoryError(
                f"no room on the device for {purpose}: {free / 2**30:.2f} of {total / 2**30:.2f} GiB are "
                f"free; take fewer particles, a smaller box, float32, or the CPU"
            ) from error

    def zeros(self, shape, dtype):
        """`cupy.zeros`."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def fill(self, array, value: int) -> None:
        """By memset where all bytes are equal."""
        if value in (0, -1):
            array.data.memset_async(value & 0xFF, array.nbytes)
        else:
            array.fill(value)

    def kernels(self, stem: str, law: Any = None) -> Launcher:
        """The kernels of a stem; they are compiled when first called with arguments of a kind."""
        key = (stem, type(law), type(asked_by(law)), self.layout, self.options, self._device)
        if key not in _launchers:
            compile = partial(self._cupy.RawModule, options=self.options, backend="nvrtc")
            _launchers[key] = Launcher(stem, law, self.layout, compile)
        return _launchers[key]

    def require_code_of(self, law) -> None:
        """Refuse a law without a `.cuh` beside the module of its class."""
        functor_of(law)

    def sort_scratch(self, n: int, bins: int) -> tuple:
        """Counts per bin and what the scan's tiles tell each other, in one piece; a place for each key."""
        counts = -(-bins // 4) * 4  # what follows stands at 16 bytes
        tiles = bins // SCAN_TILE + 1  # of starts, of which there is one more than bins
        piece = self.empty(counts + 2 * (1 + tiles), np.int32)
        return piece, piece[:bins], piece[counts:].view(np.uint64), self.empty(n, np.int32)

    def sort(self, keys, start, order, scratch) -> None:
        """Counted with atomics, scanned, placed, and each bin put back in order: as stable as the CPU's."""
        n, bins = len(keys), len(start) - 1
        piece, counts, told, place = scratch
        self.fill(piece, 0)
        kernels = self.kernels("md.backend.sorting.counting")
        kernels.count(n, keys, counts, place)
        kernels.scan(THREADS * (len(told) - 1), bins, counts, start, told)
        kernels.place(n, keys, start, place, order)
        kernels.settle(bins, start, order)

    def radix_scratch(self, keys) -> tuple:
        """Two more of keys and order, counts of each tile, and what scanning them needs."""
        n = len(keys)
        counts = radix.VALUES * -(-n // RADIX_TILE)
        told = 1 + counts // SCAN_TILE + 1
        more = [(self.empty(n, keys.dtype), self.empty(n, np.int32)) for _ in range(2)]
        counted = self.empty(counts, np.int32), self.empty(counts + 1, np.int32)
        return more, counted, self.empty(told, np.uint64)

    def radix_sort(self, keys, bits, order, scratch) -> None:
        """Digit by digit: counted in tiles, scanned, placed."""
        n, (more, (counts, start), told) = len(keys), scratch
        radixes, kernels = (
            self.kernels("md.backend.sorting.radix"),
            self.kernels("md.backend.sorting.counting"),
        )
        wide, passes, own = keys.dtype.itemsize == 8, radix.passes_of(bits), (keys, order)
        ways = [more[0], own] * (passes // 2)  # where each pass writes: the last to the keys' own place
        if passes % 2:
            ways = [more[0], more[1], own, *ways[2:]]
        now = keys, self.empty(0, np.int32)
        for digit, then in enumerate(ways):
            shift = radix.DIGIT * digit
            radixes.count_digits(len(counts), n, now[0], wide, shift, counts)
            self.fill(told, 0)
            kernels.scan(THREADS * (len(told) - 1), len(counts), counts, start, told)
            radixes.place_digits(len(counts), n, now[0], wide, now[1], shift, start, *then)
            now = then

    def record(self, work):
        """As a CUDA graph. The kernels that `work` calls must have been called before, so as to be loaded."""
        type(self).recorded += 1
        if self._recording is None:
            self._recording = self._cupy.cuda.Stream(non_blocking=True)
        with self._recording as stream:
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return graph.launch

    def mark(self):
        """An event."""
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def between(self, first, second) -> float:
        """Device time."""
        return self._elapsed(first, second)

    @contextmanager
    def profiled(self):
        """Between cudaProfilerStart and cudaProfilerStop, the device idle before and done after."""
        runtime = self._cupy.cuda.runtime
        self._cupy.cuda.Device().synchronize()
        runtime.profilerStart()
        try:
            yield
            self._cupy.cuda.Device().synchronize()
        finally:
            runtime.profilerStop()

    @contextmanager
    def host_ahead(self, seconds: float):
        """By a function of the host that sleeps in the stream, and lets the host's other thread go on."""
        before, self._head_start = self._head_start, seconds
        try:
            yield
        finally:
            self._head_start = before

    @contextmanager
    def phase(self, timings: Timings, name: str, step: int):
        """Device time between two events; the host does not wait."""
        start = self.mark()
        yield
        stop = self.mark()
        timings.add(name, step, lambda: self._elapsed(start, stop))

    @contextmanager
    def stopwatch(self):
        """Device time between two events, with the device idle before and done after."""
        elapsed: list[float] = []
        self._cupy.cuda.Device().synchronize()
        if self._head_start:
            self._cupy.cuda.get_current_stream().launch_host_func(time.sleep, self._head_start)
        start = self.mark()
        yield elapsed
        elapsed.append(self._elapsed(start, self.mark()))

    def _elapsed(self, start, stop) -> float:
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop))


def _nvidia_smi(bus: str) -> dict[str, str]:
    """Driver, and present and highest clocks in MHz, of a device; nothing where nvidia-smi is not."""
    wanted = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    command = ["nvidia-smi", f"--id={bus}", f"--query-gpu={wanted}", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(wanted.split(","), (part.strip() for part in found.split(",")), strict=False))
