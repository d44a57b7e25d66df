"""Charts of the page: their points, estimated in each group of a table.

Contract. A chart has rows, each a point with its interval and its run. A point is the estimate of one group
of the columns `each`; kept runs are named by the chart, runs of a reader take part if they are of the same
experiment. Columns that a reader can choose from hold text.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.core.old_names import experiment_now
from experiments.results.baselines import again
from experiments.results.charts import LINES, OVER, Chart, Points, Preparation
from experiments.results.claims.judgement import Shown
from experiments.results.gains import Estimate, estimates
from experiments.results.kept.queries import runs_of
from experiments.results.page.runs import Run
from experiments.results.selection import Runs
from sfc import checks

SMALLEST_POWER = 14  # of a size that is shown as a power of two
DIGITS = 5  # of the numbers of a point; its text has those of the verdicts
Row = dict[str, Any]
NAMES = {"ordering": "order", "filling_fraction": "filling", "n": "size", "cache_particles": "cache"}


def rows(chart: Chart, kept: Mapping[str, Run], own: Sequence[Run] = ()) -> list[Row]:
    """Evaluate the points of a chart.

    Args:
        chart: which.
        kept: name -> kept run.
        own: runs of a reader.

    Returns:
        A dict for each point: `at`, a number or a name; `value`, `low`, `high`; `text`, the value with its
        interval; `of`, what the interval is; `run`; the texts of `chart.columns`.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a query on a kept run that cannot be answered; the error names chart and run.
    """
    found = []
    for points in _apart(chart):
        if points.run not in kept:
            allowed = "a folder below results/reference"
            raise checks.refuse_value(f"run of chart {chart.name}", points.run, allowed)
        try:
            found += list(_rows_of(chart, points, kept[points.run]))
        except ValueError as error:
            raise ValueError(f"chart {chart.name}: {error}") from error
    for run in own:
        found += _of_own(chart, run)
    return found


def chosen(chart: Chart, every: Sequence[Row]) -> list[Row]:
    """Return the rows that a chart shows first."""
    wanted = {select.column: select.initial for select in chart.selects if select.initial}
    return [row for row in every if all(row[column] == text for column, text in wanted.items())]


def _of_own(chart: Chart, run: Run) -> list[Row]:
    """Return the points that the queries of a chart find in a run of a reader; each query is asked once."""
    found: dict[tuple, Row] = {}
    for points in _apart(chart):
        if experiment_now(points.run.split("/")[0]) != run.experiment:
            continue
        try:
            own = list(_rows_of(chart, points, run))
        except ValueError:  # its columns or rows are others
            continue
        for row in own:
            found.setdefault(tuple(row[column] for column in ("at", *chart.columns)), row)
    return list(found.values())


def _apart(chart: Chart) -> list[Points]:
    """Return the points of a chart, those of each baseline for themselves."""
    return [
        replace(points, over=over)
        for points in chart.measures
        for over in ([(name,) for name in points.over] if points.over else [()])
    ]


def _rows_of(chart: Chart, points: Points, run: Run) -> Iterator[Row]:
    """Yield the points of a chart from a run."""
    runs = _runs_of(f"{run.folder.parent.name}/{run.folder.name}", run.folder.parent.parent, chart.prepare)
    where, over = _filters(points)
    at: dict[tuple, float] = {}
    if points.across:
        found = estimates(runs, points.across, where=where, each=points.each)
        at = {tuple(key.values()): answer.value for key, answer in found}
    value = f"({points.value}) * ({points.scale})" if points.scale else points.value
    compared = points.compared if points.compared in points.each else ""
    texts_of_all = ({OVER: str(points.over[0])} if points.over else {}) | dict(points.constants)
    named = NAMES | dict(points.names)
    for key, answer in estimates(
        runs, value, points.form, where, over, points.along, each=points.each, compared=compared
    ):
        texts = {named.get(column, column): shown(column, value) for column, value in key.items()}
        texts |= texts_of_all
        if "device" in chart.columns and "device" not in texts:
            texts["device"] = f"your run: {run.where}" if run.own else run.where
        place: Any = texts.get(chart.names.column)
        if chart.form == LINES and points.across:
            place = at[tuple(key.values())]
        elif chart.form == LINES:
            place = next(one for name, one in key.items() if named.get(name, name) == chart.names.column)
        yield _point(place, answer) | {"run": run.name} | {column: texts[column] for column in chart.columns}


@functools.lru_cache(maxsize=64)
def _runs_of(name: str, root: Path, prepare: Preparation | None) -> Runs:
    """Read a run, with the columns that a chart adds."""
    runs = runs_of((name,), root)
    return Runs({name: prepare(runs.rows.drop(columns="_unit"))}) if prepare else runs


def _filters(points: Points) -> tuple[str, str]:
    """Return the filters of rows and of their baseline; without a baseline all are compared with the best."""
    for baseline in points.over:
        twice = [baseline, again(baseline)] if isinstance(baseline, str) else [baseline]
        where = f"({points.where}) and " if points.where else ""
        return f"{where}{points.compared} not in {twice}", f"{where}{points.compared} == {baseline!r}"
    return points.where, points.where if points.compared else ""


def _point(at: Any, answer: Estimate) -> Row:
    numbers = {"value": answer.value, "low": answer.low, "high": answer.high}
    rounded = {key: float(f"{value:.{DIGITS}g}") for key, value in numbers.items()}
    place = float(at) if checks.is_number(at) else at
    return {"at": place} | rounded | {"text": str(Shown(answer)), "of": answer.interval}


def shown(column: str, value: Any) -> str:
    """Return the text of a value: a filling fraction in %, a size as a power of two if it is one.

    Args:
        column: of the table.
        value: one of its values.
    """
    if column == "filling_fraction":
        return f"{100 * value:.3g} %"
    if column == "n" and checks.is_number(value):
        power = math.log2(value)
        return f"2^{power:.0f}" if power >= SMALLEST_POWER and power.is_integer() else f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)
