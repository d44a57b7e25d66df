"""Statistics of a query: from the rows of one run, or of one gas, to a number for each of its rounds.

Contract. A statistic takes the rows of a query and those of its baseline, all of one run or gas, and returns
the numbers of its rounds; a statistic that is not taken in rounds returns one number. Rows have the columns
`round`, `value` and, where the query has it, `along`. Runs and gases are combined in `queries`. A new
statistic is one function here with the line `@statistic(...)` above it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfc import checks

HALF = 0.5
Reduce = Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]


@dataclass(frozen=True)
class Statistic:
    """Statistic of a query.

    Args:
        reduce: rows and rows of the baseline -> (rounds,) numbers.
        has_baseline: whether the query needs `over`.
        has_second: whether the query needs `along`.
    """

    reduce: Reduce
    has_baseline: bool = False
    has_second: bool = False


STATISTICS: dict[str, Statistic] = {}


def statistic(name: str, has_baseline: bool = False, has_second: bool = False) -> Callable[[Reduce], Reduce]:
    """Register a function as a statistic.

    Args:
        name: in `results/verdicts.toml`.
        has_baseline: whether the query needs `over`.
        has_second: whether the query needs `along`.
    """

    def register(reduce: Reduce) -> Reduce:
        STATISTICS[name] = Statistic(reduce, has_baseline, has_second)
        return reduce

    return register


@statistic("median")
def median(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the median of each round."""
    return rows.groupby("round")["value"].median().to_numpy()


@statistic("mean")
def mean(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the mean of each round."""
    return rows.groupby("round")["value"].mean().to_numpy()


@statistic("min")
def smallest(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the smallest value of each round."""
    return rows.groupby("round")["value"].min().to_numpy()


@statistic("max")
def largest(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the largest value of each round."""
    return rows.groupby("round")["value"].max().to_numpy()


@statistic("count")
def count(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the number of rows."""
    return np.array([float(len(rows))])


@statistic("gain", has_baseline=True)
def gain(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the baseline over the rows in each round that has both: the gain, if values are times."""
    return _ratio(baseline=over, others=rows)


@statistic("share", has_baseline=True)
def share(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the rows over the baseline in each round that has both: the inverse of the gain."""
    return _ratio(baseline=rows, others=over)


@statistic("weighted mean", has_second=True)
def weighted_mean(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the mean of the values, weighted by `along`."""
    return np.array([np.average(rows["value"], weights=rows["along"])])


@statistic("slope", has_second=True)
def slope(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the slope of the straight line through the values over `along`, by least squares."""
    if rows["along"].nunique() < 2:
        raise ValueError(f"a slope of {len(rows)} row(s); allowed: rows of two values of `along` or more")
    return np.array([np.polyfit(rows["along"], rows["value"], 1)[0]])


@statistic("half", has_second=True)
def half(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the first place `along` where the value is half of its first one.

    It is interpolated over the logarithm of the place, because places of decays are spaced so.
    """
    curve = rows.groupby("along")["value"].median()
    left, along = curve.to_numpy() / curve.iloc[0], curve.index.to_numpy(float)
    below = np.flatnonzero(left < HALF)
    if not len(below):
        raise ValueError(
            f"{left[-1]:.2f} of the first value is left at the last place, {along[-1]:g}; allowed: a curve "
            "that falls below a half; take longer rows, or `share` at a place"
        )
    k = int(below[0])
    if along[k - 1] <= 0:
        raise ValueError(
            f"half of the first value is lost before place {along[k]:g}, the first above 0; allowed: a curve "
            "that falls below a half later; take rows of earlier places"
        )
    place = np.interp(-HALF, -left[k - 1 : k + 1], np.log(along[k - 1 : k + 1]))
    return np.array([np.exp(place)])


@statistic("spread", has_second=True)
def spread(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the largest over the smallest of the medians of the groups `along`."""
    medians = rows.groupby("along")["value"].median()
    return np.array([medians.max() / medians.min()])


@statistic("over best", has_baseline=True, has_second=True)
def over_best(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the rows over the best of the baseline in each round: the group `along` of the lowest median."""
    best = over.groupby("along")["value"].median().idxmin()
    return _ratio(baseline=rows, others=over[over["along"] == best])


@statistic("peak over mean", has_baseline=True)
def peak_over_mean(rows: pd.DataFrame, over: pd.DataFrame) -> np.ndarray:
    """Return the largest value of the rows over the mean of the baseline."""
    return np.array([rows["value"].max() / over["value"].mean()])


def _ratio(baseline: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """Return baseline over others in each round that has both.

    Raises:
        ValueError: no round has both.
    """
    above, below = (rows.groupby("round", sort=False)["value"].median() for rows in (baseline, others))
    both = below.index.intersection(above.index, sort=False)
    if both.empty:
        raise checks.refuse_value(
            "rounds", baseline["round"].tolist(), f"rounds of the other rows, {others['round'].tolist()}"
        )
    return (above[both] / below[both]).to_numpy()
