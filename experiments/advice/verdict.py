"""What times of candidate orders say: reorder, do not, or cannot tell.

In each round all orders are timed in the same memory. A gain is the median over rounds of the ratio to the
time in the order of the file. The logarithm of a time is that of its order plus that of its round plus an
error; the scale of the errors of all orders and rounds is the quantile of their sizes that is one standard
deviation of normal ones, so that a few samples beside other work do not decide. An interval is that of a
median, by Student's t. By Bonferroni's rule it covers the gains of all candidates at all looks at once in
95 % of cases, if all orders have equal errors: the best of several is chosen, and there are more rounds
while the times do not tell. Where the order of the file has errors three times as large as the others, an
answer is wrong in up to 28 % of cases at the smallest gain itself.
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
WRONG = 0.05  # of all answers, by chance
LOOKS = 4  # at the times of a run, at most
ONE_SIGMA = 0.6827  # of normal errors are within a standard deviation
OF_MEDIAN = math.sqrt(math.pi / 2)  # standard error of a median over that of a mean


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
        floor: factor by which two times of one order in the same memory differ in 1 of 20 cases.
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
        table: rows with `ordering`, `round` and `time_ms`, and `run` if there are several; two rounds or
            more, with the order of the file and a candidate at least.
        smallest_gain: that is worth a reorder, 1 or more.

    Raises:
        ValueError: no row of the order of the file, or of a candidate, or one round.
    """
    rounds = [name for name in ("run", "round") if name in table]
    logs = np.log(table.groupby(["ordering", *rounds])["time_ms"].median()).unstack(rounds).dropna(axis=1)
    advisable = [name for name in logs.index if name not in NEVER_ADVISED]
    if GIVEN not in logs.index or not advisable:
        raise ValueError(f"orders {', '.join(logs.index)}; allowed: {GIVEN} and a candidate or more")
    count = logs.shape[1]
    if count < 2:
        raise ValueError("one round; allowed: two or more: their spread is the error of a time")
    over = logs - logs.loc[GIVEN]  # of ratios to the order of the file
    means = over.median(axis=1)
    freedom = (len(logs) - 1) * (count - 1)
    errors = logs - logs.median(axis=0)
    errors = errors.sub(errors.median(axis=1), axis=0).abs()
    scale = float(np.quantile(errors, ONE_SIGMA)) * math.sqrt(errors.size / freedom)
    deviation = math.sqrt(2) * scale  # of a ratio in one round
    t = float(scipy.stats.t.ppf(1 - WRONG / (2 * LOOKS * len(advisable)), freedom))
    reach = math.exp(t * OF_MEDIAN * deviation / math.sqrt(count))
    gains = {}
    for name in means.sort_values().index:
        value = math.exp(-means[name])
        gains[str(name)] = Gain(value, value / reach, value * reach) if name != GIVEN else Gain(1.0, 1.0, 1.0)
    best = min(advisable, key=lambda name: means[name])
    gain = gains[best]
    says = REORDER if gain.low > smallest_gain else DO_NOT if gain.high < smallest_gain else CANNOT_TELL
    given_ms = math.exp(float(logs.loc[GIVEN].median()))
    times = {str(name): given_ms * math.exp(value) for name, value in means.items()}
    floor = math.exp(float(scipy.stats.t.ppf(1 - WRONG / 2, freedom)) * deviation)
    return Verdict(says, best, gains, times, floor)
