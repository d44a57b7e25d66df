"""Gains and times over rounds and runs, with their confidence intervals.

Contract. A table of times has the columns `run` and `round` beside the columns that identify its cases. All
cases that are compared are sampled in every round. A gain is the ratio of two samples of one round. The gain
of a run is the median over its rounds, because rounds of one process are not independent. Each run has its
own process and its own gas: over runs a gain is the mean of the logarithms, with Student's t interval (95 %).
One run has no interval and no verdict, only the median and the range of its rounds.
"""

import numpy as np
import pandas as pd
import scipy  # its `special` is loaded when first used

from experiments.results.baselines import gain_over, is_again, original
from experiments.results.tables import names_of, table_of
from sfc import checks

CONFIDENCE = 0.95
ONE_RUN = ("median_of_rounds", "lowest_round", "highest_round")  # columns of one run, in place of an interval
NO_DIFFERENCE, FASTER, SLOWER = "no difference", "faster", "slower"


def with_rounds(table: pd.DataFrame, by: list[str], runs: str | None = None) -> pd.DataFrame:
    """Add the columns `run` and `round`, which tables of before 2026-11-23 lack.

    Their samples were taken one after the other in one process: the number of a sample is taken as its round,
    and all samples as one run, so that their times get no interval and no verdict.

    Args:
        table: one row is one sample.
        by: columns that identify cases and parts.
        runs: column of an old table that numbers its runs, if its rows are not times; None for one run.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    table_of("table", table, by := names_of("by", by))
    if {"run", "round"} <= set(table.columns):
        return table
    given = table.assign(run=table[runs] if runs in table else 0)
    return given.assign(round=given.groupby([*by, "run"], sort=False, dropna=False).cumcount())


def windows_averaged(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Replace the samples of a run by one, of their mean time and largest age, in round 0.

    It is for samples that are windows of a process, of which each is another phase: a gain is then mean time
    over mean time. A median over windows would drop the phases of the largest and the least gain, and their
    range is no error.

    Args:
        table: columns `by`, `run`, `round` and `time_ms`, and `age_steps` if ages are known.
        by: columns that identify cases and parts.

    Returns:
        A row for each run, case and part; `windows`, the number of samples.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    keys = [*names_of("by", by), "run"]
    groups = table_of("table", table, [*keys, "round", "time_ms"]).groupby(keys, sort=False, dropna=False)
    found = {"time_ms": groups["time_ms"].transform("mean"), "windows": groups["round"].transform("nunique")}
    if "age_steps" in table:
        found["age_steps"] = groups["age_steps"].transform("max")
    return table.assign(**found, round=0).drop_duplicates(keys, ignore_index=True)


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
    by, found = names_of("by", by), []
    table_of("table", table, [*by, "run", "round", value])
    groups = table.groupby(by, sort=False, dropna=False, observed=True)
    columns = {"case": groups.ngroup(), "run": table["run"], "round": table["round"], "value": table[value]}
    numbered = pd.DataFrame(columns)
    of_runs = numbered.groupby(["case", "run"], observed=True)
    medians, fewest = _by_case(of_runs["value"].median()), of_runs["round"].nunique().groupby("case").min()
    if len(medians) < groups.ngroups:
        raise ValueError("a case has rows without a run alone; allowed: a case with the number of a run")
    several = any(len(runs) > 1 for runs in medians.values())
    each_round = numbered.groupby(["case", "round"], observed=True)["value"]
    of_rounds = each_round.median().groupby("case").agg(["min", "max"])
    ends = of_rounds.reindex(range(groups.ngroups)).to_numpy(float)
    for case, key in enumerate(groups.size().index):
        row = dict(zip(by, key if len(by) > 1 else (key,), strict=True))
        row |= {"runs": len(medians[case]), "rounds": int(fewest[case])}
        if several:
            row |= dict(zip((value, f"{value}_low", f"{value}_high"), interval(medians[case]), strict=True))
        else:
            names = (f"{value}_{name}" for name in ONE_RUN)
            row |= dict(zip(names, (medians[case][0], *ends[case]), strict=True))
        found.append(row)
    return pd.DataFrame(found)


def _by_case(values: pd.Series) -> dict[int, np.ndarray]:
    """Split values by the first level of their index, the sorted number of a case."""
    cases, firsts = np.unique(values.index.get_level_values(0), return_index=True)
    parts = np.split(values.to_numpy(), firsts[1:])  # one, of no values, if there is no case
    return dict(zip(cases.tolist(), parts, strict=False))


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
    """Rename the columns of gains after their baseline, so that gains over others fit beside them.

    Args:
        found: rows of `gains`.
        baseline: of these gains.

    Returns:
        Columns such as `gain_over_shuffled`, `gain_over_shuffled_low`, `difference_from_shuffled`,
        `noise_floor_shuffled`; without `over`, `runs`, `rounds`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    table_of("found", found, ["over", "runs", "rounds"])
    names = {"difference": f"difference_from_{baseline}", "noise_floor": f"noise_floor_{baseline}"}
    columns = [str(name) for name in found if str(name).startswith("gain")]
    names |= {name: name.replace("gain", gain_over(baseline), 1) for name in columns}
    return found.drop(columns=["over", "runs", "rounds"]).rename(columns=names)


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


def bounds(summary: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return centre, lower and upper end of each row, from the set of columns that it has, for drawing.

    Returns:
        Columns `centre`, `low`, `high`; the index of the summary.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    if table_of("summary", summary).empty:
        return pd.DataFrame(columns=["centre", "low", "high"], dtype=float)
    of_one, of_several = [f"{value}_{n}" for n in ONE_RUN], [value, f"{value}_low", f"{value}_high"]
    names = of_several if value in summary else of_one
    found = table_of("summary", summary, names)[names].set_axis(["centre", "low", "high"], axis=1)
    if names is of_several and set(of_one) <= set(summary):  # rows of one run beside rows of several
        found = found.fillna(summary[of_one].set_axis(found.columns, axis=1))
    return found.assign(low=found["low"].fillna(found["centre"]), high=found["high"].fillna(found["centre"]))


def caption(summary: pd.DataFrame) -> str:
    """Describe the centre and the ends of `bounds`, for a figure."""
    if summary.empty or table_of("summary", summary, ["runs"])["runs"].max() < 2:
        has_one_round = "rounds" in summary and not summary.empty and summary["rounds"].max() < 2
        return "one run" if has_one_round else "median and range over the rounds of one run"
    fewest, most = (int(count) for count in (summary["runs"].min(), summary["runs"].max()))
    runs = f"{most}" if fewest == most else f"{fewest} to {most}"
    return f"mean over {runs} runs and its 95 % interval"


def _one(floors: pd.DataFrame) -> float:
    return float(floors["noise_floor"].iloc[0]) if len(floors) else float("nan")
