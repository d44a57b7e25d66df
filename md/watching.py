"""Schedules that look at the run they belong to, and what they may look at."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from md.backend import Backend, Timings
from md.particles.arrays import Particles
from md.particles.cell_grid import Grid


class Run(NamedTuple):
    """What a schedule may look at.

    Attributes:
        particles: on their backend.
        grid: the search's cells.
        backend: of the particles.
        timings: of the simulation.
    """

    particles: Particles
    grid: Grid
    backend: Backend
    timings: Timings


class Watching(ABC):
    """Base of the schedules that look at the run. They reorder at the first step, and then for a reason.

    Attributes:
        times: whether it goes by the times of phases, or of fused steps that a device takes in pieces.
    """

    times: ClassVar[bool] = False

    def bind(self, run: Run) -> Watching:
        """A copy that watches a run."""
        bound = copy.copy(self)
        bound._run, bound._last = run, None
        return bound

    def reordered(self, step: int) -> None:
        """Take note that the particles were just reordered, before this step."""
        self._last = step

    def __call__(self, step: int) -> bool:
        """Whether there is reason to reorder before this step."""
        return self._last is None or (step > self._last and self._is_due(step))

    def steps_to_next(self, step: int, most: int) -> int:
        """How many steps may be taken, from this one on, before it has to be asked again: 1.

        Args:
            step: for which it was just asked, or the particles reordered.
            most: no more than so many.
        """
        return 1

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """Host arrays of what the schedule goes by, for `remember`; none before the first reorder."""
        return {} if self._last is None else {"last": np.array(self._last)}

    def remember(self, memory: dict[str, np.ndarray]) -> None:
        """Go on as another one that watched this run would.

        Args:
            memory: of the other.

        Raises:
            ValueError: it is none.
        """
        last = memory.get("last")
        if last is None:
            return
        if last.shape != () or not np.issubdtype(last.dtype, np.integer) or last < 0:
            raise ValueError(f"last reorder before step {last!r}; allowed: an integer of at least 0")
        self._last = int(last)

    @abstractmethod
    def _is_due(self, step: int) -> bool:
        """Whether there is, some steps after the last reorder."""
