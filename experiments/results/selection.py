"""Rows of one run or of many, and selections of them: a filter, values of columns, groups.

Contract. A condition is a pandas query on the columns of the table, a value a column or a pandas expression
of columns. Each row belongs to a run or, if rows are predictions or numbers of several gases, to a gas;
another column may hold values that are independent of each other, such as the scenes of one run.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.results.reliability import warnings_in
from experiments.results.tables import ALIKE, names_of, numbered, table_of
from sfc import checks

RUN, GAS = "run", "gas"
BROKEN = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError, NameError)
_ROUNDS = ("round", "sample", "block")  # columns that number rounds; older tables have the others


@dataclass(frozen=True)
class Selection:
    """Values of selected rows in groups, beside those of a baseline.

    Args:
        value: column, or a pandas expression of columns.
        where: pandas query of the rows; empty for all.
        over: pandas query of the baseline; empty for all, or none.
        along: second column or expression; empty for none.
        each: columns that identify a group.
        labels: those of them that the baseline does not share.
        unit: column with values that are independent of each other; empty for runs or gases.
    """

    value: str
    where: str
    over: str
    along: str
    each: tuple[str, ...]
    labels: tuple[str, ...]
    unit: str = ""


class Runs:
    """Rows of one run or of many, as one table that is asked for estimates.

    Args:
        tables: name of each run, for errors -> its rows under the present names, as a run records them:
            columns `run`, `round` and `case`. Older tables have `repeat`, and samples in order.

    Attributes:
        rows: all rows; `_unit`, the last column, numbers the run or gas of each.
        unit: "run" or "gas".
        name: of all runs, for errors.
        alike: (rows,) numbers of the rows by size and device, see `tables.ALIKE`.

    Raises:
        TypeError: no tables.
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        parts = []
        for name, table in tables.items():
            by = "run" if "run" in table_of("table", table) else "repeat"
            numbers: Any = table[by].astype(str) if by in table else "0"
            parts.append(table.assign(_unit=f"{name} " + numbers))
        rows = pd.concat(parts, ignore_index=True)
        units = pd.factorize(rows["_unit"])[0]  # numbers compare faster than text
        of_runs = "run" in rows or ("time_ms" in rows and units.max(initial=0) + 1 == len(parts))
        self.rows, self.unit = rows.assign(_unit=units), RUN if of_runs else GAS
        self.name = ", ".join(tables)
        self.alike = numbered(rows, ALIKE)
        self._texts = rows["warning"].fillna("") if "warning" in rows else rows["_unit"]
        self._known: dict[str, Any] = {}  # expression -> its values

    @property
    def _columns(self) -> str:
        return ", ".join(map(str, self.rows.columns[:-1]))

    def warnings(self, places: np.ndarray) -> tuple[str, ...]:
        """Return the warnings of some rows, each once, in the order of the checks."""
        return warnings_in(self._texts.take(places)) if "warning" in self.rows else ()

    def selected(self, asked: Selection, name: str) -> pd.DataFrame:
        """Return the rows of a filter.

        Args:
            asked: with the filter.
            name: of the filter: "where" or "over".

        Returns:
            Columns `_unit`, `round`, `value`, `along`, `_number` (of the row in the table) and `each`.

        Raises:
            ValueError: a column that is missing, a filter without rows, or a value that is no number.
        """
        condition, each, unit = getattr(asked, name), asked.each, asked.unit
        where = f"{name} = {condition!r} on {self.name}"
        for field, given in (("each", each), ("unit", (unit,) if unit else ())):
            if missing := [column for column in given if column not in self.rows]:
                raise ValueError(f"{field} = {missing} of {where}; allowed: columns {self._columns}")
        places = self._places(condition, where)
        found = self.rows[list(dict.fromkeys(["_unit", *each]))].take(places)
        if unit:
            by = ["_unit", unit]
            found["_unit"] = self.rows[by].take(places).groupby(by, sort=False, dropna=False).ngroup()
        found["round"] = self.rounds(places, found[["_unit", *each]])
        for column, expression in (("value", asked.value), ("along", asked.along)):
            if expression:
                found[column] = self._numbers(expression, f"{column} = {expression!r} of {where}", places)
        return found.assign(_number=places)

    def rounds(self, places: np.ndarray, cases: pd.DataFrame) -> Any:
        """Return the number of the round of some rows; older tables of times have their samples in order.

        Args:
            places: (rows,) numbers of the rows.
            cases: columns that identify the case of each row.
        """
        for name in _ROUNDS:
            if name in self.rows and (found := self.rows[name].take(places)).notna().all():
                return found
        return cases.groupby(list(cases)).cumcount() if "time_ms" in self.rows else 0

    def _places(self, condition: str, where: str) -> np.ndarray:
        """Return the numbers of the rows of a filter."""
        found = np.ones(len(self.rows), bool)
        for part in parts_of(condition):
            found &= self._numbers(part, where).to_numpy(bool)
        if not found.any():
            named = [str(name) for name in self.rows if str(name) in condition]
            known = (f"{name} is one of {checks.shown(self.rows[name].unique().tolist())}" for name in named)
            raise ValueError(
                f"{where} selects no row; allowed: a filter that selects some; {'; '.join(known)}"
            )
        return np.flatnonzero(found)

    def _numbers(self, expression: str, where: str, places: np.ndarray | None = None) -> pd.Series:
        """Evaluate an expression of columns, in some rows.

        Raises:
            ValueError: it does not parse, names an unknown column, or has a value that is no number.
        """
        try:
            found = self.evaluated(expression)
        except BROKEN as error:
            raise ValueError(
                f"{where} cannot be evaluated: {error}; allowed: an expression of {self._columns}"
            ) from error
        if isinstance(found, pd.Series) and places is not None:
            found = found.take(places)
        if not isinstance(found, pd.Series) or found.dtype.kind not in "biuf" or found.isna().any():
            shown = checks.shown(getattr(found, "dtype", found))
            raise ValueError(
                f"{where} gives {shown}, or values that are missing; allowed: a number in each row; "
                "leave rows without one out of the filter"
            )
        return found

    def evaluated(self, expression: str) -> Any:
        """Evaluate an expression of columns, once: a parser takes longer than all that follows.

        Raises:
            Exception: one of `BROKEN`.
        """
        if expression in self.rows:
            return self.rows[expression]
        if expression not in self._known:
            named = [name for name in self.rows.columns if str(name) in expression]
            self._known[expression] = self.rows[named].eval(expression, engine="python")
        return self._known[expression]


@functools.lru_cache(maxsize=4096)
def parts_of(condition: str) -> tuple[str, ...]:
    """Split a filter into those that all hold."""
    try:
        tree = ast.parse(condition, mode="eval").body
    except SyntaxError:  # the evaluation names the fault
        return (condition,) if condition else ()
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return tuple(part for value in tree.values for part in parts_of(ast.unparse(value)))
    return (condition,)


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
