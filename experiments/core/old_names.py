"""Table of names that were changed since older runs: experiments, fields of a Config, words, columns.

There is one table for all experiments. Runs are kept as they were recorded; `--from`, `--replot` and the
readers of kept runs read them under the present names. A renamed field, word or column, and an experiment
that became part of another, gets an entry in `NAMES`. A file in `experiments/former/` runs the command of
such an experiment, by `run_by_old_name`.
"""

import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from experiments.core.settings import flag_of, values
from experiments.results.baselines import AGED, FRESH, LATTICE
from experiments.results.tables import table_of

_OF_A_RUN = ("--from", "--resume", "--replot")  # flags that take the settings of a run


@dataclass(frozen=True)
class OldNames:
    """Names in the runs that were recorded under one name of an experiment.

    Args:
        fields: old name of a field of the Config -> present name; None for a removed field.
        values: present name of a field, and of its column -> old word -> present word.
        columns: old name of a column -> present name.
        now: present name of the experiment; empty if it is still the same.
        adds: field that the experiment had not under this name -> its value; a list of one value for an
            axis, which is a column too.
    """

    fields: Mapping[str, str | None] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    now: str = ""
    adds: Mapping[str, Any] = field(default_factory=dict)


TIMED = OldNames(fields={"samples": "rounds", "repeats": "runs"})  # of every experiment that measures times
_MAPS = {  # defaults of a former experiment
    "average": "tiles",
    "geometry": ["squares"],
    "search": ["linked"],
    "model": ["block"],
    "size": 512,
    "ordering": ["shuffled", "row", "hilbert"],
    "filling_fraction": [0.4],
    "cache": [33125, 256],
}
NAMES: dict[str, OldNames] = {  # by the name of the experiment that a run records
    "timing": OldNames(fields={"warmup": None}),
    "decay": OldNames(fields={"looks": "observations"}),
    "flock_order": OldNames(fields={"looks": "observations"}),
    "flock_decay": OldNames(
        fields={
            **TIMED.fields,
            "looks": "observations",
            "ages": "observations",
            "last": "steps",
            "steps": "sample",
        },
        now="decay",
        adds={"scene": "flock"},
    ),
    "wear": OldNames(
        now="decay",
        adds={"measured": ("results/reference/interval/h200", "results/reference/interval/h200_8388608")},
    ),
    "gas_ladder": OldNames(now="ladder", adds={"scene": "gas", "steps": 50}),
    "mixture": OldNames(adds={"room": [1.0]}),
    "reorder_cost": OldNames(values={"memory": {"worn": AGED, "ordered": FRESH}}),
    "speed_up": OldNames(values={"ordering": {LATTICE: AGED}}, now="timing", adds={"scene": "box"}),
    "fence": OldNames(now="contacts", adds={"array": "boxes", "n": [2**20]}),
    "grid_limits": OldNames(now="contacts", adds={"array": "cells", "n": [2**17]}),
    "cards": OldNames(fields={"samples": "samples"}),  # a present field of its own
    "cache_map": OldNames(now="cache_hit", adds=_MAPS),
}


def experiment_now(experiment: str) -> str:
    """Return the present name of an experiment.

    Args:
        experiment: name that a run records, or that a user gives.
    """
    return NAMES.get(experiment, OldNames()).now or experiment


def settings_now(recorded: Mapping[str, Any], experiment: str, timed: bool) -> dict[str, Any]:
    """Rename fields and words of a run's settings to their present names.

    Args:
        recorded: the settings in the provenance. If a field has both names, the value of the present name is
            used.
        experiment: name that the run records.
        timed: whether its rows are times.
    """
    names = NAMES.get(experiment, OldNames())
    fields = {**(TIMED.fields if timed else {}), **names.fields}
    found = dict(names.adds)
    for old, value in recorded.items():
        name = fields.get(old, old)
        if name is None or (name != old and name in recorded and name not in fields):
            continue
        words = names.values.get(name, {})
        found[name] = [_word(words, one) for one in value] if isinstance(value, list) else _word(words, value)
    return found


def table_now(table: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Rename columns and words of a run's table to their present names, and add columns that are new.

    Args:
        table: as recorded. A column that has both names is left unchanged.
        experiment: name that the run records.

    Raises:
        TypeError: no table.
    """
    names, columns = NAMES.get(experiment, OldNames()), table_of("table", table).columns
    renamed = {old: new for old, new in names.columns.items() if new not in columns}
    table = table.rename(columns=renamed)
    words = {column: dict(of) for column, of in names.values.items() if column in table}
    table = table.replace(words) if words else table
    new = {name: one[0] for name, one in names.adds.items() if isinstance(one, list) and name not in table}
    return table.assign(**new) if new else table


def arguments_now(arguments: Sequence[str], experiment: str) -> list[str]:
    """Return a command line of an experiment's old name under the present one.

    Args:
        arguments: the words after the old name. What the experiment had not under this name is put in front
            of them, unless a flag takes the settings of a run.
        experiment: the old name.
    """
    names = NAMES.get(experiment, OldNames())
    now: list[str] = []
    if not {word.partition("=")[0] for word in arguments} & {*_OF_A_RUN}:
        now += [word for name, one in names.adds.items() for word in (flag_of(name), *map(str, values(one)))]
    words: Mapping[str, str] = {}
    for argument in arguments:
        if not argument.startswith("--"):
            now.append(_word(words, argument))
            continue
        flag, equals, value = argument.partition("=")
        old = flag.removeprefix("--").replace("-", "_")
        name = names.fields.get(old) or old
        words = names.values.get(name, {})
        now.append(f"{flag_of(name)}{equals}{_word(words, value)}")
    return now


def run_by_old_name(experiment: str) -> None:
    """Run the experiment of today with the command line of an old name.

    Args:
        experiment: the old name, of `NAMES`.
    """
    sys.argv[1:] = arguments_now(sys.argv[1:], experiment)
    runpy.run_module(f"experiments.{experiment_now(experiment)}", run_name="__main__", alter_sys=True)


def _word(words: Mapping[str, str], value: Any) -> Any:
    return words.get(value, value) if isinstance(value, str) else value
