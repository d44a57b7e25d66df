"""Charts of the page: their points, from queries in each group of a table.

Contract. A chart has rows, each a point with its interval and its run. A point is the answer of a query of
`experiments.results.kept.queries`, in one group of the columns `each`; kept runs are named by the chart, runs
of a reader take part if they are of the same experiment. Columns that a reader can choose from hold text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.results.claims.judgement import Shown
from experiments.results.gains import Estimate
from experiments.results.kept.queries import Query, evaluate_each
from experiments.results.page.runs import Run
from sfc import checks

SMALLEST_POWER = 14  # of a size that is shown as a power of two
DIGITS = 5  # of the numbers of a point; its text has those of the verdicts
DOTS, LINES = "dots", "lines"
Row = dict[str, Any]
NAMES = {"ordering": "order", "filling_fraction": "filling", "n": "size", "cache_particles": "cache"}


@dataclass(frozen=True)
class Points:
    """Points of a chart from the table of a run.

    Args:
        run: below `results/reference`, `<experiment>/<name>`.
        value: expression of columns; times in `gain`.
        each: columns that identify a point.
        where: filter of the rows.
        statistic: of the verdicts.
        over: filter of the baseline, for a statistic that has one.
        compared: column of `each` that the baseline does not share.
        along: second expression, for a statistic that has one.
        across: expression whose median is the place of a point, if no column is.
        constants: columns of all these points.
        names: column of the table -> column of the chart, beyond `NAMES`.
    """

    run: str
    value: str
    each: tuple[str, ...]
    where: str
    statistic: str = "median"
    over: str = ""
    compared: str = ""
    along: str = ""
    across: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """Axis of a chart.

    Args:
        title: with the unit.
        column: of the rows; empty for the answers of the queries.
        log: whether its scale is logarithmic.
        line: value that a line marks, such as a gain of 1; None for none.
    """

    title: str
    column: str = ""
    log: bool = False
    line: float | None = None


@dataclass(frozen=True)
class Select:
    """Choice of a reader.

    Args:
        column: of the rows.
        label: in front of it.
        initial: text of the value shown first; empty for all, if there may be all.
        has_all: whether all values can be shown at once.
    """

    column: str
    label: str
    initial: str = ""
    has_all: bool = False


@dataclass(frozen=True)
class Chart:
    """Chart of the page.

    Args:
        id: on the page.
        title: what is shown, in a line.
        caption: what to see, and what a point is.
        kind: "dots": a row for each name, values to the right; "lines": values over numbers.
        points: from tables.
        names: axis of names, or of numbers to the right.
        values: axis of the answers.
        series: column that colour and shape show.
        title_of_series: in front of the legend.
        selects: choices of a reader.
    """

    id: str
    title: str
    caption: str
    kind: str
    points: tuple[Points, ...]
    names: Axis
    values: Axis
    series: str
    title_of_series: str
    selects: tuple[Select, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of text that identify a point."""
        chosen = [select.column for select in self.selects]
        return tuple(
            dict.fromkeys((*([self.names.column] if self.names.column else []), self.series, *chosen))
        )


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
    for points in chart.points:
        if points.run not in kept:
            raise checks.refuse_value(
                f"run of chart {chart.id}",
                points.run,
                "a folder below results/reference",
                "change chart_list.py",
            )
        try:
            found += list(_rows_of(chart, points, kept[points.run]))
        except ValueError as error:
            raise ValueError(f"chart {chart.id}: {error}") from error
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
    for points in chart.points:
        if points.run.split("/")[0] != run.experiment:
            continue
        try:
            own = list(_rows_of(chart, points, run))
        except ValueError:  # its columns or rows are others
            continue
        for row in own:
            found.setdefault(tuple(row[column] for column in ("at", *chart.columns)), row)
    return list(found.values())


def _rows_of(chart: Chart, points: Points, run: Run) -> Iterator[Row]:
    """Yield the points of a chart from a run."""
    root, name = run.folder.parent.parent, f"{run.folder.parent.name}/{run.folder.name}"
    query = Query((name,), points.where, points.value, points.statistic, points.over, points.along)
    places: dict[tuple, float] = {}
    if points.across:
        across = replace(query, value=points.across, statistic="median", over="", along="")
        found = evaluate_each(across, points.each, root=root)
        places = {tuple(key.values()): answer.value for key, answer in found}
    named = NAMES | dict(points.names)
    for key, answer in evaluate_each(query, points.each, points.compared, root):
        texts = {named.get(column, column): shown(column, value) for column, value in key.items()}
        texts |= points.constants
        if "device" in chart.columns and "device" not in texts:
            texts["device"] = f"your run: {run.where}" if run.own else run.where
        raw = {named.get(column, column): value for column, value in key.items()}
        at: Any = texts[chart.names.column] if chart.kind == DOTS else raw.get(chart.names.column)
        at = places[tuple(key.values())] if points.across else at
        yield _point(at, answer) | {"run": run.name} | {column: texts[column] for column in chart.columns}


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
