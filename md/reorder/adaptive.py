"""The trigger `Decayed`: reorder when the force phase has become slower, or at an interval tuned by cost."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

import numpy as np

from md import checks
from md.particles.capabilities import Capabilities
from md.particles.system import System
from md.reorder.triggers import ActiveTrigger, RunTrigger

FIRST = 64  # steps, before any time is known
LEAST, MOST = 16, 2**20
KEPT = 0.8  # weight of what is known, from one reorder to the next


class ReorderCostModel:
    """A model of the time of a step by the age of the order, which gives the best interval between reorders.

    The time of a step is taken to grow in proportion to its age, the steps since the reorder before it; the
    line is fitted by least squares to the times known, with older ones weighted less at each reorder. Where it
    rises by `slope` a step, the mean time of a step with a reorder of cost C every k is least at
    k = sqrt(2 C / slope). A time of more than twice the mean counts as twice the mean: other work used the
    machine. A device is given steps before the host knows how long earlier ones took, and a loss that is seen
    may be of other work too, so the interval is predicted from the cycles before.

    Args:
        piece: steps that a device is given at once: shorter pieces take longer and would look decayed; 1 for a
            host.

    Attributes:
        interval: steps from a reorder to the next, in whole pieces, 16 and two pieces at least, for the slope
            is seen in no fewer; at most doubled or halved, but for that, from one reorder to the next.
    """

    def __init__(self, piece: int = 1):
        self.interval, self._piece = FIRST, piece
        self._starts: list[int] = []
        self._first: int | None = None
        self._cost = math.nan
        self._sums = [0.0] * 5  # of weight, age, age^2, time, age * time

    def observe_cost(self, ms: float) -> None:
        """Record how long a reorder takes, in ms."""
        self._cost = ms

    def observe_steps(self, step: int, steps: int, ms: float) -> None:
        """Record how long some steps in a row took.

        Ignored where no reorder was before them, and just after the first: that step may compile.

        Args:
            step: the first.
            steps: how many; no reorder among them but before the first.
            ms: of all together.
        """
        place = bisect_right(self._starts, step)
        if not place or step == self._first:
            return
        age, mean = step - self._starts[place - 1] + (steps - 1) / 2, ms / steps
        weight, _, _, time, _ = self._sums
        if weight:
            mean = min(mean, 2 * time / weight)
        terms = 1.0, age, age * age, mean, age * mean
        self._sums = [held + steps * term for held, term in zip(self._sums, terms, strict=True)]

    def reordered(self, step: int) -> None:
        """Record a reorder just before a step, and choose the interval to the next.

        A second reorder before the same step is ignored.
        """
        if self._starts and self._starts[-1] == step:
            return
        self._starts = [*self._starts[-64:], step]
        if self._first is None:
            self._first = step
        weight, age, square, time, product = self._sums
        spread = weight * square - age * age
        if spread > 0 and not math.isnan(self._cost):
            slope = (weight * product - age * time) / spread
            best = math.sqrt(2 * self._cost / slope) if slope > 0 else math.inf
            least, most = self.interval // 2, self.interval * 2
            pieces = round(min(max(best, least, LEAST), most, MOST) / self._piece)
            self.interval = self._piece * max(2, pieces)
            self._sums = [KEPT * held for held in self._sums]


LONGEST = 2**24  # window, whose times are stored
LATEST = 5  # reorders, whose median is the cost of one


@dataclass(frozen=True)
class Decayed(RunTrigger):
    """Reorder when the force phase has become slower than it was just after the last reorder.

    Args:
        loss: by which share, above 0; or "auto" for when what was lost in all is what a reorder costs, which
            is the best moment while the loss grows in proportion to the steps. The interval is predicted from
            the cycles before (`ReorderCostModel`), so the first few are not the best yet.
        window: steps to average over, up to 2^24; "auto" does not use it.

    Raises:
        TypeError: a loss that is no number nor "auto", or a window that is no integer.
        ValueError: a loss that is not positive and finite, another word, or a window below 1.

    On a device the times become known when the faults are read: a loss is seen up to that many steps late. No
    two runs take the same times: none with this trigger repeats another, and one that is loaded starts with a
    reorder.
    """

    loss: float | Literal["auto"] = "auto"
    window: int = 10

    def __post_init__(self):
        loss = checks.number_or_word(
            "loss of Decayed", self.loss, ("auto",), above=0, unit="share of the force phase"
        )
        window = checks.integer("window of Decayed", self.window, 1, LONGEST, unit="steps")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "window", window)

    def build(self, system: System) -> DecayedTrigger | TunedTrigger:
        """Make the trigger for a system."""
        return TunedTrigger(system) if self.loss == "auto" else DecayedTrigger(self, system)


class TimedTrigger(ActiveTrigger):
    """A trigger that reads the times of steps as they become known."""

    capabilities = Capabilities(needs_times=True)

    def __init__(self, system: System):
        super().__init__(system)
        self._next = 0  # the first step whose time is not counted yet

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return nothing: the times of a fresh order have to be measured just after a reorder."""
        return {}

    def _new_times(self) -> list[tuple[int, int, float]]:
        """(first step, steps, ms) of what became known since the last call."""
        timings = self._system.timings
        if not self._system.backend.runs_ahead:
            timings.resolve()
        pieces, steps = timings.known_pieces, timings.known("force")
        times = pieces[bisect_left(pieces, (self._next,)) :]
        times += [(at, 1, ms) for at, ms in steps[bisect_left(steps, (self._next,)) :]]
        times.sort()
        if times:
            self._next = times[-1][0] + times[-1][1]
        return times


class DecayedTrigger(TimedTrigger):
    """The trigger `Decayed` of a given loss: compares the latest steps with the first after a reorder."""

    def __init__(self, config: Decayed, system: System):
        super().__init__(system)
        self._config = config
        self._start(0)

    def reordered(self, step: int) -> None:
        """Forget the times before this step."""
        super().reordered(step)
        self._start(step)

    def steps_to_next(self, step: int, most: int) -> int:
        """Return as many as there may be on a device, where no time of them is known before; else 1."""
        return most if self._system.backend.runs_ahead else 1

    def _start(self, step: int) -> None:
        self._next = step
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=self._config.window)

    def is_due(self, step: int) -> bool:
        """Return whether the latest steps took longer than the first by the loss."""
        for _, steps, together in self._new_times():
            for _ in range(steps):
                fresh = len(self._first) < self._config.window
                (self._first if fresh else self._latest).append(together / steps)
        if len(self._latest) < self._config.window:
            return False
        return float(np.mean(self._latest)) > (1 + float(self._config.loss)) * float(np.median(self._first))


class TunedTrigger(TimedTrigger):
    """The trigger `Decayed("auto")`: reorders at the interval that its cost model predicts to be the best."""

    def __init__(self, system: System):
        super().__init__(system)
        piece = system.backend.piece_lengths[0] if system.backend.runs_ahead else 1
        self._model = ReorderCostModel(piece)

    @property
    def interval(self) -> int:
        """Steps from the last reorder to the next."""
        return self._model.interval

    def reordered(self, step: int) -> None:
        """Choose the interval to the next reorder."""
        super().reordered(step)
        self._model.reordered(step)

    def steps_to_next(self, step: int, most: int) -> int:
        """Return the steps until the next reorder, at least 1."""
        if self._last is None:
            return most if self._system.backend.runs_ahead else 1
        return max(1, min(most, self._last + self._model.interval - step))

    def is_due(self, step: int) -> bool:
        """Return whether the interval has passed; takes new times into the model."""
        times = self._new_times()
        costs = self._system.timings.known("reorder")
        if costs:
            self._model.observe_cost(median_low(ms for _, ms in costs[-LATEST:]))  # the first may compile
        for at, steps, ms in times:
            self._model.observe_steps(at, steps, ms)
        assert self._last is not None
        return step - self._last >= self._model.interval
