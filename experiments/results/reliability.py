"""Warnings about unreliable times, from the columns that were recorded with them.

Contract. `warned(table, quick)` adds a column `warning` to a table of times: the warnings of a row's case and
run, separated by "; ", empty where there are none. The terminal and the footer of every figure show them.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.results.tables import table_of
from sfc import checks

BUSY = "other work kept the machine busy"
TICKS = "times sit on ticks of the scheduler"
PHASES = "phases and whole steps disagree by more than 15 %"
CLOCK = "the GPU's clock fell by more than 5 %"
RECORDED = "samples hold compiling or recording"
SMALL = "too small for its answer to carry over (--quick, or it fits the last cache)"
SERIAL = "measured before samples were taken in rounds of random order"

MOST_OTHER = 0.15  # cores that other work may take of those this run needs
MOST_WAITED = 0.1  # of the wall time, that threads may wait for a core
MOST_APART = 0.15  # phases from whole steps
MOST_SLOWER = 0.05  # of a GPU's clock
LONG_MS = 100.0  # of a sample that is long enough for a load of its own
TICK_MS = (4.0, 10.0)  # of Linux's scheduler at 250 and at 100 Hz
_NEAR_TICK = 0.04  # of a tick: a case's samples lie so near to a multiple of it
NAMES = (
    "encoder",
    "ordering",
    "search",
    "cell_order",
    "rung",
    "place",
    "memory",
    "schedule",
)  # of cases compared
_FEWEST = 3  # cases that are needed to detect ticks
SEPARATOR = "; "


def warned(table: pd.DataFrame, quick: bool = False) -> pd.DataFrame:
    """Add the column `warning` to a table.

    Args:
        table: rows of times, with any of the columns of `experiments.measurement.rounds`.
        quick: whether the run was made with `--quick`.

    Raises:
        TypeError: no table, or no bool.
    """
    quick = checks.flag("quick", quick)
    if table_of("table", table).empty:
        return table
    if "round" not in table:  # of a run before 2026-11-23
        return table.assign(warning=SERIAL)
    texts = pd.Series("", index=table.index)
    for _, rows in table.groupby("case" if "case" in table else lambda _: 0, sort=False):
        found = [text for text, check in CHECKS.items() if check(rows)]
        if quick or _fits_cache(rows):
            found.append(SMALL)
        texts[rows.index] = SEPARATOR.join(found)
    return table.assign(warning=texts)


def lines(table: pd.DataFrame) -> list[str]:
    """List each warning of a table with its cases, for the terminal."""
    if "warning" not in table_of("table", table) or "case" not in table:
        return []
    cases: dict[str, set[int]] = {}
    for text, case in {*zip(table["warning"].fillna(""), table["case"], strict=True)}:
        for one in filter(None, text.split(SEPARATOR)):
            cases.setdefault(one, set()).add(int(case))
    every, found = table["case"].nunique(), []
    for text in [text for text in [*CHECKS, SMALL, SERIAL] if text in cases]:
        numbers = ", ".join(map(str, sorted(cases[text])))
        found.append(f"{text} ({'every case' if len(cases[text]) == every else f'case {numbers}'})")
    return found


def footer(table: pd.DataFrame) -> str:
    """Join all warnings of a table in one line, each with its number of runs; empty for none."""
    parts = []
    for text, runs in _runs_of(table_of("table", table)).items():
        every = table["run"].nunique() if "run" in table else 1
        parts.append(text if every < 2 or runs == every else f"{text} (in {runs} of {every} runs)")
    return "Warning: " + SEPARATOR.join(parts) if parts else ""


def _runs_of(table: pd.DataFrame) -> dict[str, int]:
    """Count the runs of each warning."""
    if "warning" not in table:
        return {}
    runs = table["run"] if "run" in table else pd.Series(0, index=table.index)
    found: dict[str, set] = {}
    for text, run in {*zip(table["warning"].fillna(""), runs, strict=True)}:
        for one in filter(None, text.split(SEPARATOR)):
            found.setdefault(one, set()).add(run)
    return {text: len(found[text]) for text in [*CHECKS, SMALL, SERIAL] if text in found}


def is_busy(rows: pd.DataFrame) -> bool:
    """Return whether other work took cores that the run needed, or its threads waited for a core.

    The system's counters tick every 10 ms, so the load of short samples counts as the mean over all of them.
    """
    weights = rows["sample_ms"] if "sample_ms" in rows else pd.Series(1.0, index=rows.index)
    lacking = _column(rows, "other_load_cores") - _column(rows, "spare_cores")
    known = lacking.notna() & weights.notna()
    lacking, weights = lacking[known], weights[known]
    alone = pd.Series(range(len(rows)), index=rows.index)[known]
    sums = (lacking * weights).groupby(alone.where(weights >= LONG_MS, -1)).sum().clip(lower=0)
    share = sums.sum() / weights.sum() if weights.sum() > 0 else 0.0
    waited = _mean(_column(rows, "waited_share"), rows.get("sample_ms", weights))
    return bool(share > MOST_OTHER or waited > MOST_WAITED)


def sits_on_ticks(rows: pd.DataFrame) -> bool:
    """Return whether the samples of nearly all cases last a whole number of ticks of the scheduler.

    Of the samples of a case in a round the longest counts, for the phases of a step are parts of it and end
    between two ticks. A case lies near a multiple by chance in one of twelve; three or more that all do, each
    in most of its rounds, are no chance.
    """
    names = [name for name in NAMES if name in rows]
    if "sample_ms" not in rows or "round" not in rows:
        return False
    timed = rows.dropna(subset=["sample_ms", "round"])
    whole = timed.groupby([*names, "round"])["sample_ms"].max()
    lengths = [part.to_numpy() for _, part in whole.groupby(level=names)] if names else [whole.to_numpy()]
    for tick in TICK_MS:
        long = [part for part in lengths if np.median(part) > 0.9 * tick]
        near = [np.abs(part / tick - np.rint(part / tick)) < _NEAR_TICK for part in long]
        if len(long) >= _FEWEST and np.mean([part.mean() >= 0.8 for part in near]) >= 0.8:
            return True
    return False


def disagrees(rows: pd.DataFrame) -> bool:
    """Return whether phases and whole steps of a case differ by over 15 % in the median over rounds."""
    if "phases_over_step" not in rows:
        return False
    names = [name for name in NAMES if name in rows]
    known = rows.dropna(subset="phases_over_step")
    medians = known.groupby(names or (lambda _: 0))["phases_over_step"].median()
    return bool((np.abs(medians - 1) > MOST_APART).any())


def slowed_down(rows: pd.DataFrame) -> bool:
    """Return whether the lowest clock of a GPU in a sample is more than 5 % below the highest."""
    clocks = _column(rows, "clock_MHz").dropna()
    return bool(len(clocks) and clocks.min() < (1 - MOST_SLOWER) * clocks.max())


def holds_recording(rows: pd.DataFrame) -> bool:
    """Return whether a sample holds compiling or recording although it was repeated."""
    return "recorded" in rows and bool(rows["recorded"].fillna(False).astype(bool).any())


def _fits_cache(rows: pd.DataFrame) -> bool:
    """Return whether the working set of a step fits the last cache."""
    return bool((_column(rows, "working_set_MB") <= _column(rows, "cache_MB")).any())


def _column(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.to_numeric(rows[name]) if name in rows else pd.Series(np.nan, index=rows.index)


def _mean(values: pd.Series, weights: pd.Series) -> float:
    known = values.notna() & weights.notna()
    return float(np.average(values[known], weights=weights[known])) if known.any() else 0.0


CHECKS: dict[str, Callable[[pd.DataFrame], bool]] = {
    BUSY: is_busy,
    TICKS: sits_on_ticks,
    PHASES: disagrees,
    CLOCK: slowed_down,
    RECORDED: holds_recording,
}
