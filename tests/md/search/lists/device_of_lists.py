"""A device that runs ahead: CUDA kernels of neighbour lists, compiled for the host, and others in Numba."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from md.backend import Cpu
from md.search.partners import CollectPartners
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray

STEMS = (
    "md.domain.on_device.migration",
    "md.domain.on_device.peers",
    "md.domain.on_device.rank_arrays",
    "md.particles.cell_sort",
    "md.search.lists.list_search",
    "md.search.lists.listing",
    "md.search.lists.pruned_lists",
)


class DeviceOfLists(Cpu):
    """Launches are made at once, or recorded and made again later, as in a graph.

    Attributes:
        launches: how often each force kernel of lists was launched for a fused step.
        first_in_record: kernels that were called for the first time while steps were recorded.
        noted: number of calls of `note`.
    """

    runs_ahead = True
    check_interval = 50
    resident_blocks = 5
    stems: tuple[str, ...] = STEMS

    def __init__(self, layout: str = "aos"):
        super().__init__(layout)
        self.workers = 1
        self._emulated, self._record, self._launchers = EmulatedCuda(), None, {}
        self._called: set[tuple[Kernels, str]] = set()
        self._emulated.layout = self.layout
        self.launches: Counter[str] = Counter()
        self.first_in_record: list[str] = []
        self.noted = 0
        self._notes: list[list[tuple]] = []

    def launch(self, work: Callable[..., None], *arguments: Any) -> None:
        """Make a launch, or record it."""
        for noted in self._notes:
            noted.append((work, arguments))
        if self._record is None:
            work(*arguments)
        else:
            self._record.append((work, arguments))

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        record = self._record = []
        try:
            work()
        finally:
            self._record = None

        def again() -> None:
            for launch, arguments in record:
                launch(*arguments)

        return again

    def note(self, work: Callable[[], None]) -> Callable[[], None]:
        noted: list[tuple] = []
        self._notes.append(noted)
        try:
            work()
        finally:
            self._notes.pop()
        self.noted += 1

        def again() -> None:
            for launch, arguments in noted:
                self.launch(launch, *arguments)

        return again

    def fill(self, array: np.ndarray, value: Any) -> None:
        self.launch(filled, array, value)

    def sort(self, *arguments: Any, are_counted: bool = False, stable_bins: int | None = None) -> None:
        self.launch(super().sort, *arguments)
        self.launch(reversed_behind, *arguments[:3], stable_bins)

    def count_cells(self, pos: Any, table: Any, grid: Any, keys: Any, scratch: Any) -> None:
        self.launch(sys.modules["md.particles.cell_grid"].cell_keys, len(keys), pos, table, grid, keys)

    def look(self, array: np.ndarray) -> Callable[[], np.ndarray]:
        copied = array.copy()
        return lambda: copied

    def kernels(self, stem: str, law: Any = None, constants: Mapping[str, int] | None = None) -> Any:
        key = stem, type(law), tuple(sorted((constants or {}).items()))
        if key not in self._launchers:
            self._launchers[key] = Kernels(self, stem, law, constants)
        return self._launchers[key]


class PackedDevice(DeviceOfLists):
    """A device of lists on which rows are packed."""

    stems = (*STEMS, "md.particles.arrays", "md.simulation.energy_monitor")

    def __init__(self):
        super().__init__("aos4")

    def upload_rows(self, array: np.ndarray) -> np.ndarray:
        rows = self.rows(*array.shape, array.dtype)
        rows[...] = array
        return rows

    def packs_rows_for(self, law: Any) -> bool:
        return not isinstance(law, CollectPartners)

    def alone(self, size: int, dtype: Any) -> np.ndarray:
        """Allocate memory that begins at a multiple of 64 bytes, as on a device."""
        length = size * np.dtype(dtype).itemsize
        memory = np.empty(length + 64, np.uint8)
        begin = -memory.ctypes.data % 64
        return memory[begin : begin + length].view(dtype)


class Kernels:
    """The kernels of a stem."""

    def __init__(self, device: DeviceOfLists, stem: str, law: Any, constants: Mapping[str, int] | None):
        self._device, self._stem, self._of_lists = device, stem, stem in device.stems
        self._kernels = sys.modules[stem]
        if self._of_lists:
            self._kernels = device._emulated.kernels(stem, law, constants)

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel, device = getattr(self._kernels, name), self._device
        if not self._of_lists:
            return lambda *arguments: device.launch(kernel, *arguments)
        full = f"{self._stem.rsplit('.', 1)[1]}.{name}"

        def run(*arguments: Any) -> None:
            if hasattr(arguments[-1], "drift"):
                device.launches[full] += 1
            kernel(*map(on_device, arguments))

        def launch(*arguments: Any) -> None:
            if device._record is not None and (self, name) not in device._called:
                device.first_in_record.append(full)
            device._called.add((self, name))
            device.launch(run, *arguments)

        return launch


def reversed_behind(keys: np.ndarray, start: np.ndarray, order: np.ndarray, bins: int | None) -> None:
    """Reverse the order in the bins behind the first ones, where it may be any."""
    if bins is not None:
        behind = order[start[bins] :]
        behind[...] = behind[np.lexsort((-behind, keys[behind]))]


def filled(array: np.ndarray, value: Any) -> None:
    """Fill an array by the byte for -1, as a device does."""
    if value == -1:
        array.view(np.uint8)[...] = 0xFF
    else:
        array[...] = value


def on_device(argument: Any) -> Any:
    """Make the arrays of an argument arrays of a device."""
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        fields = zip(argument._fields, argument, strict=True)  # a reach is a number of the host
        return type(argument)(*(value if name == "reach2" else on_device(value) for name, value in fields))
    if isinstance(argument, np.ndarray) and argument.ndim and not argument.dtype.names:
        return HostArray(argument)
    return argument
