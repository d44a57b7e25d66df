"""What times of candidate orders say: reorder, do not, or cannot tell.

In each round all orders are timed in the same memory, the order of the file twice. A gain is the median over
rounds of the ratio of its mean time (of logarithms) to that of an order. An interval is that of a median, by
Student's t. The variance of a ratio is that of what all candidates share, which is the error of the order of
the file, and of what they do not; the freedom is that of their sum (Satterthwaite, Biometrics Bulletin 2,
110, 1946). A candidate with ratios that spread more has its own variance. Scales of errors are the quantile
of their sizes that is one standard deviation of normal ones, so that a few samples beside other work do not
decide. By Bonferroni's rule the intervals cover the gains of all candidates at all looks at once in 95 % of
cases: the best of several is chosen, and there are more rounds, of the orders that may still be the best,
while the times do not tell. Simulated, verdicts are wrong in up to 5 %; where one order has ten times the
errors of the others, an interval is missed in 8 %.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from experiments.advice.candidates import AGAIN, GIVEN, NEVER_ADVISED

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
        best: name of the fastest candidate, of those that were timed in the most rounds.
        gains: order -> gain over the order of the file; the fastest first.
        times_ms: order -> time of one use.
        floor: factor by which a gain in one round errs in 1 of 20 cases.
        equal: advisable orders, timed in as many rounds, that the times do not tell from the best: the
            interval of their ratio, over the rounds, holds 1.
    """

    says: str
    best: str
    gains: dict[str, Gain]
    times_ms: dict[str, float]
    floor: float
    equal: tuple[str, ...] = ()


def judge(table: pd.DataFrame, smallest_gain: float = SMALLEST_GAIN) -> Verdict:
    """Judge times of orders.

    Args:
        table: rows with `ordering`, `round` and `time_ms`, and `run` if there are several, `looks` at them
            that were planned if not `LOOKS`; two rounds or more, with the order of the file and a candidate
            at least. An order may be missing in rounds.
        smallest_gain: that is worth a reorder, 1 or more.

    Raises:
        ValueError: no row of the order of the file, or of a candidate, or one round.
    """
    rounds = [name for name in ("run", "round") if name in table]
    logs = np.log(table.groupby(["ordering", *rounds])["time_ms"].median()).unstack(rounds)
    if GIVEN not in logs.index or set(logs.index) <= {*NEVER_ADVISED}:
        raise ValueError(f"orders {', '.join(logs.index)}; allowed: {GIVEN} and a candidate or more")
    logs = logs.loc[:, logs.loc[GIVEN].notna()]
    logs = logs[logs.count(axis=1) > 1]
    advisable = [name for name in logs.index if name not in NEVER_ADVISED]
    if not advisable:
        raise ValueError("one round; allowed: two or more: their spread is the error of a time")
    runs = logs.columns.get_level_values("run").nunique() if "run" in rounds else 1
    looks = runs * (int(table["looks"].max()) if "looks" in table else LOOKS)
    base = logs.loc[[name for name in (GIVEN, AGAIN) if name in logs.index]].mean(axis=0)
    ratios = base - logs  # logarithms of gains
    means, counts = ratios.median(axis=1), ratios.count(axis=1)
    off = ratios.sub(means, axis=0)
    variance, freedom, own = _variance(ratios.loc[advisable].to_numpy())
    t = float(scipy.stats.t.ppf(1 - WRONG / (2 * looks * len(advisable)), freedom))
    gains = {}
    for name in means.sort_values(ascending=False).index:
        deviation = math.sqrt(max(variance, _scale(off.loc[name].to_numpy(), counts[name] - 1) ** 2))
        reach = math.exp(t * OF_MEDIAN * deviation / math.sqrt(counts[name]))
        value = math.exp(means[name])
        gains[str(name)] = Gain(value, value / reach, value * reach) if name != GIVEN else Gain(1.0, 1.0, 1.0)
    timed = [name for name in advisable if counts[name] == counts[advisable].max()]  # to the end
    best = max(timed, key=lambda name: means[name])
    gain = gains[best]
    says = REORDER if gain.low > smallest_gain else DO_NOT if gain.high < smallest_gain else CANNOT_TELL
    given_ms = math.exp(float(base.median()))
    times = {name: given_ms / one.value for name, one in gains.items()}
    floor = math.exp(float(scipy.stats.t.ppf(1 - WRONG / 2, freedom)) * math.sqrt(variance))
    equal = []
    for name in sorted(timed, key=lambda name: -means[name]):
        apart = (ratios.loc[best] - ratios.loc[name]).dropna()  # the error of the order of the file cancels
        apart_by = float(apart.median())
        deviation = max(_scale((apart - apart_by).to_numpy(), len(apart) - 1), math.sqrt(2) * own)
        if name != best and apart_by <= t * OF_MEDIAN * deviation / math.sqrt(len(apart)):
            equal.append(str(name))
    return Verdict(says, best, gains, times, floor, tuple(equal))


def _variance(ratios: np.ndarray) -> tuple[float, float, float]:
    """Return the variance of a logarithm of a gain in one round, its freedom, and the error of a candidate.

    The last is the standard deviation of what candidates do not share; 0 for one alone.

    Args:
        ratios: (candidates, rounds) logarithms of gains; NaN where there is none.
    """
    off = ratios[:, ~np.isnan(ratios).all(axis=0)]
    common = ~np.isnan(off).any(axis=0)  # each median is over the same rounds
    off = off - np.nanmedian(off[:, common] if common.sum() > 1 else off, axis=1, keepdims=True)
    candidates, rounds = off.shape
    shared = np.nanmedian(off, axis=0)
    shared -= np.median(shared)
    of_shared = _scale(shared, rounds - 1) ** 2
    if candidates == 1:
        return of_shared, rounds - 1, 0.0
    own = (off - shared)[:, (~np.isnan(off)).sum(axis=0) > 1]
    own -= np.nanmedian(own, axis=1, keepdims=True)
    freedom = max(1, int((~np.isnan(own)).sum()) - own.shape[1] - candidates + 1)
    deviation = _scale(own, freedom)
    of_own = (1 - 1 / candidates) * deviation**2  # of_shared has the rest
    variance = of_shared + of_own
    if not variance:
        return 0.0, rounds - 1, 0.0
    return variance, variance**2 / (of_shared**2 / (rounds - 1) + of_own**2 / freedom), deviation


def _scale(errors: np.ndarray, freedom: int) -> float:
    """Return the standard deviation of errors, of which a few may be large."""
    errors = errors[~np.isnan(errors)]
    return float(np.quantile(np.abs(errors), ONE_SIGMA)) * math.sqrt(errors.size / freedom)
