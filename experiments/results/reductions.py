"""Statistics of the rounds of a run: what a query or a point takes of its rows and of those of its baseline.

Contract. A statistic takes the rows of a group and those of its baseline, all of one run or gas, and returns
the numbers of its rounds; a gain is the ratio of two samples of one round. A new statistic is one function
with the line `@statistic(...)` above it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfc import checks

HALF = 0.5


class Rows(NamedTuple):
    """Rows of one run or gas, as arrays: a query has thousands of groups of few rows.

    Attributes:
        round: (rows,) numbers of rounds.
        value: (rows,) values.
        along: (rows,) second values; any for statistics that have none.
        number: (rows,) their numbers in the table.
    """

    round: np.ndarray
    value: np.ndarray
    along: np.ndarray
    number: np.ndarray

    def at(self, which: np.ndarray) -> "Rows":
        """Return the rows of a mask, or of places."""
        return Rows(*(column[which] for column in self))


Reduce = Callable[[Rows, Rows], np.ndarray]


@dataclass(frozen=True)
class Statistic:
    """Statistic of a query.

    Args:
        reduce: rows and rows of the baseline -> (rounds,) numbers.
        has_baseline: whether the query needs `over`.
        has_second: whether the query needs `along`.
        is_part: whether its numbers are parts of a whole, between 0 and 1.
    """

    reduce: Reduce
    has_baseline: bool = False
    has_second: bool = False
    is_part: bool = False


STATISTICS: dict[str, Statistic] = {}


def statistic(name: str, **needs: bool) -> Callable[[Reduce], Reduce]:
    """Register a function as a statistic.

    Args:
        name: in claims and charts.
        needs: fields of `Statistic`, such as `has_baseline=True`.
    """

    def register(reduce: Reduce) -> Reduce:
        STATISTICS[name] = Statistic(reduce, **needs)
        return reduce

    return register


def each_round(rows: Rows, over: Rows, take: Callable[[np.ndarray], float] = np.median) -> np.ndarray:
    """Return the median, or another number, of each round."""
    return _of_each(rows.round, rows.value, take)[1]


for _name in ("median", "mean", "min", "max"):
    statistic(_name)(functools.partial(each_round, take=getattr(np, _name)))


@statistic("count")
def count(rows: Rows, over: Rows) -> np.ndarray:
    """Return the number of rows."""
    return np.array([float(len(rows.value))])


@statistic("gain", has_baseline=True)
def gain(rows: Rows, over: Rows) -> np.ndarray:
    """Return the baseline over the rows in each round that has both: the gain, if values are times."""
    return _ratio(over, rows)


@statistic("share", has_baseline=True)
def share(rows: Rows, over: Rows) -> np.ndarray:
    """Return the rows over the baseline in each round that has both: the inverse of the gain."""
    return _ratio(rows, over)


@statistic("gain of sums", has_baseline=True)
def gain_of_sums(rows: Rows, over: Rows) -> np.ndarray:
    """Return the sum of the baseline over that of the rows, over the rounds that both have.

    It is the gain of a process of which each round has another part, such as the phases of a shake: a median
    over rounds would drop the parts with the largest and the smallest gain.
    """
    return _ratio(over, rows, of_sums=True)


@statistic("gain of medians", has_baseline=True)
def gain_of_medians(rows: Rows, over: Rows) -> np.ndarray:
    """Return the median of the baseline over that of the rows, which were not sampled in rounds."""
    return np.array([np.median(over.value) / np.median(rows.value)])


@statistic("part of sums", has_baseline=True, is_part=True)
def part_of_sums(rows: Rows, over: Rows) -> np.ndarray:
    """Return the part that the rows have of the sum of a baseline that contains them, over common rounds."""
    return _ratio(rows, over, of_sums=True)


@statistic("apart", has_baseline=True)
def apart(rows: Rows, over: Rows) -> np.ndarray:
    """Return the factor, at least 1, by which rows and baseline differ: that of the median over rounds."""
    return np.exp(np.abs(np.log(np.median(_ratio(over, rows), keepdims=True))))


@statistic("weighted mean", has_second=True)
def weighted_mean(rows: Rows, over: Rows) -> np.ndarray:
    """Return the mean of the values, weighted by `along`."""
    return np.array([np.average(rows.value, weights=rows.along)])


@statistic("slope", has_second=True)
def slope(rows: Rows, over: Rows) -> np.ndarray:
    """Return the slope of the straight line through the values over `along`, by least squares."""
    if len(np.unique(rows.along)) < 2:
        raise ValueError(
            f"a slope of {len(rows.value)} row(s); allowed: rows of two values of `along` or more"
        )
    return np.array([np.polyfit(rows.along, rows.value, 1)[0]])


@statistic("half", has_second=True)
def half(rows: Rows, over: Rows) -> np.ndarray:
    """Return the first place `along` where the value is half of its first one.

    It is interpolated over the logarithm of the place, because places of decays are spaced so.
    """
    along, values = _of_each(rows.along, rows.value)
    along, left = along.astype(float), values / values[0]
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
    at_half = np.interp(-HALF, -left[k - 1 : k + 1], np.log(along[k - 1 : k + 1]))
    return np.array([np.exp(at_half)])


@statistic("spread", has_second=True)
def spread(rows: Rows, over: Rows) -> np.ndarray:
    """Return the largest over the smallest of the medians of the groups `along`."""
    medians = _of_each(rows.along, rows.value)[1]
    return np.array([medians.max() / medians.min()])


@statistic("over best", has_baseline=True, has_second=True)
def over_best(rows: Rows, over: Rows) -> np.ndarray:
    """Return the rows over the best of the baseline in each round: the group `along` of the lowest median."""
    places, medians = _of_each(over.along, over.value)
    return _ratio(rows, over.at(over.along == places[medians.argmin()]))


@statistic("sums over best", has_baseline=True, has_second=True)
def sums_over_best(rows: Rows, over: Rows) -> np.ndarray:
    """Return the sum of the rows over that of the best of the baseline: the group `along` of the lowest mean.

    It is "over best" of a process of which each round has another part, see "gain of sums".
    """
    places, means = _of_each(over.along, over.value, np.mean)
    return _ratio(rows, over.at(over.along == places[means.argmin()]), of_sums=True)


@statistic("peak over mean", has_baseline=True)
def peak_over_mean(rows: Rows, over: Rows) -> np.ndarray:
    """Return the largest value of the rows over the mean of the baseline."""
    return np.array([rows.value.max() / over.value.mean()])


def _of_each(
    keys: np.ndarray, values: np.ndarray, take: Callable[[np.ndarray], float] = np.median
) -> tuple[np.ndarray, np.ndarray]:
    """Reduce the values of each key: the keys, sorted, and their numbers."""
    names, place = np.unique(keys, return_inverse=True)
    if len(names) == len(keys):  # one value each
        numbers = np.empty(len(names))
        numbers[place] = values
        return names, numbers
    return names, np.array([take(values[place == k]) for k in range(len(names))], float)


def _ratio(above: Rows, below: Rows, of_sums: bool = False) -> np.ndarray:
    """Return the quotient of the medians of each round that both have, or that of the sums of these rounds.

    Raises:
        ValueError: no round has both.
    """
    take = np.sum if of_sums else np.median
    (up, tops), (down, bottoms) = (_of_each(rows.round, rows.value, take) for rows in (above, below))
    _, ups, downs = np.intersect1d(up, down, assume_unique=True, return_indices=True)
    if not len(ups):
        raise checks.refuse_value(
            "rounds", above.round.tolist(), f"rounds of the other rows, {below.round.tolist()}"
        )
    tops, bottoms = tops[ups], bottoms[downs]
    return np.array([tops.sum() / bottoms.sum()]) if of_sums else tops / bottoms
