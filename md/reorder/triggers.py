"""When to reorder: a boolean function of the step, which may look at the run. A new one is one line here.

Contract. A schedule is called before every step. A `RunTrigger` one is bound to the run first, and told of
every reorder. What it goes by beside the step is its `memory`, which a checkpoint holds.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numba
import numpy as np

from md import checks
from md.backend import Backend, Timings
from md.backend.prelude import cell_number, home_cell, load
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from sfc.compile import kernel


class RunView(NamedTuple):
    """What a schedule may look at.

    Attributes:
        particles: on their backend.
        grid: the search's cells.
        backend: of the particles.
        timings: of the simulation.
    """

    particles: ParticleArrays
    grid: CellGrid
    backend: Backend
    timings: Timings


class RunTrigger(ABC):
    """Base of the schedules that look at the run. They reorder at the first step, and then for a reason.

    Attributes:
        times: whether it goes by the times of phases, or of fused steps that a device takes in pieces.
    """

    times: ClassVar[bool] = False

    def bind(self, run: RunView) -> RunTrigger:
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


class Trigger(Protocol):
    """Anything that can say, at each step, whether to reorder."""

    def __call__(self, step: int) -> bool:
        """Whether to reorder before this step, counted from 0.

        A function of the step alone, unless it is a `RunTrigger` one: steps may be asked for ahead, and twice.
        """


@dataclass(frozen=True)
class Never:
    """At no step."""

    def __call__(self, step: int) -> bool:
        """False."""
        return False


@dataclass(frozen=True)
class Every:
    """At step 0 and every `interval` steps after.

    Args:
        interval: steps between reorders, at least 1.

    Raises:
        TypeError: an interval that is no integer.
        ValueError: an interval below 1.
    """

    interval: int

    def __post_init__(self):
        interval = checks.integer("interval of Every", self.interval, unit="steps")
        object.__setattr__(self, "interval", interval)

    def __call__(self, step: int) -> bool:
        """Whether the step is a multiple of the interval."""
        return step % self.interval == 0


class Moved(RunTrigger):
    """When a share of the particles has left the cell that it was sorted by.

    Args:
        fraction: of the particles, 0 < fraction <= 1.
        interval: steps from one look to the next; a look is a pass over the positions, and on a device the
            host waits for it.

    Raises:
        TypeError: a fraction that is no number, or an interval that is no integer.
        ValueError: a fraction outside its range, or an interval below 1.
    """

    def __init__(self, fraction: float, interval: int = 10):
        self.fraction = checks.number("fraction of Moved", fraction, above=0, high=1, unit="of the particles")
        self.interval = checks.integer("interval of Moved", interval, unit="steps")

    def __repr__(self) -> str:
        return f"Moved(fraction={self.fraction}, interval={self.interval})"

    def bind(self, run: RunView) -> Moved:
        """A copy that watches a run."""
        bound = super().bind(run)
        bound._home = run.backend.empty(run.particles.n, np.int32)
        bound._none = run.backend.empty(0, np.int32)
        bound._away = run.backend.zeros(1, np.int32)
        return bound

    def reordered(self, step: int) -> None:
        """Note the cell of every particle."""
        super().reordered(step)
        self._run.grid.keys(self._run.particles.pos, self._none, self._home)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """With the cell of every particle then."""
        if self._last is None:
            return {}
        return super().memory | {"home": self._run.backend.download(self._home)}

    def remember(self, memory: dict[str, np.ndarray]) -> None:
        """As `RunTrigger.remember`."""
        super().remember(memory)
        if self._last is None:
            return
        home = memory.get("home")
        if home is None or home.shape != self._home.shape or home.dtype != np.int32:
            raise ValueError(f"home cells {home!r:.100}; allowed: {len(self._home)} of int32, one a particle")
        self._home[...] = self._run.backend.upload(home)

    def _is_due(self, step: int) -> bool:
        if (step - self._last) % self.interval:
            return False
        particles, grid, backend, _ = self._run
        backend.fill(self._away, 0)
        backend.kernels(__name__).stray(particles.n, particles.pos, self._home, grid.record, self._away)
        return int(backend.download(self._away)[0]) >= self.fraction * max(particles.n, 1)


@kernel(parallel=True)
def stray(n, pos, home, grid, away):
    """away[0] = number of particles whose cell is not the one in home[i], a row-major number."""
    found = 0
    for i in numba.prange(n):
        g = grid[0]
        found += cell_number(g, home_cell(g, load(pos, i, g))) != home[i]
    away[0] = found
