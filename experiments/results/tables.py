"""Tables: check their columns, describe their sizes, read the columns of estimates, and write them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.results.baselines import gain_over
from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from sfc import checks

SIZES = ("n", "particles")  # columns of a table with the size of a system
ALIKE = (*SIZES, "cache_MB", "place", "strategy")  # columns that tell size, and host from device
ONE_RUN = ("median_of_rounds", "lowest_round", "highest_round")  # columns of one run, in place of an interval
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


def numbered(table: pd.DataFrame, columns: Iterable[str], dropna: bool = False) -> np.ndarray:
    """Number the rows of a table by the values of those columns that it has, in their order; 0 without any.

    Args:
        table: any.
        columns: names.
        dropna: whether rows without a value in one of them get -1.
    """
    by = [name for name in columns if name in table]
    if not by:
        return np.zeros(len(table), int)
    return table.groupby(by, sort=False, dropna=dropna, observed=True).ngroup().to_numpy()


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
