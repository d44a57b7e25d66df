"""Table of names that were renamed since older runs: fields of a Config, words, columns.

There is one table for all experiments. Runs are kept as they were recorded; `--from`, `--resume` and
`--replot` read them under the present names. A renamed field, word or column gets an entry in `NAMES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from experiments.results.baselines import AGED, FRESH, LATTICE
from experiments.results.tables import table_of


@dataclass(frozen=True)
class OldNames:
    """Renamed fields, words and columns of one experiment.

    Args:
        fields: old name of a field of the Config -> present name; None for a removed field.
        values: present name of a field, and of its column -> old word -> present word.
        columns: old name of a column -> present name.
    """

    fields: Mapping[str, str | None] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


TIMED = OldNames(fields={"samples": "rounds", "repeats": "runs"})  # of every experiment that measures times
NAMES: dict[str, OldNames] = {  # by experiment
    "timing": OldNames(fields={"warmup": None}),
    "decay": OldNames(fields={"looks": "observations"}),
    "flock_order": OldNames(fields={"looks": "observations"}),
    "flock_decay": OldNames(fields={"looks": "ages"}),
    "reorder_cost": OldNames(values={"memory": {"worn": AGED, "ordered": FRESH}}),
    "speed_up": OldNames(values={"ordering": {LATTICE: AGED}}),
}


def settings_now(recorded: Mapping[str, Any], experiment: str, timed: bool) -> dict[str, Any]:
    """Rename fields and words of a run's settings to their present names.

    Args:
        recorded: the settings in the provenance. If a field has both names, the value of the present name is
            used.
        experiment: its name.
        timed: whether its rows are times.
    """
    names = NAMES.get(experiment, OldNames())
    fields = {**(TIMED.fields if timed else {}), **names.fields}
    found = {}
    for old, value in recorded.items():
        name = fields.get(old, old)
        if name is None or (name != old and name in recorded):
            continue
        words = names.values.get(name, {})
        found[name] = [_word(words, one) for one in value] if isinstance(value, list) else _word(words, value)
    return found


def table_now(table: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Rename columns and words of a run's table to their present names.

    Args:
        table: as recorded. A column that has both names is left unchanged.
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
