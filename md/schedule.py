"""When to reorder: a boolean function of the step, which may look at the run. A new one is one line here.

Contract. A schedule is called before every step. A `Watching` one is bound to the run first, and told of
every reorder. What it goes by beside the step is its `memory`, which a checkpoint holds.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

import numba
import numpy as np

from md.backend import Backend, Timings
from md.backend.jit import kernel
from md.backend.prelude import cell_number, home_cell, load
from md.grid import Grid
from md.state import Particles


class Schedule(Protocol):
    """Anything that can say, at each step, whether to reorder."""

    def __call__(self, step: int) -> bool:
        """Whether to reorder before this step, counted from 0.

        A function of the step alone, unless it is a `Watching` one: steps may be asked for ahead, and twice.
        """


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
        times: whether the phases must be timed for it.
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
        ValueError: an interval below 1 or not an integer.
    """

    interval: int

    def __post_init__(self):
        _require_count(f"Every({self.interval!r})", self.interval)

    def __call__(self, step: int) -> bool:
        """Whether the step is a multiple of the interval."""
        return step % self.interval == 0


class Moved(Watching):
    """When a share of the particles has left the cell that it was sorted by.

    Args:
        fraction: of the particles, 0 < fraction <= 1.
        interval: steps from one look to the next; a look is a pass over the positions, and on a device the
            host waits for it.

    Raises:
        ValueError: a fraction outside its range, or an interval below 1.
    """

    def __init__(self, fraction: float, interval: int = 10):
        if not 0 < fraction <= 1:
            raise ValueError(f"Moved({fraction!r}); allowed: 0 < fraction <= 1, of the particles")
        _require_count(f"Moved(interval={interval!r})", interval)
        self.fraction, self.interval = fraction, interval

    def __repr__(self) -> str:
        return f"Moved(fraction={self.fraction}, interval={self.interval})"

    def bind(self, run: Run) -> Moved:
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
        """As `Watching.remember`."""
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


class Decayed(Watching):
    """When the force phase has become slower than it was just after the last reorder.

    Args:
        loss: by which share, above 0; or "auto" for when what was lost in all is what a reorder costs, which
            is the best moment while the loss grows in proportion to the steps.
        window: steps to average over.

    Raises:
        ValueError: a loss that is not positive and finite nor "auto", or a window below 1.

    On a device the times become known when the faults are read, so it fires up to that many steps late. No
    two runs take the same times: none with it repeats another, and one that is loaded starts with a reorder.
    """

    times = True

    def __init__(self, loss: float | Literal["auto"] = "auto", window: int = 10):
        if loss != "auto" and not (isinstance(loss, (int, float)) and 0 < loss < np.inf):
            raise ValueError(f"Decayed({loss!r}); allowed: a positive share of the force phase, or 'auto'")
        _require_count(f"Decayed(window={window!r})", window)
        self.loss, self.window = loss, window

    def __repr__(self) -> str:
        return f"Decayed(loss={self.loss!r}, window={self.window})"

    def bind(self, run: Run) -> Decayed:
        """A copy that watches a run."""
        bound = super().bind(run)
        bound._cost = np.inf
        bound._begin(0)
        return bound

    def reordered(self, step: int) -> None:
        """Begin anew."""
        super().reordered(step)
        self._begin(step)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """None: what is fresh has to be timed just after a reorder."""
        return {}

    def _begin(self, step: int) -> None:
        self._next = step  # the first step whose time is not counted yet
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=self.window)
        self._excess = 0.0

    def _is_due(self, step: int) -> bool:
        timings = self._run.timings
        if not self._run.backend.runs_ahead:
            timings.resolve()
        costs = timings.known("reorder")
        if costs:
            self._cost = costs[-1][1]
        times = timings.known("force")
        for at, ms in times[bisect_left(times, (self._next,)) :]:
            self._next = at + 1
            if len(self._first) < self.window:
                self._first.append(ms)
                self._fresh = float(np.median(self._first))
            else:
                self._latest.append(ms)
                self._excess += ms - self._fresh
        if len(self._latest) < self.window:
            return False
        if self.loss == "auto":
            return self._excess > self._cost
        return float(np.mean(self._latest)) > (1 + self.loss) * self._fresh


SCHEDULES: dict[str, type[Schedule]] = {
    "never": Never,
    "every": Every,
    "moved": Moved,
    "decayed": Decayed,
}


def _require_count(given: str, steps) -> None:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"{given}; allowed: an integer of at least 1 step")


@kernel(parallel=True)
def stray(n, pos, home, grid, away):
    """away[0] = number of particles whose cell is not the one in home[i], a row-major number."""
    found = 0
    for i in numba.prange(n):
        g = grid[0]
        found += cell_number(g, home_cell(g, load(pos, i, g))) != home[i]
    away[0] = found
