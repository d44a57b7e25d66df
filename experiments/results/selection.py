"""Rows of one run or of many, and selections of them: a filter, values of columns, groups.

Contract. A condition is a pandas query on the columns of the table, a value a column or a pandas expression
of columns. Each row belongs to a run or, if rows are predictions or numbers of several gases, to a gas;
another column may hold values that are independent of each other, such as the scenes of one run.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.results.reliability import SEPARATOR
from experiments.results.tables import table_of
from sfc import checks

RUN, GAS = "run", "gas"
BROKEN = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError, NameError)
_ROUNDS = ("round", "sample", "block")  # columns that number rounds; older tables have the others


class Runs:
    """Rows of one run or of many, as one table that is asked for estimates.

    Args:
        tables: name of each run, for errors -> its rows under the present names, as a run records them:
            columns `run`, `round` and `case`. Older tables have `repeat`, and samples in order.

    Attributes:
        rows: all rows; `_unit`, the last column, numbers the run or gas of each.
        unit: "run" or "gas".
        name: of all runs, for errors.

    Raises:
        TypeError: no tables.
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        parts = []
        for name, table in tables.items():
            by = "run" if "run" in table_of("table", table) else "repeat"
            numbers = table[by].astype(str) if by in table else "0"
            parts.append(table.assign(_unit=f"{name} " + numbers))
        rows = pd.concat(parts, ignore_index=True)
        numbers = pd.factorize(rows["_unit"])[0]  # numbers compare faster than text
        of_runs = "run" in rows or ("time_ms" in rows and numbers.max(initial=0) + 1 == len(parts))
        self.rows, self.unit = rows.assign(_unit=numbers), RUN if of_runs else GAS
        self.name = ", ".join(tables)

    @functools.cached_property
    def _warnings(self) -> tuple[np.ndarray, list[str]] | None:
        """Number of the warnings of each row, and all warnings by their number."""
        if "warning" not in self.rows:
            return None
        numbers, texts = pd.factorize(self.rows["warning"].fillna(""))
        return numbers, list(texts)

    def warnings(self, places: np.ndarray) -> tuple[str, ...]:
        """Return the warnings of some rows, each once, in the order of the rows' texts."""
        if self._warnings is None:
            return ()
        numbers, texts = self._warnings
        found = (texts[k].split(SEPARATOR) for k in np.unique(numbers[places]))
        return tuple(dict.fromkeys(text for part in found for text in part if text))

    def selected(
        self, name: str, condition: str, value: str, along: str, each: Sequence[str], unit: str
    ) -> pd.DataFrame:
        """Return the rows of a filter.

        Args:
            name: of the filter, for errors.
            condition: pandas query; empty for all rows.
            value: column, or a pandas expression of columns.
            along: second one; empty for none.
            each: columns that identify a group.
            unit: column whose values are independent of each other; empty for runs or gases.

        Returns:
            Columns `_unit`, `round`, `value`, `along`, `_number` (of the row in the table) and `each`.

        Raises:
            ValueError: a column that is missing, a filter without rows, or a value that is no number.
        """
        where, rows = f"{name} = {condition!r} on {self.name}", self.rows
        if condition:
            rows = rows[_expression(rows, condition, where).astype(bool)]
        if rows.empty:
            values = _values(self.rows, condition)
            raise ValueError(f"{where} selects no row; allowed: a filter that selects some; {values}")
        found = rows[["_unit", *_known(rows, "each", each, where)]].assign(round=rounds_of(rows, each))
        found["_number"] = rows.index
        if unit:
            _known(rows, "unit", (unit,), self.name)
            found["_unit"] = rows.groupby(["_unit", unit], sort=False, dropna=False).ngroup()
        for column, expression in (("value", value), ("along", along)):
            if expression:
                found[column] = _expression(rows, expression, f"{column} = {expression!r} of {where}")
        return found


def _expression(rows: pd.DataFrame, expression: str, where: str) -> pd.Series:
    """Evaluate an expression of columns.

    Raises:
        ValueError: it does not parse, names an unknown column, or has a value that is no number.
    """
    try:
        found = evaluated(rows, expression)
    except BROKEN as error:
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


def evaluated(rows: pd.DataFrame, expression: str) -> Any:
    """Evaluate an expression of columns; one of `BROKEN` is raised if that fails."""
    if expression.isidentifier() and expression in rows:
        return rows[expression]  # a parser takes longer than all that follows
    named = [name for name in rows.columns if str(name) in expression]
    return rows[named].eval(expression, engine="python")


def _known(table: pd.DataFrame, field: str, columns: Sequence[str], where: str) -> list[str]:
    if missing := [name for name in columns if name not in table]:
        raise ValueError(
            f"{field} = {missing} of {where}; allowed: columns {', '.join(map(str, table.columns[:-1]))}"
        )
    return list(columns)


def _values(table: pd.DataFrame, condition: str) -> str:
    """Return the values of the columns that a filter names, for an error."""
    named = [str(name) for name in table.columns if str(name) in condition]
    return "; ".join(f"{name} is one of {checks.shown(table[name].unique().tolist())}" for name in named)


def rounds_of(rows: pd.DataFrame, each: Sequence[str]) -> Any:
    """Return the number of the round of each row; older tables of times have their samples in order."""
    for name in _ROUNDS:
        if name in rows and rows[name].notna().all():
            return rows[name]
    return rows.groupby(["_unit", *each]).cumcount() if "time_ms" in rows else 0
