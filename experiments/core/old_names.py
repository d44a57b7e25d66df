"""Names in older runs and what they are now: fields of a Config, words in fields and columns, columns.

The one table of them, for every experiment. Runs are kept as they were recorded; `--from`, `--resume` and
`--replot` read them under the names of now. A field, a word or a column that is renamed gets an entry in
`NAMES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from experiments.analysis.baselines import AGED, FRESH, LATTICE
from experiments.analysis.tables import table_of


@dataclass(frozen=True)
class OldNames:
    """Names that one experiment used in older runs.

    Args:
        fields: name of a field of the Config in older runs -> name now; None for a field that is gone.
        values: name now of a field, and of the column of that name -> word in older runs -> word now.
        columns: name of a column in older runs -> name now.
    """

    fields: Mapping[str, str | None] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


TIMED = OldNames(fields={"samples": "rounds", "repeats": "runs"})  # of every experiment whose rows are times
NAMES: dict[str, OldNames] = {  # by experiment
    "timing": OldNames(fields={"warmup": None}),
    "reorder_cost": OldNames(values={"memory": {"worn": AGED, "ordered": FRESH}}),
    "speed_up": OldNames(values={"ordering": {LATTICE: AGED}}),
}


def settings_now(told: Mapping[str, Any], experiment: str, timed: bool) -> dict[str, Any]:
    """Settings of a run under the names that fields and words have now.

    Args:
        told: the settings as they were recorded. A field that is there under both names has the value of the
            name now.
        experiment: its name.
        timed: whether its rows are times.
    """
    names = NAMES.get(experiment, OldNames())
    fields = {**(TIMED.fields if timed else {}), **names.fields}
    found = {}
    for old, value in told.items():
        name = fields.get(old, old)
        if name is None or (name != old and name in told):
            continue
        words = names.values.get(name, {})
        found[name] = [_word(words, one) for one in value] if isinstance(value, list) else _word(words, value)
    return found


def table_now(table: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """A table of a run under the names that columns and words have now.

    Args:
        table: as it was recorded. A column that is there under both names is left as it is.
        experiment: its name.

    Raises:
        TypeError: no table.
    """
    names, columns = NAMES.get(experiment, OldNames()), table_of("table", table).columns
    renamed = {old: new for old, new in names.columns.items() if new not in columns}
    table = table.rename(columns=renamed)
    words = {column: dict(of) for column, of in names.values.items() if column in table}
    return table.replace(words) if words else table


def _word(words: Mapping[str, str], value: Any) -> Any:
    return words.get(value, value) if isinstance(value, str) else value
