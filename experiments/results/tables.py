"""Check that a table is one and has the columns to be read; describe its sizes; write it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from sfc import checks

SIZES = ("n", "particles")  # columns of a table with the size of a system
MOST_SIZES = 4  # that are listed one by one


def table_of(name: str, table: Any, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Return a table after checking its columns.

    Args:
        name: of the argument, for the message.
        table: what was given.
        columns: to be read.

    Raises:
        TypeError: no `pandas.DataFrame`, or a name of a column that is no str.
        ValueError: columns are missing; the error names them.
    """
    checks.instance(name, table, pd.DataFrame, "a pandas.DataFrame")
    columns = [checks.text("column", column) for column in columns]
    missing = [column for column in columns if column not in table]
    if missing:
        raise ValueError(
            f"{name} has no column {', '.join(map(repr, missing))}; allowed: a table with "
            f"{', '.join(columns)}; this one has {checks.shown(list(table.columns))}"
        )
    return table


def names_of(name: str, given: Any) -> list[str]:
    """Return names of columns as a list.

    Args:
        name: of the argument, for the message.
        given: a sequence of str.

    Raises:
        TypeError: no sequence, or an entry that is no str.
    """
    return [checks.text(name, column) for column in checks.sequence(name, given, "names of columns")]


def sizes_of(table: pd.DataFrame, config: Mapping[str, Any]) -> str:
    """Describe the sizes of the systems of a run: each, or the smallest and the largest.

    Args:
        table: of the run, with a column of `SIZES` or none.
        config: of the run; its `n` counts if the table has none of the columns.

    Raises:
        TypeError: no table.
    """
    column = next((name for name in SIZES if name in table_of("table", table)), None)
    given: Any = config.get("n", []) if column is None else table[column].dropna().unique()
    sizes = sorted(int(value) for value in (given if hasattr(given, "__iter__") else [given]))
    shown = [f"{value:,}" for value in sizes]
    return "; ".join(shown) if len(shown) <= MOST_SIZES else f"{shown[0]} to {shown[-1]}"


def save_table(table: pd.DataFrame, folder: Path, name: str) -> Path:
    """Write a table as CSV, whole or not at all.

    Args:
        table: one row is one observation; the index is left out.
        folder: of the file.
        name: of the file, without .csv.

    Returns:
        The path.

    Raises:
        ValueError: a name with a folder.
        OSError: it cannot be written; the error names the file.
    """
    table_of("table", table)
    if Path(checks.text("name", name)).name != name:
        raise checks.refuse_value("name of a table", name, "a name without a folder")
    path = as_path("folder", folder) / f"{name}.csv"
    write_atomically(path, lambda file: table.to_csv(file, index=False, mode="wb"))
    return path
