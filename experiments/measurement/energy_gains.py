"""Gains in energy beside gains in time: table, chart columns and words from the columns of `energy.energies`.

A gain in energy is the baseline's energy of a step over that of the case, as a gain in time is of times. Both
are of the same steps, those taken while the energy was read. Their ratio is that of the mean powers.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from experiments.results import gains
from experiments.results.answers import estimate, quoted
from experiments.results.baselines import is_again
from experiments.results.charts import Summary
from experiments.results.tables import table_of

ENERGY, ABOVE_IDLE, TIME = "energy (J)", "energy above idle (J)", "time (ms)"
RESOURCES = {ENERGY: "energy_J", ABOVE_IDLE: "energy_above_idle_J", TIME: "energy_step_ms"}
WITHOUT_UNITS = {name: name.partition(" (")[0] for name in RESOURCES}
VERDICTS = {gains.FASTER: "less", gains.SLOWER: "more"}
_OTHERS = ("mean_power_W", "idle_W", "energy_s")


def by_resource(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with energies, once for each of `RESOURCES`.

    Args:
        table: of a run, with the columns of `energies`.

    Returns:
        The rows with two columns more: `resource`, and `used`, its number of a step. No energy above that of
        an idle device where it is not above 0. `age_steps` is that of these steps.

    Raises:
        TypeError: no table.
        ValueError: a column that is missing.
    """
    rows = table_of("table", table, [*RESOURCES.values()])
    rows = rows.assign(age_steps=rows.get("energy_age_steps"))
    found = pd.concat([rows.assign(resource=name, used=rows[of]) for name, of in RESOURCES.items()])
    return found[found["used"] > 0]  # other rounds have none


def summary_of_energy(by: Sequence[str], label: str, baselines: Any, **others: Any) -> Summary:
    """Return the view that writes `energy.csv`: quantities of a step over runs, with gains over baselines.

    The words of a verdict are "less" and "more": than the baseline takes.

    Args:
        by: columns that cases which are compared have in common.
        label: column of the cases.
        baselines: of `Summary`.
        others: fields of `Summary`.
    """
    own: dict[str, Any] = {"value": "used", "name": "energy", "needs": "energy_J", "prepare": by_resource}
    return _OfEnergy((*by, "resource"), label, baselines, more=dict.fromkeys(_OTHERS, "mean"), **own | others)


class _OfEnergy(Summary):
    """Summary with verdicts on what is used, in place of those on times."""

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the summary of a table of samples, with the words of `VERDICTS`."""
        found = super().table(table)
        verdicts = found.columns[found.columns.str.startswith("difference")]
        return found.assign(**found[verdicts].replace(VERDICTS))


def in_words(rows: pd.DataFrame, label: str, baselines: Sequence[str], kind: str = "") -> str:
    """Say the energy of a step of the case with the least, and its gains in energy and in time.

    Args:
        rows: of cases that are compared, with one row for each round.
        label: column that names them.
        baselines: the first of them that was measured is compared with the others, and not itself.
        kind: follows the name of a baseline: " memory".

    Returns:
        The words; empty without energies.

    Raises:
        TypeError: no table.
    """
    if "energy_J" not in table_of("rows", rows) or (rows := rows.dropna(subset="energy_J")).empty:
        return ""
    cases = rows[~rows[label].map(is_again)]
    measured = [name for name in baselines if (cases[label] == name).any()]
    others = cases[~cases[label].isin(measured)]
    means = gains.over_runs(cases if others.empty else others, [label], "energy_J")
    best: Any = means.iloc[gains.bounds(means, "energy_J")["centre"].argmin()].to_dict()
    said = f"{quoted(best[label])} takes {estimate(best, 'energy_J')} J a step"
    if others.empty or not measured:
        return said
    pair = rows[rows[label].isin([best[label], measured[0]])]
    energy, time = (
        estimate(gains.gains(pair, [], label, measured[0], RESOURCES[name]).to_dict("records")[0], "gain")
        for name in (ENERGY, TIME)
    )
    than = f"than that of {quoted(measured[0])}{kind}"
    return f"{said}; its energy is lower {than} by a factor of {energy}, its time by a factor of {time}"
