"""Gains and times over rounds and runs, with the interval that they deserve.

Contract. A table of times has the columns `run` and `round` beside what tells its cases apart. All cases
that are compared are sampled in every round. A gain is the ratio of two samples of one round; the gain of a
run is the median over its rounds, for rounds of one process are not independent. Runs have a process and a
gas of their own: over them a gain is the mean of the logarithms, with Student's t interval (95 %). With one
run there is no interval: what is told then is the median and the range of its rounds, and no verdict.
"""

import numpy as np
import pandas as pd
from scipy import stats

from experiments.analysis.baselines import gain_over, is_again, original
from experiments.analysis.tables import names_of, table_of
from sfc import checks

CONFIDENCE = 0.95
ONE_RUN = ("median_of_rounds", "lowest_round", "highest_round")  # told of one run, in place of an interval
NO_DIFFERENCE, FASTER, SLOWER = "no difference", "faster", "slower"


def with_rounds(table: pd.DataFrame, by: list[str], runs: str | None = None) -> pd.DataFrame:
    """The table with columns `run` and `round`, which tables of before 2026-11-23 lack.

    Their samples were taken one after the other in one process, so that the number of a sample stands for its
    round, and all of them are one run: their times deserve no interval and no verdict.

    Args:
        table: one row is one sample.
        by: columns that tell cases and parts apart.
        runs: column of such a table whose values stand for runs, where rows are no times; None for one run.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    table_of("table", table, by := names_of("by", by))
    if {"run", "round"} <= set(table.columns):
        return table
    given = table.assign(run=table[runs] if runs in table else 0)
    return given.assign(round=given.groupby([*by, "run"], sort=False, dropna=False).cumcount())


def ratios(
    table: pd.DataFrame, by: list[str], label: str, baseline: str, value: str = "time_ms"
) -> pd.DataFrame:
    """The gain over a baseline in every round: the time of the baseline over that of each other case.

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
    """One row a case: the mean over runs with its interval, or the median and range of one run's rounds.

    Args:
        table: columns `by`, `run`, `round` and `value`, which is above 0.
        by: columns that tell cases apart.
        value: what is averaged, by its logarithm.

    Returns:
        Columns `by`, `runs`, `rounds` (of a run, the fewest), and `<value>`, `<value>_low`, `<value>_high`;
        where no case has more than one run, `<value>_median_of_rounds`, `<value>_lowest_round` and
        `<value>_highest_round` in their place. A case of one run among others of several has no bounds.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    by, found = names_of("by", by), []
    table_of("table", table, [*by, "run", "round", value])
    groups = list(table.groupby(by, sort=False, dropna=False))
    several = any(rows["run"].nunique() > 1 for _, rows in groups)
    for key, rows in groups:
        medians = rows.groupby("run")[value].median()
        row = dict(zip(by, key, strict=True))
        row |= {"runs": len(medians), "rounds": int(rows.groupby("run")["round"].nunique().min())}
        if several:
            row |= dict(
                zip((value, f"{value}_low", f"{value}_high"), interval(medians.to_numpy()), strict=True)
            )
        else:
            told = rows.groupby("round")[value].median()
            names = (f"{value}_{name}" for name in ONE_RUN)
            row |= dict(zip(names, (medians.iloc[0], told.min(), told.max()), strict=True))
        found.append(row)
    return pd.DataFrame(found)


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean of independent values, and the ends of Student's t interval of its logarithm (95 %).

    Args:
        values: (runs,) above 0; of one value the ends are NaN.

    Raises:
        TypeError: values that make no array.
        ValueError: another shape, no values, values that are no numbers, or one below 0.
    """
    values = checks.array("values", values, "fiu", "numbers", ("runs",)).astype(float)
    if not len(values) or (values < 0).any():
        raise checks.refuse_value("values", values, "one number or more, above 0")
    logs = np.log(values)
    mean = logs.mean()
    if len(logs) < 2:
        return float(np.exp(mean)), float("nan"), float("nan")
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(np.exp(mean)), float(np.exp(mean - reach)), float(np.exp(mean + reach))


def gains(
    table: pd.DataFrame, by: list[str], label: str, baseline: str, value: str = "time_ms"
) -> pd.DataFrame:
    """Gains of all cases over one, with what noise allows to be said of them.

    Args:
        table: of `ratios`. Where a case is measured twice, under its name and `<name> again`, what the two
            differ by is the noise floor of all.
        by: columns within which cases are compared.
        label: the column that names the cases compared.
        baseline: the case in the numerator.
        value: the column of times.

    Returns:
        A row for each case but the baseline and the second measurements: the columns of `over_runs` for
        `gain`; `over`, the baseline; `noise_floor`, the factor by which a case measured twice differs from
        itself in the worst of the runs (NaN if none was); with several runs
        `difference`, one of "faster", "slower", "no difference": none where the interval holds 1 or the gain
        is within the noise floor. Without a row, and without the columns of `gain`, where the baseline or
        anything beside it was not measured.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    by = names_of("by", by)
    every = ratios(table, by, label, baseline, value)
    every = every[~every[label].map(is_again)]
    if every.empty:
        return pd.DataFrame(columns=[*by, label, "over", "runs", "rounds", "noise_floor"])
    found = over_runs(every, [*by, label], "gain")
    floors = noise_floors(table, by, label, value)
    found = found.merge(floors, on=by, how="left") if by else found.assign(noise_floor=_one(floors))
    found.insert(len(by) + 1, "over", baseline)
    if "gain" in found:
        found["difference"] = [
            verdict(*row) for row in found[["gain", "gain_low", "gain_high", "noise_floor"]].to_numpy(float)
        ]
    return found


def named(found: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Rows of `gains` with columns that name the baseline, to stand beside gains over others.

    Args:
        found: rows of `gains`.
        baseline: what they are over.

    Returns:
        Columns such as `gain_over_shuffled`, `gain_over_shuffled_low`, `difference_from_shuffled`,
        `noise_floor_shuffled`; without `over`, `runs`, `rounds`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    table_of("found", found, ["over", "runs", "rounds"])
    told = {"difference": f"difference_from_{baseline}", "noise_floor": f"noise_floor_{baseline}"}
    told |= {name: name.replace("gain", gain_over(baseline), 1) for name in found if name.startswith("gain")}
    return found.drop(columns=["over", "runs", "rounds"]).rename(columns=told)


def noise_floors(table: pd.DataFrame, by: list[str], label: str, value: str = "time_ms") -> pd.DataFrame:
    """The noise floor of each group: the factor, at least 1, by which one case differs from itself.

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
    by, parts = names_of("by", by), []
    table_of("table", table, [*by, "run", "round", label, value])
    for name in filter(is_again, table[label].unique()):
        every = ratios(table[table[label].isin([name, original(name)])], by, label, original(name), value)
        parts.append(every[every[label] == name])
    twins = pd.concat(parts) if parts else table.iloc[:0]
    if twins.empty:
        return pd.DataFrame(columns=[*by, "noise_floor"]).astype({"noise_floor": float})
    runs = twins.groupby([*by, label, "run"], sort=False, dropna=False)["gain"].median()
    worst = np.exp(np.abs(np.log(runs))).reset_index()
    if not by:
        return pd.DataFrame({"noise_floor": [worst["gain"].max()]})
    return worst.groupby(by, sort=False, dropna=False)["gain"].max().rename("noise_floor").reset_index()


def verdict(gain: float, low: float, high: float, noise_floor: float) -> str:
    """What may be said of a gain: "faster", "slower", "no difference", or "" without an interval.

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


def bounds(summary: pd.DataFrame, value: str) -> pd.DataFrame:
    """Centre, lower and upper end of each row, whichever of the two sets of columns it has; for drawing.

    Returns:
        Columns `centre`, `low`, `high`; the index of the summary.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    if table_of("summary", summary).empty:
        return pd.DataFrame(columns=["centre", "low", "high"], dtype=float)
    several = value in summary
    names = [value, f"{value}_low", f"{value}_high"] if several else [f"{value}_{n}" for n in ONE_RUN]
    found = table_of("summary", summary, names)[names].set_axis(["centre", "low", "high"], axis=1)
    return found.assign(low=found["low"].fillna(found["centre"]), high=found["high"].fillna(found["centre"]))


def caption(summary: pd.DataFrame) -> str:
    """What centre and ends of `bounds` are, for a figure."""
    if summary.empty or table_of("summary", summary, ["runs"])["runs"].max() < 2:
        return "median and range over the rounds of one run"
    return f"mean over {int(summary['runs'].max())} runs and its 95 % interval"


def _one(floors: pd.DataFrame) -> float:
    return float(floors["noise_floor"].iloc[0]) if len(floors) else float("nan")
