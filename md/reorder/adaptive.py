"""Trigger `Decayed`: reorder when the force phase has become slower, or at an interval tuned by its cost."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

import numpy as np

from md import checks
from md.particles.capabilities import TriggerCapabilities
from md.particles.system import System
from md.reorder.base import ActiveTrigger, ChosenInterval, RunTrigger

FIRST = 64  # interval in steps, before any time is known
LEAST, MOST = 2, 2**20  # pieces, steps
SHORT = 16  # steps; an interval below has to be proven
PROVEN = 2.0  # standard errors of the wear that are subtracted from it where the interval is short
KEPT, MEMORY = 0.8, 32  # weight of earlier times after so many steps, or at a reorder that comes later


class ReorderCostModel:
    """Model of the time of a step by the age of the order, which predicts the best interval between reorders.

    The time of a step is assumed to grow linearly with its age, the number of steps since the last reorder.
    The line is fitted by least squares to the known times, with weights of earlier times reduced at each
    reorder. If the time rises by `wear` a step, the mean time of a step with a reorder of cost C every k
    steps is least at k = sqrt(2 C / wear). A time of more than twice the mean counts as twice the mean,
    because other work used the machine. A device gets steps before the times of earlier ones are known,
    and a measured loss may be caused by other work too, so the interval is predicted from the cycles before.

    Short intervals cost most where they are wrong, and noise looks like wear. So an interval below 16 is
    chosen only as far as the wear is proven: two standard errors are subtracted from it first. None is tried
    without that. Earlier times count less by the step there, not by the reorder, because a few short cycles
    do not tell the wear from noise.

    Args:
        piece: steps that a device gets at once; shorter pieces take longer a step and would appear decayed. 1
            for a host.

    Attributes:
        chosen: the interval from the last reorder to the next, and the times from which it was chosen. It is
            in whole pieces; at least two pieces, which a slope needs (2 steps on a host, 32 on a device with
            pieces of 16: no piece of another length is recorded); at most doubled or halved from one reorder
            to the next.
    """

    def __init__(self, piece: int = 1):
        self.chosen, self._piece = ChosenInterval(FIRST), piece
        self._starts: list[int] = []
        self._first: int | None = None
        self._cost = math.nan
        self._sums = [0.0] * 6  # of weight, age, age^2, time, age * time, time^2

    @property
    def interval(self) -> int:
        """Steps from the last reorder to the next."""
        return self.chosen.interval

    def observe_cost(self, ms: float) -> None:
        """Record the time of a reorder, in ms."""
        self._cost = ms

    def observe_steps(self, step: int, steps: int, ms: float) -> None:
        """Record the time of consecutive steps.

        Ignored before the first reorder, and for the step after it, which may compile kernels.

        Args:
            step: number of the first step.
            steps: number of steps, without a reorder between them.
            ms: time of all together.
        """
        place = bisect_right(self._starts, step)
        if not place or step == self._first:
            return
        age, mean = step - self._starts[place - 1] + (steps - 1) / 2, ms / steps
        weight, _, _, time, *_ = self._sums
        if weight:
            mean = min(mean, 2 * time / weight)
        terms = 1.0, age, age * age, mean, age * mean, mean * mean
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
        weight, age, square, *_ = self._sums
        if weight * square > age * age and not math.isnan(self._cost):
            kept = KEPT ** min(1.0, self.interval / MEMORY)
            self._choose()
            self._sums = [kept * held for held in self._sums]

    def _choose(self) -> None:
        """Fit the wear, and choose the interval."""
        weight, age, square, time, product, time_square = self._sums
        spread, common = weight * square - age * age, weight * product - age * time
        wear = common / spread
        left = max(0.0, weight * time_square - time * time - wear * common)  # of the times, beside the line
        error = math.sqrt(self._piece * left / (spread * max(self._piece, weight - 2 * self._piece)))
        best = self._best(wear)
        if best < SHORT:
            best = min(SHORT, self._best(wear - PROVEN * error))
        least, most = self.interval // 2, self.interval * 2
        pieces = round(min(max(best, least), most, MOST) / self._piece)
        interval = self._piece * max(LEAST, pieces)
        self.chosen = ChosenInterval(interval, self._cost, wear, error, self.chosen.measured + 1)

    def _best(self, wear: float) -> float:
        """Return the best interval for a wear, in steps; infinite without one."""
        return math.sqrt(2 * self._cost / wear) if wear > 0 else math.inf


LONGEST = 2**24  # largest window; its times are stored
LATEST = 5  # reorders over which the median of the cost is taken


@dataclass(frozen=True)
class Decayed(RunTrigger):
    """Reorder when the force phase has become slower than it was just after the last reorder.

    Args:
        loss: relative increase of the time, above 0; or "auto" to reorder when the total loss equals the cost
            of a reorder, which is optimal while the loss grows linearly with the steps. The interval is
            predicted from the cycles before (`ReorderCostModel`), so the first few are not optimal yet. It is
            at least 2 steps, on a device 32. `Simulation.reordering.trigger.chosen` says which one was
            chosen, and from which times (`ChosenInterval`).
        window: steps to average over, up to 2^24; not used by "auto".

    Raises:
        TypeError: a loss that is no number nor "auto", or a window that is no integer.
        ValueError: a loss that is not positive and finite, another word, or a window below 1.

    On a device times become known when faults are polled, so a loss is detected up to that many steps late.
    Times differ from run to run, so a run with this trigger is not repeatable, and a loaded run starts with a
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
    """Base of the triggers that read the times of steps as they become known."""

    capabilities = TriggerCapabilities(needs_times=True)

    def __init__(self, system: System):
        super().__init__(system)
        self._next = 0  # the first step with a time that is not used yet

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return no state, because the times of a new order have to be measured just after a reorder."""
        return {}

    def _new_times(self) -> list[tuple[int, int, float]]:
        """Return (first step, steps, ms) of the times that became known since the last call."""
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
    """Active trigger `Decayed` of a given loss: compares the latest steps with the first after a reorder."""

    def __init__(self, config: Decayed, system: System):
        super().__init__(system)
        self._config = config
        self._start(0)

    def reordered(self, step: int) -> None:
        """Discard the step times measured before a reorder."""
        super().reordered(step)
        self._start(step)

    def steps_to_next(self, step: int, most: int) -> int:
        """Return `most` on a device, which reports no times of these steps before the next poll; else 1."""
        return most if self._system.backend.runs_ahead else 1

    def _start(self, step: int) -> None:
        self._next = step
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=self._config.window)

    def is_due(self, step: int) -> bool:
        """Return whether the latest steps were slower than the first ones by more than the loss."""
        for _, steps, together in self._new_times():
            for _ in range(steps):
                fresh = len(self._first) < self._config.window
                (self._first if fresh else self._latest).append(together / steps)
        if len(self._latest) < self._config.window:
            return False
        return float(np.mean(self._latest)) > (1 + float(self._config.loss)) * float(np.median(self._first))


class TunedTrigger(TimedTrigger):
    """Active trigger `Decayed("auto")`: reorders at the interval that its cost model predicts to be best."""

    def __init__(self, system: System):
        super().__init__(system)
        piece = system.backend.piece_lengths[0] if system.backend.runs_ahead else 1
        self._model = ReorderCostModel(piece)

    @property
    def chosen(self) -> ChosenInterval:
        """Interval from the last reorder to the next, and the times from which it was chosen."""
        return self._model.chosen

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
        """Add new times to the model, and return whether the interval has passed."""
        times = self._new_times()
        costs = self._system.timings.known("reorder")
        if costs:
            self._model.observe_cost(median_low(ms for _, ms in costs[-LATEST:]))  # the first one may compile
        for at, steps, ms in times:
            self._model.observe_steps(at, steps, ms)
        assert self._last is not None
        return step - self._last >= self._model.interval
