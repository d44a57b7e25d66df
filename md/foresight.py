"""When the next reorder should come, foreseen from the times of steps in the cycles before.

A device is given steps before the host knows how long earlier ones took, so who waits until a loss is seen is
late by as many; and a host that has other work too sees losses that are none. What some cycles from reorder
to reorder show together holds for the next, though.
"""

from __future__ import annotations

import math
from bisect import bisect_right

FIRST = 64  # steps, before anything is known
LEAST, MOST = 16, 2**20
KEPT = 0.8  # of what was learned, from one reorder to the next


class Foresight:
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
