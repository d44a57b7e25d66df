"""The CUDA backend: cupy arrays from its memory pool, kernels compiled from the .cu files by NVRTC.

cupy is imported only when a device is asked for.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from md.backend.base import Backend, BackendUnavailableError, DeviceMemoryError, Timings
from md.backend.source import C_TYPES, STORE, Struct, assemble, file_of, parameters, struct_of_dtype

THREADS = 256  # a block
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
    workers = 1

    def __init__(self, layout: str | None = None, fmad: bool = True):
        super().__init__(layout)
        reason = why_not()
        if reason is not None:
            raise BackendUnavailableError(f"backend 'cuda' cannot run here: {reason}")
        import cupy

        self._cupy, self._device = cupy, cupy.cuda.runtime.getDevice()
        self.options = ("--std=c++17", "-lineinfo", "--fmad=true" if fmad else "--fmad=false")
        self._sort_scratch: tuple = (None, None)

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
            **_nvidia_smi(runtime.deviceGetPCIBusId(device)),
            "layout": self.layout,
            "compiler_options": self.options,
        }

    def upload(self, array: np.ndarray):
        """A C-ordered copy on the device."""
        copied = self.empty(array.shape, array.dtype)
        copied.set(np.ascontiguousarray(array))
        return copied

    def download(self, array) -> np.ndarray:
        """A C-ordered copy on the host; waits for the work that fills it."""
        return np.ascontiguousarray(self._cupy.asnumpy(array))

    def empty(self, shape, dtype):
        """`cupy.empty`, from the memory pool."""
        try:
            return self._cupy.empty(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            asked = int(np.prod(shape)) * np.dtype(dtype).itemsize
            free, total = self._cupy.cuda.runtime.memGetInfo()
            raise DeviceMemoryError(
                f"no room on the device for an array of shape {shape} ({asked / 2**30:.2f} GiB): "
                f"{free / 2**30:.2f} of "
                f"{total / 2**30:.2f} GiB are free; take fewer particles, a smaller box, float32, or the CPU"
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
        key = (stem, type(law), self.layout, self.options, self._device)
        if key not in _launchers:
            _launchers[key] = Launcher(self, stem, law)
        return _launchers[key]

    def reserve_sort(self, n: int, bins: int) -> None:
        """Counts per bin, and a place for each key."""
        counts, place = self._sort_scratch
        if counts is None or len(counts) != bins or len(place) < n:
            self._sort_scratch = self.empty(bins, np.int32), self.empty(n, np.int32)

    def sort(self, keys, start, order) -> None:
        """Counted with atomics, scanned, placed, and each bin put back in order: as stable as the CPU's."""
        n, bins = len(keys), len(start) - 1
        self.reserve_sort(n, bins)
        counts, place = self._sort_scratch
        self.fill(counts, 0)
        self.fill(start[:1], 0)
        kernels = self.kernels("md.backend.sort")
        kernels.count(n, keys, counts, place)
        self._cupy.cumsum(counts, dtype=np.int32, out=start[1:])
        kernels.place(n, keys, start, place, order)
        kernels.settle(bins, start, order)

    @contextmanager
    def phase(self, timings: Timings, name: str, step: int):
        """Device time between two events; the host does not wait."""
        event = self._cupy.cuda.Event
        start, stop = event(), event()
        start.record()
        yield
        stop.record()
        timings.add(name, step, lambda: self._elapsed(start, stop))

    @contextmanager
    def stopwatch(self):
        """Device time between two events, with the device idle before and done after."""
        elapsed: list[float] = []
        self._cupy.cuda.Device().synchronize()
        start, stop = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        yield elapsed
        stop.record()
        elapsed.append(self._elapsed(start, stop))

    def _elapsed(self, start, stop) -> float:
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop))

    def module(self, source: str):
        """The compiled module of a source string."""
        return self._cupy.RawModule(code=source, options=self.options, backend="nvrtc")


class Launcher:
    """The kernels of one stem as functions: `launcher.force(n, ...)` starts n threads.

    What is compiled follows from the arguments: dim and precision from the first (n, dim) array, a struct
    from each structured argument, the functors of law and output from the modules that define them.

    Args:
        backend: the backend.
        stem: module name.
        law: the law that its kernels call, or None.
    """

    def __init__(self, backend: Cuda, stem: str, law: Any):
        self._backend, self._stem = backend, stem
        self._law_file = None if law is None else _cuda_file(type(law).__module__, ".cuh")
        self._parameters = parameters(_cuda_file(stem, ".cu").read_text())
        self._compiled: dict[tuple, Any] = {}

    def __getattr__(self, name: str):
        listed = self._parameters.get(name)
        if listed is None:
            raise AttributeError(
                f"no kernel {name!r} in {self._stem}.cu; known: {', '.join(self._parameters)}"
            )

        def launch(*arguments):
            if len(arguments) != len(listed):
                raise TypeError(f"{self._stem}.{name} takes {len(listed)} arguments, not {len(arguments)}")
            n = int(arguments[0])
            if n == 0:
                return
            key = (name, *(_kind(argument) for argument in arguments))
            if key not in self._compiled:
                self._compiled[key] = self._compile(name, listed, arguments)
            values = tuple(_value(p.type, a) for p, a in zip(listed, arguments, strict=True))
            self._compiled[key](((n + THREADS - 1) // THREADS,), (THREADS,), values)

        setattr(self, name, launch)
        return launch

    def _compile(self, name: str, listed, arguments):
        rows = next((a for a in arguments if getattr(a, "ndim", 0) == 2), None)
        dim, precision = (3, np.dtype(np.float32)) if rows is None else (rows.shape[1], rows.dtype)
        structs, functors, fused = {}, [], False
        for parameter, argument in zip(listed, arguments, strict=True):
            if not parameter.is_struct:
                continue
            structs[parameter.type] = _struct(argument)
            if parameter.type == "Law":
                functors.append(self._law_file)
            elif parameter.type == "Out":
                fused = hasattr(argument, "_fields")
                functors.append(file_of(type(argument).__module__, ".cuh") if fused else STORE)
        source = assemble(self._stem, name, dim, precision, self._backend.layout, structs, functors, fused)
        return self._backend.module(source).get_function(name)


def _cuda_file(module: str, suffix: str) -> Path:
    """The CUDA file of a module.

    Raises:
        BackendUnavailableError: there is none.
    """
    path = file_of(module, suffix)
    if not path.exists():
        raise BackendUnavailableError(
            f"{module} has no CUDA kernel: {path.name} is not beside {path.stem}.py; write it, or use "
            f"backend='cpu'"
        )
    return path


def _kind(argument) -> Any:
    """What decides, of an argument, which code is compiled."""
    if hasattr(argument, "_fields"):
        return type(argument), *(_kind(field) for field in argument)
    if hasattr(argument, "dtype"):
        return argument.dtype, argument.shape[1] if argument.ndim == 2 else 0
    return type(argument)


def _struct(argument) -> Struct:
    """The struct that holds an argument: its own dtype, its named fields, or a pointer to its data."""
    if hasattr(argument, "_fields"):
        return Struct(
            tuple(
                (_field_type(value), name, 0) for name, value in zip(argument._fields, argument, strict=True)
            )
        )
    if argument.dtype.names:
        return struct_of_dtype(argument.dtype)
    return Struct(((f"{C_TYPES[argument.dtype]}*", "data", 0),))


def _field_type(value) -> str:
    if isinstance(value, int):
        return "long long"
    return C_TYPES[value.dtype] + ("" if isinstance(value, (np.ndarray, np.generic)) else "*")


def _value(declared: str, argument):
    """An argument as a kernel takes it."""
    if declared == "int":
        return np.int32(argument)
    if declared == "long long":
        return np.int64(argument)
    if hasattr(argument, "_fields"):
        fields = [
            (
                name,
                np.int64
                if isinstance(value, int)
                else value.dtype
                if isinstance(value, (np.ndarray, np.generic))
                else np.uint64,
            )
            for name, value in zip(argument._fields, argument, strict=True)
        ]
        return np.array([tuple(_plain(value) for value in argument)], np.dtype(fields, align=True))
    if declared[0].isupper() and not argument.dtype.names:
        return np.array([(_plain(argument),)], [("data", np.uint64)])
    if declared.endswith("*"):
        return np.uint64(_plain(argument))
    return argument


def _plain(value):
    """A field of a struct: a number, the number in a host array of one, or the address of a device array."""
    if isinstance(value, np.ndarray):
        return value.reshape(())[()]
    if isinstance(value, (int, np.generic)):
        return value
    return value.data.ptr if value.size else 0


def _nvidia_smi(bus: str) -> dict[str, str]:
    """Driver, and present and highest clocks in MHz, of a device; nothing where nvidia-smi is not."""
    wanted = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    command = ["nvidia-smi", f"--id={bus}", f"--query-gpu={wanted}", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(wanted.split(","), (part.strip() for part in found.split(",")), strict=False))
