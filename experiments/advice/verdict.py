"""What times of candidate orders say: reorder, do not, or cannot tell.

A copy's time is its median over rounds, an order's the mean of its copies' logarithms. The spread between
copies of the same order, pooled over all orders, is the error of a copy: it holds what memory of its own and
other work change. A gain is over the order of the file, with a 95 % interval by Student's t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from experiments.advice.candidates import GIVEN, NEVER_ADVISED

REORDER, DO_NOT, CANNOT_TELL = "REORDER", "DO NOT REORDER", "CANNOT TELL"
SMALLEST_GAIN = 1.03


class Gain(NamedTuple):
    """Gain with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


class Verdict(NamedTuple):
    """Answer to whether items should be reordered.

    Attributes:
        says: REORDER, DO_NOT or CANNOT_TELL.
        best: name of the fastest candidate.
        gains: order -> gain over the order of the file; the fastest first.
        times_ms: order -> time of one use.
        floor: factor by which two copies of one order differ in 1 of 20 cases.
    """

    says: str
    best: str
    gains: dict[str, Gain]
    times_ms: dict[str, float]
    floor: float

    @property
    def equal(self) -> list[str]:
        """Return the advisable orders that differ from the best by less than the error of a gain."""
        best = self.gains[self.best]
        reach = best.high / best.value
        return [name for name, gain in self.gains.items()
                if name not in (self.best, *NEVER_ADVISED) and gain.value * reach >= best.value]  # fmt: skip


def judge(table: pd.DataFrame, smallest_gain: float = SMALLEST_GAIN) -> Verdict:
    """Judge times of orders.

    Args:
        table: rows with `ordering`, `copy` and `time_ms`, two copies of each order or more; with the order
            of the file and a candidate at least.
        smallest_gain: that is worth a reorder, 1 or more.

    Raises:
        ValueError: no row of the order of the file, or of a candidate.
    """
    logs = np.log(table.groupby(["ordering", "copy"])["time_ms"].median()).unstack("copy")
    advisable = [name for name in logs.index if name not in NEVER_ADVISED]
    if GIVEN not in logs.index or not advisable:
        raise ValueError(f"orders {', '.join(logs.index)}; allowed: {GIVEN} and a candidate or more")
    copies = logs.shape[1]
    freedom = len(logs) * (copies - 1)
    variance = float(logs.var(axis=1, ddof=1).mean())
    t = float(scipy.stats.t.ppf(0.975, freedom))
    reach = math.exp(t * math.sqrt(2 * variance / copies))
    means = logs.mean(axis=1)
    gains = {}
    for name in means.sort_values().index:
        value = math.exp(means[GIVEN] - means[name])
        gains[str(name)] = Gain(value, value / reach, value * reach) if name != GIVEN else Gain(1.0, 1.0, 1.0)
    best = min(advisable, key=lambda name: means[name])
    gain = gains[best]
    says = REORDER if gain.low > smallest_gain else DO_NOT if gain.high < smallest_gain else CANNOT_TELL
    times = {str(name): math.exp(value) for name, value in means.items()}
    return Verdict(says, best, gains, times, math.exp(t * math.sqrt(2 * variance)))
