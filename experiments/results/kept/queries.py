"""Queries on committed tables: a run, a filter and a statistic give a number with its interval.

Contract. The rows of a query are those of its runs that its filter selects. They belong to runs (each a gas
and a process of its own) or, if they are predictions or numbers of several gases, to gases; a query may name
another column whose values are independent of each other, such as the scenes of one run. Of several runs the
answer is the mean of the logarithms with Student's t interval (95 %); of parts of a whole, which cannot
exceed 1, that of log(x / (1 - x)); of several gases or scenes, and of runs with numbers not all above 0,
the median and the range. One run or gas gives its median and the range of its rounds, and is called so.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.core.old_names import table_now
from experiments.core.record import read_table
from experiments.results import statistics
from experiments.results.reductions import STATISTICS, Rows, Statistic
from sfc import checks

REFERENCE = Path(__file__).parents[3] / "results" / "reference"
RUN, GAS = "run", "gas"
LOWEST, HIGHEST = "lowest", "highest"
_ROUNDS = ("round", "sample", "block")  # columns that number rounds; older tables have the others

_BROKEN = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError, NameError)


@dataclass(frozen=True)
class Answer:
    """Answer of a query.

    Args:
        value: the number.
        low: lower end of the interval.
        high: upper end.
        runs: how many runs, gases or values of `Query.unit` it rests on.
        unit: "run", "gas" or `Query.unit`.
        rounds: the fewest rounds of a run.
        is_range: whether `low` and `high` are a range.
        case: the case that was picked among several; empty for one case.
    """

    value: float
    low: float
    high: float
    runs: int
    unit: str
    rounds: int
    is_range: bool
    case: str = ""

    @property
    def support(self) -> str:
        """How many runs or gases the answer rests on, such as "one run" or "3 gases"."""
        if self.runs == 1:
            return f"one {self.unit}"
        return f"{self.runs} {'gases' if self.unit == GAS else self.unit + 's'}"

    @property
    def interval(self) -> str:
        """What `low` and `high` are."""
        if self.runs == 1:
            return f"range of {self.rounds} rounds of {self.support}" if self.rounds > 1 else self.support
        return f"{'range' if self.is_range else '95 %'} over {self.support}"


@dataclass(frozen=True)
class Query:
    """Query on the tables of one run or more.

    Args:
        run: folders below `results/reference`, `<experiment>/<name>`.
        where: pandas query that selects the rows.
        value: column, or a pandas expression of columns.
        statistic: one of `STATISTICS`.
        over: pandas query that selects the baseline, for statistics that have one; else empty.
        along: second column or expression, for statistics that have one; else empty.
        each: columns; the statistic is taken in each of their groups.
        pick: "lowest" or "highest": which of the groups is the answer; empty without `each`.
        unit: column whose values are independent of each other, such as "scene"; empty: runs or gases.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a word that is unknown, or `over`, `along` or `pick` missing or superfluous.
    """

    run: tuple[str, ...]
    where: str
    value: str
    statistic: str
    over: str = ""
    along: str = ""
    each: tuple[str, ...] = ()
    pick: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        if not checks.sequence("run", self.run, "folders below results/reference"):
            raise checks.refuse_value("run", self.run, "one folder or more")
        for name in ("where", "value"):
            checks.text(name, getattr(self, name))
        for name in ("over", "along", "pick", "unit"):
            checks.instance(name, getattr(self, name), str, "a str")
        kind = STATISTICS[checks.word("statistic", self.statistic, STATISTICS)]
        uses = {"over": kind.has_baseline, "along": kind.has_second, "pick": bool(self.each)}
        for name, needed in uses.items():
            if needed != bool(getattr(self, name)):
                of = "with `each` alone" if name == "pick" else f"statistic {self.statistic!r}"
                allowed = f"{'one' if needed else 'none'} ({of})"
                raise checks.refuse_value(name, getattr(self, name), allowed)
        if self.each:
            checks.word("pick", self.pick, (LOWEST, HIGHEST))


def evaluate(query: Query, root: Path = REFERENCE) -> Answer:
    """Evaluate a query.

    Args:
        query: what is asked.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a column that is missing, a filter without rows, a value that is no number, or rounds that
            cannot be paired.
    """
    return _evaluated(query, root)


@functools.lru_cache(maxsize=2048)
def _evaluated(query: Query, root: Path) -> Answer:
    """Evaluate a query; pages and the judgements of claims ask the same ones."""
    answers = [answer for _, answer in _answers(query, query.each, query.each, root)]
    return (max if query.pick == HIGHEST else min)(answers, key=lambda answer: answer.value)


def evaluate_each(
    query: Query, each: tuple[str, ...], compared: str = "", root: Path = REFERENCE
) -> list[tuple[dict[str, Any], Answer]]:
    """Evaluate a query in each group of its rows, for a chart.

    Args:
        query: what is asked, without `each` of its own.
        each: columns that identify a group.
        compared: the one of them that the baseline does not share, such as `ordering` if orders are compared
            with one of them; empty for none.
        root: folder of the runs.

    Returns:
        The values of `each` and the answer of every group, in the order of the table; groups without a
        baseline are left out.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: see `evaluate`; or a query with `each`, or a column that is not in `each`.
    """
    if query.each:
        raise checks.refuse_value("each", query.each, "a query without", "give it beside the query")
    if compared:
        checks.word("compared", compared, each)
    shared = tuple(name for name in each if name != compared)
    return [
        (dict(zip(each, key, strict=True)), answer) for key, answer in _answers(query, each, shared, root)
    ]


def _answers(
    query: Query, each: tuple[str, ...], shared: tuple[str, ...], root: Path
) -> Iterator[tuple[tuple, Answer]]:
    """Yield the values of `each` and the answer of every group.

    Args:
        query: what is asked.
        each: columns that identify a group.
        shared: those of them that its baseline has in common with it.
        root: folder of the runs.

    Raises:
        ValueError: see `evaluate`; a group without a baseline only if it shares all of `each`.
    """
    table = _table(query.run, root)
    if query.unit:
        _known(table, "unit", (query.unit,), ", ".join(query.run))
        table = table.assign(_unit=table["_unit"] + " " + table[query.unit].astype(str))
    table = table.assign(_unit=pd.factorize(table["_unit"])[0])  # numbers compare faster than text
    kind = STATISTICS[query.statistic]
    rows = _selected(table, "where", query.where, query, each)
    over = _selected(table, "over", query.over, query, each) if kind.has_baseline else rows.iloc[:0]
    unit = query.unit or _unit_of(table, len(query.run))
    places = [each.index(name) for name in shared]
    baselines = dict(_groups(over, shared))
    for key, own in _groups(rows, each):
        case = _case(each, key)
        baseline = baselines.get(tuple(key[k] for k in places), {})
        if kind.has_baseline and not baseline:
            if shared != each:
                continue
            raise ValueError(
                f"{query.statistic} of {', '.join(query.run)}: over = {query.over!r} has no row where "
                f"{case}; allowed: a baseline in each group"
            )
        try:
            yield key, _answer(own, baseline, kind, unit, case)
        except ValueError as error:
            raise ValueError(
                f"{query.statistic} of {', '.join(query.run)}{case and f', {case}'}: {error}"
            ) from error


@functools.lru_cache(maxsize=64)
def _table(runs: tuple[str, ...], root: Path) -> pd.DataFrame:
    """Return the tables of some runs as one, under the present names; `_unit` is the run or gas of a row."""
    parts = []
    for run in runs:
        table = table_now(read_table(root / run), run.split("/")[0])
        by = "run" if "run" in table else "repeat"
        numbers = table[by].astype(str) if by in table else "0"
        parts.append(table.assign(_unit=f"{run} " + numbers))
    return pd.concat(parts, ignore_index=True)


def _unit_of(table: pd.DataFrame, folders: int) -> str:
    """Return whether rows belong to runs or gases; older tables of times are one run if they have one gas."""
    return RUN if "run" in table or ("time_ms" in table and table["_unit"].nunique() == folders) else GAS


def _selected(
    table: pd.DataFrame, name: str, condition: str, query: Query, each: tuple[str, ...]
) -> pd.DataFrame:
    """Return the rows of a filter with the columns `_unit`, `round`, `value`, `along` and those of `each`.

    Raises:
        ValueError: see `evaluate`.
    """
    where = f"{name} = {condition!r} on {', '.join(query.run)}"
    rows = table[_expression(table, condition, where).astype(bool)]
    if rows.empty:
        raise ValueError(
            f"{where} selects no row; allowed: a filter that selects some; {_values(table, condition)}"
        )
    found = rows[["_unit", *_known(table, "each", each, where)]].assign(round=_rounds(rows, each))
    for column, expression in (("value", query.value), ("along", query.along)):
        if expression:
            numbers = _expression(rows, expression, f"{column} = {expression!r} of {where}")
            found = found.assign(**{column: numbers})
    return found


def _expression(rows: pd.DataFrame, expression: str, where: str) -> Any:
    """Evaluate an expression of columns.

    Raises:
        ValueError: it does not parse, names an unknown column, or has a value that is no number.
    """
    try:
        found: Any
        if expression.isidentifier() and expression in rows:
            found = rows[expression]  # a parser takes longer than all that follows
        else:
            named = [name for name in rows.columns if str(name) in expression]
            found = rows[named].eval(expression, engine="python")
    except _BROKEN as error:
        raise ValueError(
            f"{where} cannot be evaluated: {error}; allowed: an expression of "
            f"{', '.join(map(str, rows.columns[:-1]))}"
        ) from error
    if not isinstance(found, pd.Series) or found.dtype.kind not in "biuf" or found.isna().any():
        shown = checks.shown(getattr(found, "dtype", found))
        raise ValueError(
            f"{where} gives {shown}, or values that are missing; allowed: a number in each row; "
            "leave rows without one out of the filter"
        )
    return found


def _known(table: pd.DataFrame, field: str, columns: tuple[str, ...], where: str) -> list[str]:
    if missing := [name for name in columns if name not in table]:
        raise ValueError(
            f"{field} = {missing} of {where}; allowed: columns {', '.join(map(str, table.columns[:-1]))}"
        )
    return list(columns)


def _values(table: pd.DataFrame, condition: str) -> str:
    """Return the values of the columns that a filter names, for an error."""
    named = [str(name) for name in table.columns if str(name) in condition]
    return "; ".join(f"{name} is one of {checks.shown(table[name].unique().tolist())}" for name in named)


def _rounds(rows: pd.DataFrame, each: tuple[str, ...]) -> Any:
    """Return the number of the round of each row; older tables of times have their samples in order."""
    for name in _ROUNDS:
        if name in rows and rows[name].notna().all():
            return rows[name]
    return rows.groupby(["_unit", *each]).cumcount() if "time_ms" in rows else 0


def _groups(rows: pd.DataFrame, each: tuple[str, ...]) -> Iterator[tuple[tuple, dict[int, Rows]]]:
    """Yield the values of each group and its rows by run or gas, in the order of the table."""
    if rows.empty:
        return
    by = list(each)
    group = rows.groupby(by, sort=False).ngroup().to_numpy() if by else np.zeros(len(rows), int)
    _, firsts = np.unique(group[group >= 0], return_index=True)  # -1: a value of `each` is missing
    known = rows[group >= 0]
    keys = list(zip(*(known[name].iloc[firsts].tolist() for name in by), strict=True)) if by else [()]
    along = known["along"].to_numpy() if "along" in known else None
    every, units = (
        Rows(known["round"].to_numpy(), known["value"].to_numpy(), along),
        known["_unit"].to_numpy(),
    )
    for key, places in zip(keys, _places(group[group >= 0]), strict=True):
        own = every.at(places)
        numbers = units[places]
        yield key, {unit: own.at(numbers == unit) for unit in dict.fromkeys(numbers.tolist())}


def _places(groups: np.ndarray) -> list[np.ndarray]:
    """Return the places of each group, numbered from 0."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _case(each: tuple[str, ...], key: tuple) -> str:
    """Return the values of a group in words."""
    pairs = zip(each, key, strict=True)
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in pairs
    )


def _answer(rows: dict[int, Rows], over: dict[int, Rows], kind: Statistic, unit: str, case: str) -> Answer:
    """Take the statistic in each run or gas, and combine them.

    Args:
        rows: run or gas -> its rows.
        over: run or gas -> the rows of its baseline.
        kind: the statistic.
        unit: "run", "gas" or another column.
        case: the case in words.

    Raises:
        ValueError: runs that cannot be paired, or a statistic that is no finite number.
    """
    none = Rows(np.empty(0), np.empty(0), np.empty(0))
    numbers = {name: kind.reduce(own, over.get(name, none)) for name, own in rows.items()}
    medians = np.array([np.median(values) for values in numbers.values()], float)
    if not np.isfinite(medians).all():
        raise checks.refuse_value("statistic", medians.tolist(), "finite numbers")
    if kind.is_part and not ((medians > 0) & (medians < 1)).all():
        raise checks.refuse_value(
            "parts", medians.tolist(), "numbers above 0 and below 1", "take a baseline that contains the rows"
        )
    rounds, is_range = min(map(len, numbers.values())), True
    if len(medians) == 1:
        (values,) = numbers.values()
        low, value, high = np.min(values), medians[0], np.max(values)
    elif unit != RUN or (medians <= 0).any():
        low, value, high = np.min(medians), np.median(medians), np.max(medians)
    elif kind.is_part:
        odds = np.array(statistics.interval(medians / (1 - medians)))
        (value, low, high), is_range = odds / (1 + odds), False
    else:
        (value, low, high), is_range = statistics.interval(medians), False
    return Answer(float(value), float(low), float(high), len(medians), unit, rounds, is_range, case)
