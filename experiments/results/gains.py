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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from experiments.results.baselines import is_again, original
from experiments.results.estimate import Estimate, Spread, logarithms, reach
from experiments.results.pooling import PARTS, pool_of, pooled, siblings
from experiments.results.reductions import STATISTICS, Rows, Statistic
from experiments.results.reliability import NAMES
from experiments.results.selection import BROKEN, RUN, Runs, Selection
from experiments.results.selection import windows_averaged as windows_averaged
from experiments.results.selection import with_rounds as with_rounds
from experiments.results.tables import ALIKE, ONE_RUN, names_of, numbered, table_of
from experiments.results.tables import bounds as bounds
from experiments.results.tables import caption as caption
from experiments.results.tables import named as named
from sfc import checks

NO_DIFFERENCE, FASTER, SLOWER = "no difference", "faster", "slower"
Group = dict[int, Rows]  # run or gas -> its rows
OF_ROWS = {"mean": "mean", "median": "median", "first": "first", "middle": "median"}  # see `of_rows`


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
    labels = (checks.word("compared", compared, each),) if compared else ()
    asked = Selection(value, where, over, along, each, labels, unit)
    cases = _cases(runs, asked, kind)
    found, floors, pools = [], _floors_of(runs, value), {}
    if (unit or runs.unit) == RUN and max((len(own) for _, own, _ in cases), default=0) > 1:
        pools = _pools(runs, siblings(asked), statistic)
    for key, own, base in cases:
        case = _in_words(each, key)
        if kind.has_baseline and not base:
            if compared:
                continue
            raise ValueError(
                f"{statistic} of {runs.name}: over = {over!r} has no row where {case}; allowed: a "
                "baseline in each group"
            )
        try:
            pool = pools.get(_pool(runs.alike, each, key, own, base)) if pools else None
            estimate = combined(reduced(own, base, kind), unit or runs.unit, kind.is_part, pool)
        except ValueError as error:
            raise ValueError(f"{statistic} of {runs.name}{case and f', {case}'}: {error}") from error
        used = _numbers(own, base)
        noise, most = (np.nan, np.nan) if floors is None else map(np.fmax.reduce, (floors[used], floors))
        warnings = runs.warnings(used)
        estimate = replace(
            estimate, case=case, noise_floor=float(noise), table_noise=float(most), warnings=warnings
        )
        found.append((dict(zip(each, key, strict=True)), estimate))
    return found


def _cases(runs: Runs, asked: Selection, kind: Statistic) -> list[tuple[tuple, Group, Group]]:
    """Return the values of `asked.each`, the rows and the rows of the baseline of every group.

    A baseline has no values of `asked.labels`; it is empty where it is missing, or the statistic has none.
    """
    rows = _groups(runs.selected(asked, "where"), asked.each)
    common = [name for name in asked.each if name not in asked.labels]
    bases: dict[tuple, Group] = _groups(runs.selected(asked, "over"), common) if kind.has_baseline else {}
    places = [asked.each.index(name) for name in common]
    return [(key, own, bases.get(tuple(key[k] for k in places), {})) for key, own in rows.items()]


@functools.lru_cache(maxsize=512)
def _pools(runs: Runs, asked: Selection, statistic: str) -> dict[tuple, Spread]:
    """Return the spread of each pool of cases, see `pooling.siblings`; none where a row has no number."""
    kind, found = STATISTICS[statistic], []
    try:
        cases = _cases(runs, asked, kind)
    except ValueError:
        return {}
    for key, own, base in cases:
        named = zip(asked.each, key, strict=True)
        is_twin = any(is_again(name) for column, name in named if column in asked.labels)
        if kind.has_baseline and (not base or is_twin or np.array_equal(_numbers(own), _numbers(base))):
            continue  # a baseline over itself among them
        try:
            medians = np.array([np.median(one) for one in reduced(own, base, kind)])
        except ValueError:  # no common rounds
            continue
        found.append((_pool(runs.alike, asked.each, key, own, base), logarithms(medians, kind.is_part)))
    return pooled(found)


def _numbers(*groups: Group) -> np.ndarray:
    """Return the numbers of all rows of some groups."""
    return np.concatenate([rows.number for group in groups for rows in group.values()])


def _pool(alike: np.ndarray, each: Sequence[str], key: tuple, *groups: Group) -> tuple:
    """Return the pool of a case: the numbers, by `tables.ALIKE`, of its rows, and what `pool_of` returns."""
    return tuple(np.unique(alike[_numbers(*groups)]).tolist()), *pool_of(each, key)


@functools.lru_cache(maxsize=256)
def _floors_of(runs: Runs, value: str) -> np.ndarray | None:
    """Return (rows,) noise floors of the case and part of each row; None without a second measurement.

    Args:
        runs: all rows.
        value: column or expression of the noise.
    """
    rows = runs.rows.assign(run=runs.rows["_unit"])
    label = next((name for name in NAMES if name in rows and rows[name].map(is_again).any()), "")
    if not label or not {"case", "round"} <= set(rows):  # older runs measured no case twice
        return None
    try:
        rows["_value"] = runs.evaluated(value)
    except BROKEN:
        return None
    again = list(filter(is_again, rows[label].unique()))
    twins = rows[rows[label].isin([*again, *map(original, again)])]
    sampled = twins.groupby(["run", "case", "round", label], sort=False)
    keys = ["run", "case", *(name for name in PARTS if name in rows and sampled[name].nunique().max() > 1)]
    floors = noise_floors(twins.dropna(subset="_value"), keys, label, "_value")
    found = pd.DataFrame([*floors], columns=keys).assign(_floor=[*floors.values()])
    return rows[keys].merge(found, on=keys, how="left")["_floor"].to_numpy(float)


def reduced(rows: Group, over: Group, kind: Statistic) -> list[np.ndarray]:
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
    pool: Spread | None = None,
    centres: np.ndarray | None = None,
) -> Estimate:
    """Combine the numbers of runs or gases.

    Args:
        numbers: of each run or gas, (rounds,) numbers.
        unit: "run", "gas" or the name of another column.
        is_part: whether they are parts of a whole.
        pool: spread of all cases of the table; None for none.
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
    value, low, high = np.median(medians), np.min(medians), np.max(medians)
    spreads: tuple[Spread, ...] = ()
    if len(medians) == 1:
        low, high = np.min(numbers[0]), np.max(numbers[0])
    elif unit == RUN and (is_part or (medians > 0).all()):
        logs = logarithms(medians, is_part)
        own = Spread(float(logs.std(ddof=1)), len(logs) - 1)
        spreads = (own, pool) if pool and own.sd > 0 else (own,)
        around = reach(spreads, len(logs)) * np.array([0, -1, 1])
        ends = np.exp(logs.mean() + around)
        value, low, high = ends / (1 + ends) if is_part else ends
    rounds = min(map(len, numbers))
    return Estimate(
        float(value), float(low), float(high), len(medians), unit, rounds, not spreads, spreads=spreads
    )


def _groups(rows: pd.DataFrame, by: Sequence[str], dropna: bool = True) -> dict[tuple, Group]:
    """Return the values of each group -> number of a run or gas -> its rows, in the order of the table.

    Args:
        rows: columns `by`, `_unit` (-1 for none), `round`, `value`, `_number`, and `along` if there is one.
        by: columns that identify a group.
        dropna: whether rows without a value in one of them belong to no group.
    """
    by = list(by)
    group = numbered(rows, by, dropna)
    numbers, firsts = np.unique(group, return_index=True)
    firsts = firsts[numbers >= 0]  # -1: a value of `by` is missing
    columns = [[np.nan if x != x else x for x in rows[name].iloc[firsts].tolist()] for name in by]
    keys = list(zip(*columns, strict=True)) if by else [()] * len(firsts)
    found: dict[tuple, Group] = {key: {} for key in keys}
    unit = rows["_unit"].to_numpy()
    along = "along" if "along" in rows else "value"
    every = Rows(*(rows[name].to_numpy() for name in ("round", "value", along, "_number")))
    order = np.lexsort((unit, group))
    order = order[(group[order] >= 0) & (unit[order] >= 0)]
    ends = np.flatnonzero(np.diff(group[order]) | np.diff(unit[order])) + 1
    for part in np.split(order, ends) if len(order) else ():
        found[keys[group[part[0]]]][unit[part[0]]] = every.at(part)
    return found


def _in_words(each: Sequence[str], key: tuple) -> str:
    """Return the values of a group in words."""
    pairs = zip(each, key, strict=True)
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in pairs
    )


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
    table_of("table", table, [*names_of("by", by), "run", "round", value])
    groups = _groups(_sampled(table, by, value), by, dropna=False)
    return _in_columns({key: (own, {}) for key, own in groups.items()}, table, by, value, "median")


def _sampled(table: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return the rows of `_groups`, of a table with the columns `by`, `run`, `round` and `value`."""
    numbers = pd.factorize(table["run"], sort=True)[0]
    found = table[[*by, "round"]].assign(_unit=numbers, value=table[value].to_numpy())
    return found.assign(_number=np.arange(len(found)))


def _in_columns(
    cases: Mapping[tuple, tuple[Group, Group]], table: pd.DataFrame, by: list[str], name: str, statistic: str
) -> pd.DataFrame:
    """Return the columns of `over_runs`.

    Args:
        cases: case -> its rows and those of its baseline.
        table: of which they are rows.
        by: columns that identify a case.
        name: start of the names of columns.
        statistic: one of `STATISTICS`, of numbers above 0.

    Raises:
        ValueError: a case without runs, or with a number that is not finite.
    """
    if not all(own for own, _ in cases.values()):
        raise ValueError("a case has rows without a run alone; allowed: a case with the number of a run")
    several, alike = any(len(own) > 1 for own, _ in cases.values()), numbered(table, ALIKE)
    names = [name, f"{name}_low", f"{name}_high"] if several else [f"{name}_{end}" for end in ONE_RUN]
    found = {key: reduced(*groups, STATISTICS[statistic]) for key, groups in cases.items()}
    samples = {
        key: found[key] if base else [of.value for of in own.values()] for key, (own, base) in cases.items()
    }
    centres = {key: np.array([np.median(one) for one in of_runs]) for key, of_runs in samples.items()}
    pools = {key: _pool(alike, by, key, *groups) for key, groups in cases.items()}
    spreads, rows = pooled((pools[key], logarithms(of, False)) for key, of in centres.items()), []
    for key, of_runs in found.items():
        one = combined(of_runs, pool=spreads.get(pools[key]), centres=centres[key])
        ends = (one.value, one.low, one.high)
        if several and one.runs == 1:  # the range of its rounds is no interval over runs
            value = float(np.exp(np.log(one.value))) if one.value > 0 else one.value  # a mean, as of several
            ends = (value, np.nan, np.nan)
        row = dict(zip(by, key, strict=True)) | {"runs": one.runs, "rounds": one.rounds}
        rows.append(row | dict(zip(names, ends, strict=True)))
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
    table_of("table", table, [*names_of("by", by), "run", "round", label, value])
    names = {name for name in table[label].unique() if name != baseline and not is_again(name)}
    cases = _paired(table, by, label, value, names, baseline)
    if not cases:
        return pd.DataFrame(columns=[*by, label, "over", "runs", "rounds", "noise_floor"])
    found = _in_columns(cases, table, [*by, label], "gain", "gain")
    floors = noise_floors(table, by, label, value)
    found = found.assign(noise_floor=[floors.get(key[:-1], np.nan) for key in cases])
    found.insert(len(by) + 1, "over", baseline)
    if "gain" in found:
        numbers = found[["gain", "gain_low", "gain_high", "noise_floor"]].to_numpy(float)
        found["difference"] = [verdict(*row) for row in numbers]
    return found


def _paired(
    table: pd.DataFrame, by: list[str], label: str, value: str, names: Collection[str], baseline: str
) -> dict[tuple, tuple[Group, Group]]:
    """Return the rows of each case and of its baseline, in the runs with rounds that both have.

    Args:
        table: columns `by`, `label`, `run`, `round` and `value`.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        value: the column of times.
        names: of the cases.
        baseline: name of the case that they are compared with.
    """
    sampled = _sampled(table, [*by, label], value)
    bases = _groups(sampled[sampled[label] == baseline], by, dropna=False)
    groups, found = _groups(sampled[sampled[label].isin(names)], [*by, label], dropna=False), {}
    for key, own in groups.items():
        base = bases.get(key[:-1], {})
        own = {run: of for run, of in own.items() if run in base and np.isin(of.round, base[run].round).any()}
        if own:
            found[key] = own, base
    return found


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
        if table[label].isin(names).any():
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


def noise_floors(
    table: pd.DataFrame, by: list[str], label: str, value: str = "time_ms"
) -> dict[tuple, float]:
    """Compute the noise floor of each group: the factor, at least 1, between a case and its repetition.

    Args:
        table: columns `by`, `label`, `run`, `round` and `value`.
        by: columns of a group.
        label: the column that names the cases.
        value: the column of times.

    Returns:
        Values of `by` -> the worst of the runs, each the median over its rounds; without the groups in which
        no case was measured twice.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    table_of("table", table, [*names_of("by", by), "run", "round", label, value])
    worst: dict[tuple, float] = {}
    for name in filter(is_again, table[label].unique()):
        for (*key, _), groups in _paired(table, by, label, value, [name], original(name)).items():
            numbers = reduced(*groups, STATISTICS["apart"])
            worst[*key,] = max(worst.get((*key,), 1.0), *(float(one[0]) for one in numbers))
    return worst


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


def of_rows(table: pd.DataFrame, by: Sequence[str], value: str, statistic: str) -> pd.DataFrame:
    """Take a statistic of all rows of each case, which are no rounds: of gases, or of blocks of time.

    Args:
        table: columns `by` and `value`.
        by: columns that identify a case; empty for one case.
        value: column.
        statistic: "mean", with twice its standard error, 0 of a single row; "median", with the range;
            "first" (of the first row) or "middle" (median), both ends of which are the number itself.

    Returns:
        Columns `by`, `<value>`, `<value>_low` and `<value>_high`.

    Raises:
        TypeError: no table.
        ValueError: a column that is missing, or an unknown statistic.
    """
    rows = table_of("table", table, [*names_of("by", by), value])
    how = OF_ROWS[checks.word("statistic", statistic, OF_ROWS)]
    groups = rows.groupby([*by], sort=False)[value] if by else rows.assign(_=0).groupby("_")[value]
    low = high = centre = groups.agg(how)
    if statistic == "mean":
        error = 2 * groups.sem().fillna(0)
        low, high = centre - error, centre + error
    elif statistic == "median":
        low, high = groups.min(), groups.max()
    found = pd.DataFrame({value: centre, f"{value}_low": low, f"{value}_high": high})
    return found.reset_index(drop=not by)
