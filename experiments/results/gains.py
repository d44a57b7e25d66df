"""The engine of all results: rows of one or many runs -> selection -> value or gain with its interval.

Contract. A statistic takes the rows of a group and those of its baseline, all of one run or gas, and returns
the numbers of its rounds. A gain is the ratio of two samples of one round. The number of a run is the median
over its rounds, because rounds of one process are not independent. Rows belong to runs (each a gas and a
process of its own) or, if they are predictions or numbers of several gases, to gases; another column may hold
values that are independent of each other, such as the scenes of one run. Of several runs the estimate is the
mean of the logarithms with Student's t interval (95 %); of parts of a whole, which cannot exceed 1, that of
log(x / (1 - x)); of several gases or scenes, and of runs with numbers not all above 0, the median and the
range. One run or gas gives its median and the range of its rounds, and is called so.

`estimates` serves charts, claims and sentences. `over_runs` and `gains` give the same estimates as the
columns of a table. No other module computes a gain, an interval or a noise floor. A new statistic is one
function here with the line `@statistic(...)` above it.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy  # its `special` is loaded when first used

from experiments.results import reliability
from experiments.results.baselines import is_again, original
from experiments.results.estimate import CONFIDENCE, Estimate
from experiments.results.selection import BROKEN, RUN, Runs
from experiments.results.selection import windows_averaged as windows_averaged
from experiments.results.selection import with_rounds as with_rounds
from experiments.results.tables import ONE_RUN, names_of, table_of
from experiments.results.tables import bounds as bounds
from experiments.results.tables import caption as caption
from experiments.results.tables import named as named
from sfc import checks

HALF = 0.5
NO_DIFFERENCE, FASTER, SLOWER = "no difference", "faster", "slower"
LABELS = ("name", *reliability.NAMES)  # columns that name the cases compared
PARTS = ("phase", "part", "what", "memory", "bytes_per_point")  # columns that tell rows of a case apart


@dataclass(frozen=True)
class Rows:
    """Rows of one run or gas, as arrays: a query has thousands of groups of few rows.

    Args:
        round: (rows,) numbers of rounds.
        value: (rows,) values.
        along: (rows,) second values; None if there are none.
        number: (rows,) their numbers in the table.
    """

    round: np.ndarray
    value: np.ndarray
    along: np.ndarray | None
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.value)

    def at(self, which: np.ndarray) -> "Rows":
        """Return the rows of a mask, or of places."""
        along = None if self.along is None else self.along[which]
        return Rows(self.round[which], self.value[which], along, self.number[which])


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
    return np.array([float(len(rows))])


@statistic("gain", has_baseline=True)
def gain(rows: Rows, over: Rows) -> np.ndarray:
    """Return the baseline over the rows in each round that has both: the gain, if values are times."""
    return _ratio(baseline=over, others=rows)


@statistic("share", has_baseline=True)
def share(rows: Rows, over: Rows) -> np.ndarray:
    """Return the rows over the baseline in each round that has both: the inverse of the gain."""
    return _ratio(baseline=rows, others=over)


@statistic("gain of sums", has_baseline=True)
def gain_of_sums(rows: Rows, over: Rows) -> np.ndarray:
    """Return the sum of the baseline over that of the rows, over the rounds that both have.

    It is the gain of a process of which each round has another part, such as the phases of a shake: a median
    over rounds would drop the parts with the largest and the smallest gain.
    """
    return _ratio_of_sums(baseline=over, others=rows)


@statistic("gain of medians", has_baseline=True)
def gain_of_medians(rows: Rows, over: Rows) -> np.ndarray:
    """Return the median of the baseline over that of the rows, which were not sampled in rounds."""
    return np.array([np.median(over.value) / np.median(rows.value)])


@statistic("part of sums", has_baseline=True, is_part=True)
def part_of_sums(rows: Rows, over: Rows) -> np.ndarray:
    """Return the part that the rows have of the sum of a baseline that contains them, over common rounds."""
    return _ratio_of_sums(baseline=rows, others=over)


@statistic("apart", has_baseline=True)
def apart(rows: Rows, over: Rows) -> np.ndarray:
    """Return the factor, at least 1, by which rows and baseline differ: that of the median over rounds."""
    return np.exp(np.abs(np.log(np.median(_ratio(baseline=over, others=rows), keepdims=True))))


@statistic("weighted mean", has_second=True)
def weighted_mean(rows: Rows, over: Rows) -> np.ndarray:
    """Return the mean of the values, weighted by `along`."""
    return np.array([np.average(rows.value, weights=rows.along)])


@statistic("slope", has_second=True)
def slope(rows: Rows, over: Rows) -> np.ndarray:
    """Return the slope of the straight line through the values over `along`, by least squares."""
    if len(np.unique(_along(rows))) < 2:
        raise ValueError(f"a slope of {len(rows)} row(s); allowed: rows of two values of `along` or more")
    return np.array([np.polyfit(_along(rows), rows.value, 1)[0]])


@statistic("half", has_second=True)
def half(rows: Rows, over: Rows) -> np.ndarray:
    """Return the first place `along` where the value is half of its first one.

    It is interpolated over the logarithm of the place, because places of decays are spaced so.
    """
    along, values = _of_each(_along(rows), rows.value)
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
    medians = _of_each(_along(rows), rows.value)[1]
    return np.array([medians.max() / medians.min()])


@statistic("over best", has_baseline=True, has_second=True)
def over_best(rows: Rows, over: Rows) -> np.ndarray:
    """Return the rows over the best of the baseline in each round: the group `along` of the lowest median."""
    places, medians = _of_each(_along(over), over.value)
    return _ratio(baseline=rows, others=over.at(_along(over) == places[medians.argmin()]))


@statistic("sums over best", has_baseline=True, has_second=True)
def sums_over_best(rows: Rows, over: Rows) -> np.ndarray:
    """Return the sum of the rows over that of the best of the baseline: the group `along` of the lowest mean.

    It is "over best" of a process of which each round has another part, see "gain of sums".
    """
    places, means = _of_each(_along(over), over.value, np.mean)
    return _ratio_of_sums(baseline=rows, others=over.at(_along(over) == places[means.argmin()]))


@statistic("peak over mean", has_baseline=True)
def peak_over_mean(rows: Rows, over: Rows) -> np.ndarray:
    """Return the largest value of the rows over the mean of the baseline."""
    return np.array([rows.value.max() / over.value.mean()])


def _along(rows: Rows) -> np.ndarray:
    assert rows.along is not None  # `estimates` requires it
    return rows.along


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


def _ratio(baseline: Rows, others: Rows) -> np.ndarray:
    """Return baseline over others in each round that has both.

    Raises:
        ValueError: no round has both.
    """
    above, below = _in_common_rounds(baseline, others)
    return above / below


def _ratio_of_sums(baseline: Rows, others: Rows) -> np.ndarray:
    """Return the sum of the baseline over that of the others, over the rounds that have both.

    Raises:
        ValueError: no round has both.
    """
    above, below = _in_common_rounds(baseline, others, np.sum)
    return np.array([above.sum() / below.sum()])


def _in_common_rounds(
    first: Rows, second: Rows, take: Callable[[np.ndarray], float] = np.median
) -> tuple[np.ndarray, np.ndarray]:
    """Reduce the rows of each round that both have: (rounds,) numbers of each.

    Raises:
        ValueError: no round has both.
    """
    (up, above), (down, below) = (_of_each(rows.round, rows.value, take) for rows in (first, second))
    _, ups, downs = np.intersect1d(up, down, assume_unique=True, return_indices=True)
    if not len(ups):
        raise checks.refuse_value(
            "rounds", first.round.tolist(), f"rounds of the other rows, {second.round.tolist()}"
        )
    return above[ups], below[downs]


def estimates(
    table: pd.DataFrame | Runs,
    value: str,
    statistic: str = "median",
    where: str = "",
    over: str = "",
    along: str = "",
    each: Sequence[str] = (),
    compared: str = "",
    unit: str = "",
) -> list[tuple[dict[str, Any], Estimate]]:
    """Take a statistic of selected rows, in each of their groups.

    Args:
        table: rows of a run, or `Runs`.
        value: column, or a pandas expression of columns; times for "gain".
        statistic: one of `STATISTICS`.
        where: pandas query that selects the rows; empty for all.
        over: pandas query that selects the baseline, for statistics that have one; else empty.
        along: second column or expression, for statistics that have one; else empty.
        each: columns that identify a group; rows without a value in one of them belong to none.
        compared: the one of them that the baseline does not share, such as `ordering` if orders are compared
            with one of them; empty for none.
        unit: column with values that are independent of each other, such as "scene"; empty: runs or gases.

    Returns:
        The values of `each` and the estimate of every group, in the order of the table. With `compared`,
        groups without a baseline are left out.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a word or a column that is unknown, a filter without rows, a value that is no number, a
            group without a baseline, rounds that cannot be paired, or an estimate that is no finite number.
    """
    runs = table if isinstance(table, Runs) else Runs({"the table": table})
    each, kind = tuple(each), STATISTICS[checks.word("statistic", statistic, STATISTICS)]
    if compared:
        checks.word("compared", compared, each)
    places = [k for k, name in enumerate(each) if name != compared]
    rows = _groups(runs.selected("where", where, value, along, each, unit), each)
    shared = [each[k] for k in places]
    baselines: dict[tuple, dict[int, Rows]] = {}
    if kind.has_baseline:
        baselines = _groups(runs.selected("over", over, value, along, each, unit), shared)
    found, floors = [], _floors_of(runs, value)
    for key, own in rows.items():
        base, case = baselines.get(tuple(key[k] for k in places), {}), _case(each, key)
        if kind.has_baseline and not base:
            if compared:
                continue
            raise ValueError(
                f"{statistic} of {runs.name}: over = {over!r} has no row where {case}; allowed: a "
                "baseline in each group"
            )
        try:
            estimate = combined(reduced(own, base, kind), unit or runs.unit, kind.is_part)
        except ValueError as error:
            raise ValueError(f"{statistic} of {runs.name}{case and f', {case}'}: {error}") from error
        used = np.concatenate([part.number for part in (*own.values(), *base.values())])
        noise, most = (np.nan, np.nan) if floors is None else map(np.fmax.reduce, (floors[used], floors))
        estimate = replace(
            estimate,
            case=case,
            noise_floor=float(noise),
            table_noise=float(most),
            warnings=runs.warnings(used),
        )
        found.append((dict(zip(each, key, strict=True)), estimate))
    return found


@functools.lru_cache(maxsize=256)
def _floors_of(runs: Runs, value: str) -> np.ndarray | None:
    """Return (rows,) noise floors of the case and part of each row; None without a second measurement.

    Args:
        runs: all rows.
        value: column or expression of the noise.
    """
    if not {"case", "round"} <= set(runs.rows):  # older runs measured no case twice
        return None
    rows = runs.rows.assign(_run=runs.rows["_unit"])
    names = {name: list(filter(is_again, rows[name].unique())) for name in LABELS if name in rows}
    label, again = next(((name, again) for name, again in names.items() if again), ("", []))
    if not again:
        return None
    try:
        rows["_value"] = runs.evaluated(value)
    except BROKEN:
        return None
    twins = rows[rows[label].isin([*again, *map(original, again)])].assign(run=lambda own: own["_run"])
    sampled = twins.groupby(["_run", "case", "round", label], sort=False)
    parts = [name for name in PARTS if name in rows and sampled[name].nunique().max() > 1]
    keys = ["_run", "case", *parts]
    floors = noise_floors(twins.dropna(subset="_value"), keys, label, "_value")
    return rows[keys].merge(floors, on=keys, how="left")["noise_floor"].to_numpy(float)


def reduced(rows: Mapping[int, Rows], over: Mapping[int, Rows], kind: Statistic) -> list[np.ndarray]:
    """Take a statistic in each run or gas: the numbers of its rounds.

    Args:
        rows: run or gas -> its rows.
        over: run or gas -> the rows of its baseline.
        kind: the statistic.

    Raises:
        ValueError: rounds that cannot be paired, or rows that the statistic cannot take.
    """
    none = Rows(*(np.empty(0) for _ in range(4)))
    return [kind.reduce(own, over.get(unit, none)) for unit, own in rows.items()]


def combined(
    numbers: Sequence[np.ndarray],
    unit: str = RUN,
    is_part: bool = False,
    centres: Sequence[float] | None = None,
) -> Estimate:
    """Combine the numbers of runs or gases.

    Args:
        numbers: of each run or gas, (rounds,) numbers.
        unit: "run", "gas" or the name of another column.
        is_part: whether they are parts of a whole.
        centres: (runs,) number of each run, of rounds with several samples; None for the medians of the
            rounds.

    Raises:
        ValueError: a median that is no finite number, or of parts one that is not between 0 and 1.
    """
    medians = np.array([np.median(values) for values in numbers] if centres is None else centres, float)
    if not np.isfinite(medians).all():
        raise checks.refuse_value("statistic", medians.tolist(), "finite numbers")
    if is_part and not ((medians > 0) & (medians < 1)).all():
        raise checks.refuse_value(
            "parts", medians.tolist(), "numbers above 0 and below 1", "take a baseline that contains the rows"
        )
    value, low, high, is_range = np.median(medians), np.min(medians), np.max(medians), True
    if len(medians) == 1:
        low, high = np.min(numbers[0]), np.max(numbers[0])
    elif unit == RUN and is_part:
        odds = np.array(interval(medians / (1 - medians)))
        (value, low, high), is_range = odds / (1 + odds), False
    elif unit == RUN and (medians > 0).all():
        (value, low, high), is_range = interval(medians), False
    rounds = min(map(len, numbers))
    return Estimate(float(value), float(low), float(high), len(medians), unit, rounds, is_range)


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Compute a geometric mean and the ends of Student's t interval of its logarithm (95 %).

    Args:
        values: (runs,) above 0; of one value the ends are NaN.

    Raises:
        TypeError: values that form no array.
        ValueError: another shape, no values, values that are no numbers, or a value below 0.
    """
    values = checks.array("values", values, "fiu", "numbers", ("runs",)).astype(float)
    if not len(values) or (values < 0).any():
        raise checks.refuse_value("values", values, "one number or more, above 0")
    logs = np.log(values)
    mean = logs.mean()
    if len(logs) < 2:
        return float(np.exp(mean)), float("nan"), float("nan")
    reach = scipy.special.stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2) * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(np.exp(mean)), float(np.exp(mean - reach)), float(np.exp(mean + reach))


def _groups(rows: pd.DataFrame, by: Sequence[str], dropna: bool = True) -> dict[tuple, dict[int, Rows]]:
    """Return the values of each group -> number of a run or gas -> its rows, in the order of the table.

    Args:
        rows: columns `by`, `_unit` (-1 for none), `round`, `value`, `_number`, and `along` if there is one.
        by: columns that identify a group.
        dropna: whether rows without a value in one of them belong to no group.
    """
    by = list(by)
    group = np.zeros(len(rows), int)
    if by:
        group = rows.groupby(by, sort=False, dropna=dropna, observed=True).ngroup().to_numpy()
    numbers, firsts = np.unique(group, return_index=True)
    firsts = firsts[numbers >= 0]  # -1: a value of `by` is missing
    columns = [[np.nan if x != x else x for x in rows[name].iloc[firsts].tolist()] for name in by]
    keys = list(zip(*columns, strict=True)) if by else [()] * len(firsts)
    found: dict[tuple, dict[int, Rows]] = {key: {} for key in keys}
    unit = rows["_unit"].to_numpy()
    along = rows["along"].to_numpy() if "along" in rows else None
    every = Rows(rows["round"].to_numpy(), rows["value"].to_numpy(), along, rows["_number"].to_numpy())
    order = np.lexsort((unit, group))
    order = order[(group[order] >= 0) & (unit[order] >= 0)]
    ends = np.flatnonzero(np.diff(group[order]) | np.diff(unit[order])) + 1
    for part in np.split(order, ends) if len(order) else ():
        found[keys[group[part[0]]]][unit[part[0]]] = every.at(part)
    return found


def _case(each: Sequence[str], key: tuple) -> str:
    """Return the values of a group in words."""
    pairs = zip(each, key, strict=True)
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in pairs
    )


def ratios(
    table: pd.DataFrame, by: list[str], label: str, baseline: str, value: str = "time_ms"
) -> pd.DataFrame:
    """Compute the gain over a baseline in every round: time of the baseline over time of each other case.

    Args:
        table: columns `by`, `label`, `run`, `round` and `value`; of several rows of a case in a round, the
            median counts.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        baseline: the case in the numerator.
        value: the column of times.

    Returns:
        Columns `by`, `label`, `run`, `round`, `gain`; empty where the baseline was not measured.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    keys = [*names_of("by", by), "run", "round"]
    table_of("table", table, [*keys, label, value])
    times = table.groupby([*keys, label], sort=False, dropna=False)[value].median().reset_index()
    own = times[times[label] == baseline].drop(columns=label).rename(columns={value: "_baseline"})
    joined = times[times[label] != baseline].merge(own, on=keys, how="inner")
    return joined.assign(gain=joined["_baseline"] / joined[value]).drop(columns=["_baseline", value])


def over_runs(table: pd.DataFrame, by: list[str], value: str) -> pd.DataFrame:
    """Average each case: the mean over runs with its interval, or median and range of one run's rounds.

    Args:
        table: columns `by`, `run`, `round` and `value`, which is above 0.
        by: columns that identify a case.
        value: column to be averaged, by its logarithm.

    Returns:
        Columns `by`, `runs`, `rounds` (the fewest of a run), and `<value>`, `<value>_low`, `<value>_high`; if
        no case has more than one run, `<value>_median_of_rounds`, `<value>_lowest_round` and
        `<value>_highest_round` instead. A case of one run beside cases of several has no bounds.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing, or a case of which no row has a run.
    """
    by = names_of("by", by)
    table_of("table", table, [*by, "run", "round", value])
    groups, kind = _groups(_sampled(table, by, value), by, dropna=False), STATISTICS["median"]
    numbers = {key: reduced(own, {}, kind) for key, own in groups.items()}
    centres = {key: [np.median(rows.value) for rows in own.values()] for key, own in groups.items()}
    return _in_columns(numbers, by, value, centres)


def _sampled(table: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return the rows of `_groups`, of a table with the columns `by`, `run`, `round` and `value`."""
    numbers = pd.factorize(table["run"], sort=True)[0]
    found = table[[*by, "round"]].assign(_unit=numbers, value=table[value].to_numpy())
    return found.assign(_number=np.arange(len(found)))


def _in_columns(
    found: Mapping[tuple, Sequence[np.ndarray]],
    by: Sequence[str],
    value: str,
    centres: Mapping[tuple, Sequence[float]] | None = None,
) -> pd.DataFrame:
    """Return the columns of `over_runs`.

    Args:
        found: case -> numbers of the rounds of each of its runs.
        by: columns that identify a case.
        value: start of the names of columns.
        centres: case -> number of each of its runs; None for the medians of their rounds.

    Raises:
        ValueError: a case without runs, or with a number below 0.
    """
    if not all(found.values()):
        raise ValueError("a case has rows without a run alone; allowed: a case with the number of a run")
    several, rows = any(len(numbers) > 1 for numbers in found.values()), []
    names = [value, f"{value}_low", f"{value}_high"] if several else [f"{value}_{end}" for end in ONE_RUN]
    for key, numbers in found.items():
        one = combined(numbers, centres=centres[key] if centres else None)
        triple = (one.value, one.low, one.high)
        if several and one.runs == 1:
            triple = interval(np.array([one.value]))
        row = dict(zip(by, key, strict=True)) | {"runs": one.runs, "rounds": one.rounds}
        rows.append(row | dict(zip(names, triple, strict=True)))
    return pd.DataFrame(rows)


def gains(
    table: pd.DataFrame, by: list[str], label: str, baseline: str, value: str = "time_ms"
) -> pd.DataFrame:
    """Compute the gains of all cases over a baseline, and compare them with noise.

    Args:
        table: of `ratios`. If a case is measured twice, under its name and `<name> again`, the difference of
            the two is the noise floor of all.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        baseline: the case in the numerator.
        value: the column of times.

    Returns:
        A row for each case but the baseline and the second measurements: the columns of `over_runs` for
        `gain`; `over`, the baseline; `noise_floor`, the factor between the two measurements of a case, in the
        worst of the runs (NaN if no case was measured twice); with several runs `difference`, one of
        "faster", "slower", "no difference": the last if the interval holds 1 or the gain is within the noise
        floor. No rows, and no columns of `gain`, if the baseline or every other case is missing.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    by = names_of("by", by)
    table_of("table", table, [*by, "run", "round", label, value])
    sampled = _sampled(table, [*by, label], value)
    over = sampled[sampled[label] == baseline]
    others = (sampled[label] != baseline) & ~sampled[label].map(is_again).astype(bool)
    rows = _paired(sampled[others], over, by)
    if rows.empty:
        return pd.DataFrame(columns=[*by, label, "over", "runs", "rounds", "noise_floor"])
    baselines = _groups(over, by, dropna=False)
    groups = _groups(rows, [*by, label], dropna=False).items()
    of_rounds = {key: reduced(own, baselines[key[:-1]], STATISTICS["gain"]) for key, own in groups}
    found = _in_columns(of_rounds, [*by, label], "gain")
    floors = noise_floors(table, by, label, value)
    found = (
        found.merge(floors, on=by, how="left")
        if by
        else found.assign(noise_floor=floors["noise_floor"].max())
    )
    found.insert(len(by) + 1, "over", baseline)
    if "gain" in found:
        numbers = found[["gain", "gain_low", "gain_high", "noise_floor"]].to_numpy(float)
        found["difference"] = [verdict(*row) for row in numbers]
    return found


def _paired(rows: pd.DataFrame, over: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Select the rows that have a baseline in the same group, run and round."""
    keys = [*by, "_unit", "round"]
    return rows.merge(over[keys].drop_duplicates(), on=keys)


def gains_over(
    table: pd.DataFrame, by: list[str], label: str, over: Mapping[str, str | None], value: str = "time_ms"
) -> pd.DataFrame:
    """Compute the gain of each named case over the one that it is compared with.

    Args:
        table: of `ratios`.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        over: name of a case -> name of the case in the numerator; None for none.
        value: the column of times.

    Returns:
        Rows of `gains`, those over one case together, in the order of the names; none for a case if it or the
        other was not measured.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    found = [gains(table.iloc[:0], by, label, "", value)]
    for baseline in dict.fromkeys([*over, *filter(None, over.values())]):
        names = [name for name, other in over.items() if other == baseline]
        if names and table[label].isin(names).any():
            rows = gains(table, by, label, baseline, value)
            found.append(rows[rows[label].isin(names)])
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def gains_over_fastest(
    table: pd.DataFrame, by: list[str], label: str, names: Sequence[str], value: str = "time_ms"
) -> pd.DataFrame:
    """Compute the gains over the fastest of some cases in each group, by the median of its times.

    Args:
        table: of `ratios`.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        names: of the cases of which the fastest is the numerator; they get no gains.
        value: the column of times.

    Returns:
        Rows of `gains`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    found = [gains(table.iloc[:0], by, label, "", value)]
    for _, rows in table.groupby(names_of("by", by), sort=False):
        times = rows[rows[label].isin(names)].groupby(label)[value].median()
        if len(times):
            over = gains(rows, by, label, str(times.idxmin()), value)
            found.append(over[~over[label].isin(names)])
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def beside_gains(
    summary: pd.DataFrame, table: pd.DataFrame, by: list[str], label: str, over: Mapping[str, str | None]
) -> pd.DataFrame:
    """Add to times their gains over the first case of the table, and over the one each is compared with.

    Args:
        summary: rows of `over_runs`, by `by` and `label`.
        table: of `ratios`.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        over: of `gains_over`.

    Returns:
        The summary without second measurements; with the columns of `named` for gains over the first case,
        and those of `gains_over`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    first, keys = str(table[label].iloc[0]), [*by, label]
    over_first = gains(table, by, label, first)
    if not over_first.empty:
        summary = summary.merge(named(over_first, first.replace(" ", "_")), on=keys, how="left")
    steps = gains_over(table, by, label, over)
    if not steps.empty:
        summary = summary.merge(steps.drop(columns=["runs", "rounds"]), on=keys, how="left")
    return summary[~summary[label].map(is_again)].reset_index(drop=True)


def noise_floors(table: pd.DataFrame, by: list[str], label: str, value: str = "time_ms") -> pd.DataFrame:
    """Compute the noise floor of each group: the factor, at least 1, between a case and its repetition.

    Args:
        table: of `ratios`.
        by: columns of a group.
        label: the column that names the cases.
        value: the column of times.

    Returns:
        Columns `by` and `noise_floor`: the worst of the runs, each the median over its rounds. No row for
        a group in which no case was measured twice.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    by = names_of("by", by)
    table_of("table", table, [*by, "run", "round", label, value])
    sampled = _sampled(table, [*by, label], value)
    worst: dict[tuple, float] = {}
    for name in filter(is_again, table[label].unique()):
        first = sampled[sampled[label] == original(name)]
        baselines = _groups(first, by, dropna=False)
        second = _paired(sampled[sampled[label] == name], first, by)
        for key, own in _groups(second, by, dropna=False).items():
            numbers = reduced(own, baselines[key], STATISTICS["apart"])
            worst[key] = max(worst.get(key, 1.0), *(float(one[0]) for one in numbers))
    if not worst:
        return pd.DataFrame(columns=[*by, "noise_floor"]).astype({"noise_floor": float})
    return pd.DataFrame([dict(zip(by, key, strict=True)) | {"noise_floor": x} for key, x in worst.items()])


def verdict(gain: float, low: float, high: float, noise_floor: float) -> str:
    """Judge a gain: "faster", "slower", "no difference", or "" without an interval.

    Args:
        gain: mean over runs.
        low: lower end of the interval; NaN for none.
        high: upper end.
        noise_floor: factor, at least 1; NaN where no case was measured twice.
    """
    if not np.isfinite(low):
        return ""
    if low <= 1 <= high or abs(np.log(gain)) <= np.log(noise_floor if np.isfinite(noise_floor) else 1.0):
        return NO_DIFFERENCE
    return FASTER if gain > 1 else SLOWER
