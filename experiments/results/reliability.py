"""Warnings about unreliable times, from the columns that were recorded with them.

Contract. `warned(table, quick)` adds a column `warning` to a table of times: the warnings of each row,
separated by "; ", empty where there are none. A row is warned by what holds for the samples of its own name
(its ordering, search, ...) in its case and run, and by its own working set and cache. Ticks show over the
names of a case together, and so does the load beside names that were sampled for less than a second. The
terminal, the footer of every figure and every estimate of `results.gains` show the warnings of their rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.results.tables import numbered, table_of
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
_LONG_NAME_MS = 1000.0  # of all samples of a name; the counters of many cores are off by a tick each
TICK_MS = (4.0, 10.0)  # of Linux's scheduler at 250 and at 100 Hz
_NEAR_TICK = 0.04  # of a tick: a case's samples lie so near to a multiple of it
# Columns that name the cases compared.
NAMES = ("name", "encoder", "ordering", "search", "cell_order", "rung", "place", "memory", "schedule")
_FEWEST = 3  # cases that are needed to detect ticks
_MOST_NAMES = 3  # that a warning lists
SEPARATOR = "; "


def warned(table: pd.DataFrame, quick: bool = False) -> pd.DataFrame:
    """Add the column `warning` to a table.

    Args:
        table: rows of times, with any of the columns of `experiments.measurement.rounds`. Where those of a
            check are missing, a recorded column `warning` counts.
        quick: whether the run was made with `--quick`.

    Raises:
        TypeError: no table, or no bool.
    """
    quick = checks.flag("quick", quick)
    if table_of("table", table).empty:
        return table
    if "round" not in table:  # of a run before 2026-11-23
        return table.assign(warning=SERIAL)
    case, name = numbered(table, ["case"]), numbered(table, ["case", *NAMES])
    before, texts = _recorded(table), np.full(len(table), "", dtype=object)
    for text, (_, judge, columns) in CHECKS.items():
        is_judged = any(column in table for column in columns)
        marked = judge(table, case, name) if is_judged else _has(before, text)
        marked = marked | (quick and text == SMALL)
        texts[marked] = [f"{found}{SEPARATOR}{text}" if found else text for found in texts[marked]]
    return table.assign(warning=texts)


def _recorded(table: pd.DataFrame) -> pd.Series:
    """Return the recorded warnings of each row; empty text for none."""
    return table["warning"].fillna("") if "warning" in table else pd.Series("", index=table.index)


def _has(texts: pd.Series, text: str) -> np.ndarray:
    """Return for each row whether a warning is among its warnings."""
    return texts.isin([known for known in texts.unique() if text in known.split(SEPARATOR)]).to_numpy()


def warnings_in(texts: pd.Series) -> tuple[str, ...]:
    """Return the warnings of some rows, each once: in the order of the checks, then others by name.

    Args:
        texts: a column `warning`, without missing values.
    """
    found = {one for text in texts.unique() for one in text.split(SEPARATOR)} - {""}
    return tuple(sorted(found, key=lambda text: ([*SHORT, text].index(text), text)))


def lines(table: pd.DataFrame) -> list[str]:
    """List each warning of a table with its names and cases, for the terminal."""
    if "warning" not in table_of("table", table) or "case" not in table:
        return []
    texts, every, found = _recorded(table), table["case"].nunique(), []
    for text in warnings_in(texts):
        cases = sorted(table.loc[_has(texts, text), "case"].astype(int).unique())
        where = "every case" if len(cases) == every else f"case {', '.join(map(str, cases))}"
        found.append(f"{text} ({' in '.join(filter(None, (_names_of(text, table), where)))})")
    return found


def footer(table: pd.DataFrame) -> str:
    """Join all warnings of a table in one line, each with its names and runs; empty for none."""
    texts = _recorded(table_of("table", table))
    runs = table["run"] if "run" in table else pd.Series(0, index=table.index)
    every, parts = runs.nunique(), []
    for text in warnings_in(texts):
        warned_runs = runs[_has(texts, text)].nunique()
        in_runs = f"in {warned_runs} of {every} runs" if 1 < every != warned_runs else ""
        note = ", ".join(filter(None, (_names_of(text, table), in_runs)))
        parts.append(f"{text} ({note})" if note else text)
    return "Warning: " + SEPARATOR.join(parts) if parts else ""


def _names_of(text: str, table: pd.DataFrame) -> str:
    """Return the few names that have a warning while all others lack it; empty if names do not tell."""
    has = _has(_recorded(table), text)
    best: list[str] = []
    for name in (name for name in NAMES if name in table):
        those, others = set(table.loc[has, name].dropna()), set(table.loc[~has, name].dropna())
        is_few = 0 < len(those) <= _MOST_NAMES and bool(others) and not those & others
        if is_few and (not best or len(those) < len(best)):
            best = sorted(map(str, those))
    return ", ".join(best)


def is_busy(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether other work took cores that the samples needed, or their threads waited for a core.

    The system's counters tick every 10 ms, so the load of short samples counts as the mean over all of them,
    and that of a name sampled for less than a second as the mean over its case.
    """
    lacking = _column(rows, "other_load_cores") - _column(rows, "spare_cores")
    if not ((lacking > 0) | (_column(rows, "waited_share") > MOST_WAITED)).any():
        return np.zeros(len(rows), bool)
    weights = rows["sample_ms"] if "sample_ms" in rows else pd.Series(1.0, index=rows.index)
    is_long = weights.groupby(name).transform("sum").to_numpy() >= _LONG_NAME_MS
    loads = [_is_loaded(rows, lacking, weights, by) for by in (name, case)]
    return np.where(is_long, *loads)


def _is_loaded(rows: pd.DataFrame, lacking: pd.Series, weights: pd.Series, by: np.ndarray) -> np.ndarray:
    """Return whether the load of the samples of a group is too high."""
    known = lacking.notna() & weights.notna()
    alone = np.where(weights >= LONG_MS, np.arange(len(rows)), -1)
    sums = (lacking * weights)[known].groupby([by[known], alone[known]]).sum().clip(lower=0)
    share = sums.groupby(level=0).sum() / weights[known].groupby(by[known]).sum()
    waited = _column(rows, "waited_share")
    known = waited.notna() & weights.notna()
    mean = (waited * weights)[known].groupby(by[known]).sum() / weights[known].groupby(by[known]).sum()
    loads = [(share, MOST_OTHER), (mean, MOST_WAITED)]
    return np.any([pd.Series(by).map(load).to_numpy(float) > most for load, most in loads], axis=0)


def sits_on_ticks(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether the samples of nearly all names of a case last a whole number of the scheduler's ticks.

    Of the samples of a name in a round the longest counts, for the phases of a step are parts of it and end
    between two ticks. A name lies near a multiple by chance in one of twelve; three or more that all do, each
    in most of its rounds, are no chance.
    """
    timed = pd.DataFrame({"case": case, "name": name, "round": rows["round"].to_numpy()})
    timed = timed.assign(ms=_column(rows, "sample_ms").to_numpy()).dropna()
    if timed.empty or timed["ms"].max() < min(TICK_MS):
        return np.zeros(len(rows), bool)
    whole = timed.groupby(["case", "name", "round"])["ms"].max()
    of_name = whole.groupby(level=["case", "name"])
    found = np.zeros(int(case.max()) + 1, bool)
    for tick in TICK_MS:
        near = ((whole / tick - np.rint(whole / tick)).abs() < _NEAR_TICK).groupby(level=["case", "name"])
        is_near = (near.mean() >= 0.8)[of_name.median() > 0.9 * tick].groupby(level="case")
        on_ticks = (is_near.size() >= _FEWEST) & (is_near.mean() >= 0.8)
        found[on_ticks.index[on_ticks]] = True
    return found[case]


def disagrees(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether phases and whole steps of a name differ by over 15 % in the median over rounds."""
    medians = _column(rows, "phases_over_step").groupby(name).transform("median")
    return ((medians - 1).abs() > MOST_APART).to_numpy()


def slowed_down(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether the lowest clock of a GPU for a name is more than 5 % below the highest in its case."""
    clocks = _column(rows, "clock_MHz")
    lowest, highest = clocks.groupby(name).transform("min"), clocks.groupby(case).transform("max")
    return (lowest < (1 - MOST_SLOWER) * highest).to_numpy()


def holds_recording(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether a sample of a name holds compiling or recording although it was repeated."""
    recorded = rows["recorded"].fillna(False).astype(bool)
    return recorded.groupby(name).transform("any").to_numpy()


def fits_cache(rows: pd.DataFrame, case: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return whether the working set of a row fits the last cache."""
    return (_column(rows, "working_set_MB") <= _column(rows, "cache_MB")).to_numpy()


def _column(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.to_numeric(rows[name]) if name in rows else pd.Series(np.nan, index=rows.index)


class Check(NamedTuple):
    """Check of the rows of a table.

    Attributes:
        short: its warning in short, beside a number.
        judge: rows, numbers of their cases and of their names in them -> whether each row is warned.
        reads: columns; where all are missing, the recorded warnings count.
    """

    short: str
    judge: Callable[[pd.DataFrame, np.ndarray, np.ndarray], np.ndarray]
    reads: tuple[str, ...]


CHECKS = {
    BUSY: Check("busy", is_busy, ("other_load_cores", "waited_share")),
    TICKS: Check("on ticks", sits_on_ticks, ("sample_ms",)),
    PHASES: Check("phases disagree", disagrees, ("phases_over_step",)),
    CLOCK: Check("clock fell", slowed_down, ("clock_MHz",)),
    RECORDED: Check("recording", holds_recording, ("recorded",)),
    SMALL: Check("does not carry over", fits_cache, ("working_set_MB",)),
}
SHORT = {text: check.short for text, check in CHECKS.items()} | {SERIAL: "in series"}  # beside a number
