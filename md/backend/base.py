"""What a backend is: where arrays live, how kernels are found, how phases are timed.

Contract. A stem is one module (`md.search.linked`) with its kernels: Numba functions in `linked.py`, CUDA
functions of the same names and parameters in `linked.cu`. `backend.kernels(stem)` gives an object with
those functions as attributes; the first parameter of each is the number of work items. Strategies call
kernels and know no backend.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

Array = Any  # a numpy array on the host, a cupy array on a device
NO_FAULT = np.uint64(2**64 - 1)


class BackendUnavailableError(RuntimeError):
    """A backend that was asked for cannot run here; the message says why and what helps."""


class Timings:
    """Milliseconds of each phase.

    Attributes:
        steps: phase -> list of the step of each timing.
        milliseconds: phase -> list of durations in ms, one for every time the phase ran.
        total: (steps, ms) of every `run`, taken around the whole loop.
    """

    def __init__(self):
        self.steps: dict[str, list[int]] = defaultdict(list)
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self.total: list[tuple[int, float]] = []

    def clear(self) -> None:
        """Forget everything; call it after the warm-up."""
        self.steps.clear()
        self.milliseconds.clear()
        self.total.clear()

    def median(self, phase: str) -> float:
        """Median of a phase in ms; NaN if it never ran."""
        return float(np.median(self.milliseconds[phase])) if self.milliseconds.get(phase) else float("nan")


class Backend(ABC):
    """Arrays, kernels and clocks of one kind of device.

    Attributes:
        name: as in `Simulation(backend=name)`.
        check_interval: steps between two readings of the fault word.
        workers: parts into which a kernel that is not one item a thread may cut its work.
    """

    name: str
    check_interval: int
    workers: int

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What computes: `device` (its name) and whatever else a reader of timings must know."""

    @abstractmethod
    def upload(self, array: np.ndarray) -> Array:
        """A copy of a host array on the backend."""

    @abstractmethod
    def download(self, array: Array) -> np.ndarray:
        """A copy of a backend array on the host; waits for the work that fills it."""

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype) -> Array:
        """A new array with undefined content."""

    def empty_like(self, array: Array) -> Array:
        """A new array of the shape and dtype of another."""
        return self.empty(array.shape, array.dtype)

    @abstractmethod
    def kernels(self, stem: str, law: Any = None) -> Any:
        """The kernels of a stem, compiled for a law where they take one.

        Args:
            stem: module name, `__name__` of the strategy.
            law: the law the kernels call, or None.
        """

    @abstractmethod
    def phase(self, timings: Timings, name: str, step: int) -> AbstractContextManager:
        """Time what is done inside as one phase of a step."""

    @abstractmethod
    def stopwatch(self) -> AbstractContextManager[list[float]]:
        """Time what is done inside, the backend's pending work included; the list holds the ms afterwards."""
