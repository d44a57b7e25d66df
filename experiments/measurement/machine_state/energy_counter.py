"""Read the energy that a GPU or the processors have used, in joules since a time in the past.

Of a GPU it is NVML's counter of the whole board, since the generation Volta (NVIDIA, NVML API reference,
nvmlDeviceGetTotalEnergyConsumption). Of processors it is RAPL (Linux, Documentation/power/powercap): all
packages, and memory where it has a counter of its own. It counts the work of all processes, and its files can
often be read by root alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from md.backend import Backend
from sfc import checks

NVML = "libnvidia-ml.so.1"
RAPL = Path("/sys/class/powercap")
_COUNTED = ("package", "dram")  # starts of the names of domains that are no part of each other


class NoCounterError(RuntimeError):
    """Raised where no energy counter can be read; its text says why."""


class EnergyCounter(Protocol):
    """Counter of the energy used so far."""

    name: str

    def joules(self) -> float:
        """Return the energy since a time in the past, in joules.

        Raises:
            NoCounterError: it cannot be read.
        """


@contextmanager
def counter_of(backend: Backend) -> Iterator[EnergyCounter]:
    """Open the energy counter of the device of a backend, or of the processors.

    Args:
        backend: of the simulations.

    Returns:
        Context with the counter, which has been read once.

    Raises:
        TypeError: no backend.
        NoCounterError: there is none that can be read.
    """
    checks.instance("backend", backend, Backend, "an md.backend.Backend", "md.backend.get makes one")
    if backend.name == "cuda":
        device: Any = backend  # a CUDA backend has the PCI bus id
        with _nvml() as library:
            yield _of_gpu(library, device.bus)
    else:
        yield _of_processors()


class GpuEnergy:
    """Counter of a GPU, of an open NVML.

    Args:
        library: NVML.
        device: its handle of the GPU.
    """

    name = "NVML"

    def __init__(self, library: Any, device: Any):
        self._library, self._device = library, device
        self._millijoules = ctypes.c_ulonglong()

    def joules(self) -> float:
        """Return the energy since the driver was loaded, in joules; see `EnergyCounter`."""
        found = ctypes.byref(self._millijoules)
        _check(self._library, self._library.nvmlDeviceGetTotalEnergyConsumption(self._device, found))
        return 1e-3 * self._millijoules.value


@contextmanager
def _nvml() -> Iterator[Any]:
    try:
        library: Any = ctypes.CDLL(NVML)
        library.nvmlErrorString.restype = ctypes.c_char_p
        _check(library, library.nvmlInit_v2())
    except (OSError, AttributeError) as error:
        raise NoCounterError(f"NVML cannot be loaded: {error}") from error
    try:
        yield library
    finally:
        library.nvmlShutdown()


def _of_gpu(library: Any, bus: str) -> GpuEnergy:
    device = ctypes.c_void_p()
    try:
        _check(library, library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(device)))
        counter = GpuEnergy(library, device)
        counter.joules()
    except AttributeError as error:  # a library that is older than the counter
        raise NoCounterError(f"NVML has no energy counter: {error}") from error
    return counter


def _check(library: Any, status: int) -> None:
    if status:
        raise NoCounterError(f"NVML's energy counter: {library.nvmlErrorString(status).decode()}")


class _Domain(NamedTuple):
    """Counter of a part of the machine in microjoules, which starts again at 0 after `range`."""

    file: Path
    range: int


class ProcessorEnergy:
    """Counters of packages and memory, added up.

    Args:
        domains: their files and ranges.
    """

    name = "RAPL"

    def __init__(self, domains: list[_Domain]):
        self._domains, self._sum = domains, 0
        self._last = [_number(domain.file) for domain in domains]

    def joules(self) -> float:
        """Return the energy since the first reading, in joules; see `EnergyCounter`."""
        for k, domain in enumerate(self._domains):
            now = _number(domain.file)
            self._sum += now - self._last[k] + (domain.range if now < self._last[k] else 0)
            self._last[k] = now
        return 1e-6 * self._sum


def _of_processors() -> ProcessorEnergy:
    domains = [
        _Domain(folder / "energy_uj", _number(folder / "max_energy_range_uj"))
        for folder in sorted(RAPL.glob("intel-rapl:*"))
        if _text(folder / "name").startswith(_COUNTED)
    ]
    if not domains:
        raise NoCounterError(f"{RAPL} has no counter of this processor (RAPL)")
    return ProcessorEnergy(domains)


def _number(file: Path) -> int:
    try:
        return int(_text(file))
    except ValueError as error:
        raise NoCounterError(f"{file} holds no number") from error


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except OSError as error:
        raise NoCounterError(f"{file} (RAPL): {error.strerror}") from error
