"""Check that a table is one, and that it has the columns to be read."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from sfc import checks


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
