"""Reordering when the force phase has become slower, as `md.reorder.triggers` has it by the name decayed."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from statistics import median_low
from typing import Literal

import numpy as np

from md import checks
from md.reorder.triggers import RunTrigger, RunView

FIRST = 64  # steps, before anything is known
LEAST, MOST = 16, 2**20
KEPT = 0.8  # of what was learned, from one reorder to the next


class ReorderCostModel:
    """The best number of steps between two reorders, learned while the run goes on.

    The time of a step is taken to grow in proportion to its age, the steps since the reorder before it; the
    line is fitted by least squares to what is known, the past counting ever less. Where it rises by `slope` a
    step, the mean time of a step with a reorder of cost C every k is least at k = sqrt(2 C / slope). What
    takes more than twice as long as is usual counts as twice as long: something else had the machine.

    Args:
        piece: steps that a device is given at once, for shorter pieces take longer and would look worn out; 1
            for a host.

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

    def costs(self, ms: float) -> None:
        """Take note of what a reorder takes, in ms."""
        self._cost = ms

    def timed(self, step: int, steps: int, ms: float) -> None:
        """Take note of how long some steps in a row took.

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
        """Take note of a reorder just before a step, and find the interval anew.

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


LONGEST = 2**24  # window, whose times are kept
LATEST = 5  # reorders, whose median is what one costs


class Decayed(RunTrigger):
    """When the force phase has become slower than it was just after the last reorder.

    Args:
        loss: by which share, above 0; or "auto" for when what was lost in all is what a reorder costs, which
            is the best moment while the loss grows in proportion to the steps. It is foreseen from the
            cycles before (`md.reorder.adaptive`), so the first few are not the best yet.
        window: steps to average over, up to 2^24; "auto" has no use for it.

    Raises:
        TypeError: a loss that is no number nor "auto", or a window that is no integer.
        ValueError: a loss that is not positive and finite, another word, or a window below 1.

    On a device the times become known when the faults are read: a loss is seen up to that many steps late. No
    two runs take the same times: none with it repeats another, and one that is loaded starts with a reorder.
    """

    times = True

    def __init__(self, loss: float | Literal["auto"] = "auto", window: int = 10):
        self.loss = checks.number_or_word(
            "loss of Decayed", loss, ("auto",), above=0, unit="share of the force phase"
        )
        self.window = checks.integer("window of Decayed", window, 1, LONGEST, unit="steps")

    def __repr__(self) -> str:
        return f"Decayed(loss={self.loss!r}, window={self.window})"

    def bind(self, run: RunView) -> Decayed:
        """A copy that watches a run."""
        bound = super().bind(run)
        piece = run.backend.piece_lengths[0] if run.backend.runs_ahead else 1
        bound._foresight = ReorderCostModel(piece) if self.loss == "auto" else None
        bound._next = 0
        bound._begin(0)
        return bound

    def reordered(self, step: int) -> None:
        """Begin anew."""
        super().reordered(step)
        if self._foresight is not None:
            self._foresight.reordered(step)
        else:
            self._begin(step)

    def steps_to_next(self, step: int, most: int) -> int:
        """As many as there are, where nothing is known of them before; else 1."""
        if self._foresight is not None and self._last is not None:
            return max(1, min(most, self._last + self._foresight.interval - step))
        return most if self._run.backend.runs_ahead else 1

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """None: what is fresh has to be timed just after a reorder."""
        return {}

    def _begin(self, step: int) -> None:
        self._next = step  # the first step whose time is not counted yet
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=self.window)

    def _is_due(self, step: int) -> bool:
        if not self._run.backend.runs_ahead:
            self._run.timings.resolve()
        if self._foresight is not None:
            return self._is_foreseen(step)
        for _, steps, together in self._new_times():
            for _ in range(steps):
                (self._first if len(self._first) < self.window else self._latest).append(together / steps)
        if len(self._latest) < self.window:
            return False
        return float(np.mean(self._latest)) > (1 + self.loss) * float(np.median(self._first))

    def _is_foreseen(self, step: int) -> bool:
        costs = self._run.timings.known("reorder")
        if costs:
            self._foresight.costs(median_low(ms for _, ms in costs[-LATEST:]))  # the first may compile
        for at, steps, ms in self._new_times():
            self._foresight.timed(at, steps, ms)
        return step - self._last >= self._foresight.interval

    def _new_times(self) -> list[tuple[int, int, float]]:
        """(first step, steps, ms) of what became known since it was last asked."""
        pieces, steps = self._run.timings.known_pieces, self._run.timings.known("force")
        times = pieces[bisect_left(pieces, (self._next,)) :]
        times += [(at, 1, ms) for at, ms in steps[bisect_left(steps, (self._next,)) :]]
        times.sort()
        if times:
            self._next = times[-1][0] + times[-1][1]
        return times
