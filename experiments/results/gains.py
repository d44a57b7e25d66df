"""The engine of all results: rows of one or many runs -> selection -> value or gain with its interval.

Contract. The number of a run is the median over its rounds, of a statistic of `reductions`, because rounds of
one process are not independent. Rows belong to runs (each a gas and a process of its own) or, if they are
predictions or numbers of several gases, to gases; another column may hold values that are independent of
each other, such as the scenes of one run. Of several runs the estimate is the mean of the logarithms with
Student's t interval (95 %), by the spread of its own runs or by that of all cases of the table (`pooling`),
whichever is wider; of parts of a whole, which cannot exceed 1, that of log(x / (1 - x)); of several gases or
scenes, and of runs with numbers not all above 0, the median and the range. One run or gas gives its median
and the range of its rounds, and is called so.

`estimates` serves charts, claims and sentences. `over_runs` and `gains` give the same estimates as the
columns of a table. No other module computes a gain, an interval or a noise floor.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from experiments.results import reliability
from experiments.results.baselines import is_again, original
from experiments.results.estimate import Estimate, Spread, reach
from experiments.results.pooling import PARTS, alike, pool_of, pooled, siblings
from experiments.results.reductions import STATISTICS, Rows, Statistic
from experiments.results.selection import BROKEN, RUN, Runs
from experiments.results.selection import windows_averaged as windows_averaged
from experiments.results.selection import with_rounds as with_rounds
from experiments.results.tables import ONE_RUN, names_of, table_of
from experiments.results.tables import bounds as bounds
from experiments.results.tables import caption as caption
from experiments.results.tables import named as named
from sfc import checks

NO_DIFFERENCE, FASTER, SLOWER = "no difference", "faster", "slower"
LABELS = ("name", *reliability.NAMES)  # columns that name the cases compared


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
    found, floors, pools = [], _floors_of(runs, value), {}
    if (unit or runs.unit) == RUN and max(map(len, rows.values()), default=0) > 1:
        pools = _pools(runs, value, statistic, *siblings(where, over, each, compared), along)
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
            pool = pools.get((_pool(_alike_of(runs), own, base), *pool_of(each, key))) if pools else None
            estimate = combined(reduced(own, base, kind), unit or runs.unit, kind.is_part, pool=pool)
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


@functools.lru_cache(maxsize=512)
def _pools(
    runs: Runs,
    value: str,
    statistic: str,
    where: str,
    over: str,
    each: tuple[str, ...],
    labels: tuple[str, ...],
    along: str,
) -> dict[tuple, Spread]:
    """Return the spread of each pool of cases, see `pooling.siblings`; none where a row has no number."""
    kind, baselines = STATISTICS[statistic], {}
    shared = [name for name in each if name not in labels]
    try:
        rows = _groups(runs.selected("where", where, value, along, each, ""), each)
        if kind.has_baseline:
            baselines = _groups(runs.selected("over", over, value, along, shared, ""), shared)
    except ValueError:
        return {}
    cases = []
    for key, own in rows.items():
        named = dict(zip(each, key, strict=True))
        base = baselines.get(tuple(named[name] for name in shared), {})
        if kind.has_baseline and (
            not base or any(is_again(named[name]) for name in labels) or _is(own, base)
        ):
            continue
        try:
            numbers = np.array([np.median(one) for one in reduced(own, base, kind)])
        except ValueError:  # no common rounds
            continue
        pool = (_pool(_alike_of(runs), own, base), *pool_of(each, key))
        cases.append((pool, _logs(numbers, kind.is_part)))
    return pooled(cases)


def _is(rows: Mapping[int, Rows], others: Mapping[int, Rows]) -> bool:
    """Return whether two groups are the same rows: a baseline over itself."""
    first, second = (np.concatenate([one.number for one in group.values()]) for group in (rows, others))
    return np.array_equal(first, second)


@functools.lru_cache(maxsize=64)
def _alike_of(runs: Runs) -> np.ndarray:
    return alike(runs.rows)


def _pool(numbers: np.ndarray, *groups: Mapping[int, Rows]) -> tuple:
    """Return the numbers, of `pooling.alike`, of the rows of a group and its baseline."""
    used = np.concatenate([one.number for group in groups for one in group.values()])
    return tuple(np.unique(numbers[used]).tolist())


def _logs(numbers: np.ndarray, is_part: bool) -> np.ndarray:
    """Return the logarithms of which the mean is taken: of parts, those of x / (1 - x)."""
    with np.errstate(all="ignore"):
        return np.log(numbers / (1 - numbers) if is_part else numbers)


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
    pool: Spread | None = None,
) -> Estimate:
    """Combine the numbers of runs or gases.

    Args:
        numbers: of each run or gas, (rounds,) numbers.
        unit: "run", "gas" or the name of another column.
        is_part: whether they are parts of a whole.
        centres: (runs,) number of each run, of rounds with several samples; None for the medians of the
            rounds.
        pool: spread of all cases of the table; None for none.

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
    value, low, high = np.median(medians), np.min(medians), np.max(medians)
    spreads: tuple[Spread, ...] = ()
    if len(medians) == 1:
        low, high = np.min(numbers[0]), np.max(numbers[0])
    elif unit == RUN and (is_part or (medians > 0).all()):
        logs = _logs(medians, is_part)
        own = Spread(float(logs.std(ddof=1)), len(logs) - 1)
        spreads = (own, pool) if pool and own.sd > 0 else (own,)
        around = reach(spreads, len(logs)) * np.array([0, -1, 1])
        ends = np.exp(logs.mean() + around)
        value, low, high = ends / (1 + ends) if is_part else ends
    rounds = min(map(len, numbers))
    return Estimate(
        float(value), float(low), float(high), len(medians), unit, rounds, not spreads, spreads=spreads
    )


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
    half = reach([Spread(float(logs.std(ddof=1)), len(logs) - 1)], len(logs))
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))


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
    pools = {key: (_pool(alike(table), own), *pool_of(by, key)) for key, own in groups.items()}
    return _in_columns(numbers, by, value, pools, centres)


def _sampled(table: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return the rows of `_groups`, of a table with the columns `by`, `run`, `round` and `value`."""
    numbers = pd.factorize(table["run"], sort=True)[0]
    found = table[[*by, "round"]].assign(_unit=numbers, value=table[value].to_numpy())
    return found.assign(_number=np.arange(len(found)))


def _in_columns(
    found: Mapping[tuple, Sequence[np.ndarray]],
    by: Sequence[str],
    value: str,
    pools: Mapping[tuple, tuple],
    centres: Mapping[tuple, Sequence[float]] | None = None,
) -> pd.DataFrame:
    """Return the columns of `over_runs`.

    Args:
        found: case -> numbers of the rounds of each of its runs.
        by: columns that identify a case.
        value: start of the names of columns.
        pools: case -> its pool, see `pooling`.
        centres: case -> number of each of its runs; None for the medians of their rounds.

    Raises:
        ValueError: a case without runs, or with a number below 0.
    """
    if not all(found.values()):
        raise ValueError("a case has rows without a run alone; allowed: a case with the number of a run")
    several, rows = any(len(numbers) > 1 for numbers in found.values()), []
    names = [value, f"{value}_low", f"{value}_high"] if several else [f"{value}_{end}" for end in ONE_RUN]
    of_runs = {
        key: np.array(centres[key] if centres else [np.median(one) for one in numbers], float)
        for key, numbers in found.items()
    }
    spreads = pooled((pools[key], _logs(numbers, False)) for key, numbers in of_runs.items())
    for key, numbers in found.items():
        one = combined(numbers, centres=of_runs[key].tolist(), pool=spreads.get(pools[key]))
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
        table: columns `by`, `label`, `run`, `round` and `value`. If a case is measured twice, under its name
            and `<name> again`, the difference of the two is the noise floor of all.
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
    groups, numbers = _groups(rows, [*by, label], dropna=False).items(), alike(table)
    of_rounds = {key: reduced(own, baselines[key[:-1]], STATISTICS["gain"]) for key, own in groups}
    pools = {key: (_pool(numbers, own, baselines[key[:-1]]), *pool_of(by, key)) for key, own in groups}
    found = _in_columns(of_rounds, [*by, label], "gain", pools)
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
        table: columns `by`, `label`, `run`, `round` and `value`.
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
        table: columns `by`, `label`, `run`, `round` and `value`.
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


def noise_floors(table: pd.DataFrame, by: list[str], label: str, value: str = "time_ms") -> pd.DataFrame:
    """Compute the noise floor of each group: the factor, at least 1, between a case and its repetition.

    Args:
        table: columns `by`, `label`, `run`, `round` and `value`.
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
