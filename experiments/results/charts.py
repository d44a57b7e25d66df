"""Charts as data: which rows are shown, what is computed from them, and along which axes.

Contract. A `Chart` names a selection and a form, and draws nothing: `experiments.drawing.charts` draws it as
a figure, `experiments.results.page.specs` as a chart of the page. Its numbers are those of `estimates`, which
asks the one module that computes gains and intervals. A title is a sentence with the chart's own numbers: a
template whose fields `facts` fills, so that no number is typed.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.results import gains
from experiments.results.answers import estimate as in_words
from experiments.results.answers import gain_in_words, headline, percent, quoted
from experiments.results.baselines import is_again, with_ages
from experiments.results.tables import table_of
from sfc import checks

DOTS, LINES, BARS = "dots", "lines", "bars"
FORMS = (DOTS, LINES, BARS)
MEDIAN, GAIN, FIRST, MIDDLE = "median", "gain", "first", "middle"
MOST = 6  # values of a series in a panel
VALUE = "value"  # column of `estimates`, with `value_low` and `value_high`
Preparation = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Scale:
    """Axis of a chart.

    Args:
        title: with the unit; `{over}` in it is the baseline.
        column: of the rows; empty for an axis of values.
        log: base of its logarithmic scale, such as 2 for sizes; 0 for a linear scale.
        line: value that a line marks, such as a gain of 1; None for none.
        ends: of a linear scale; None for an end that the values set.
    """

    title: str
    column: str = ""
    log: int = 0
    line: float | None = None
    ends: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        """Check the scale."""
        if isinstance(self.log, bool) or self.log not in (0, 2, 10):
            raise checks.refuse_value("log", self.log, "0 for a linear scale, or the base 2 or 10")


GAINS = Scale("gain of a step over\n{over}", log=10, line=1)


@dataclass(frozen=True)
class Points:
    """Points of a chart: rows of a table, and the number that is computed in each of their groups.

    Args:
        value: column, or a pandas expression of columns; times for a gain.
        where: pandas query that selects the rows; empty for all.
        statistic: "gain" (over a baseline, in every round), "median" (of rounds, then mean of runs with its
            interval; of gases the median with their range), "first" (of the first row) or "middle" (median of
            all rows, without an interval). Empty for "gain" with a baseline and "median" without.
        over: baselines of a gain, values of the column `compared`; each that was measured gives points of its
            own, with its name in the column `over`.
        compared: column of the cases that are compared with a baseline.
        scale: expression of columns by which the numbers are multiplied at the end, such as "1e6 / n".
        values: axis of these numbers; None for that of the chart. Points of one axis share a panel.
    """

    value: str
    where: str = ""
    statistic: str = ""
    over: tuple[str, ...] = ()
    compared: str = ""
    scale: str = ""
    values: Scale | None = None

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        checks.text("value", self.value)
        if isinstance(self.over, str):
            raise checks.refuse_class("over", self.over, "a tuple of names")
        if bool(self.over) != bool(self.compared):
            raise checks.refuse_value(
                "compared", self.compared, "the column of the baselines beside `over`, and none without"
            )

    @property
    def form(self) -> str:
        """The statistic, if none is named."""
        return self.statistic or (GAIN if self.over else MEDIAN)


@dataclass(frozen=True)
class Chart:
    """Chart of a table.

    Args:
        name: of its files. A field such as `{n}` is a column: each of its values has a figure of its own.
        title: a sentence with fields of `facts`: "{best} is {value} times as fast as {over} memory".
        form: "dots" (a row for each name, values to the right), "lines" (values over numbers) or "bars" (a
            row for each name, the values of the series one behind the other).
        points: what is computed; a tuple for several, whose axes have panels of their own.
        names: axis of names, or of numbers to the right.
        values: axis of the numbers computed.
        series: column that colour and shape show; at most `MOST` values are drawn; empty for none.
        title_of_series: in front of the legend.
        panels: column with a panel for each value; empty for none.
        heading: above a panel, such as "{filling_fraction} filled".
        lines: column with a line of panels for each value; empty for none.
        files: columns with a figure for each value, beside the fields of `name`; names of files have those
            that vary.
        varying: columns that need several values, or there is no figure.
        single: columns that need one value, or there is no figure.
        otherwise: points in place of those of which no baseline was measured.
        note: second line of the title, with fields of `facts`.
    """

    name: str
    title: str
    form: str
    points: Points | tuple[Points, ...]
    names: Scale
    values: Scale
    series: str = ""
    title_of_series: str = ""
    panels: str = ""
    heading: str = ""
    lines: str = ""
    files: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    otherwise: Points | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        checks.word("form", self.form, FORMS)
        if not self.names.column:
            raise checks.refuse_value("names", self.names, "an axis with a column")

    @property
    def files_of(self) -> tuple[str, ...]:
        """Columns with a figure for each value."""
        return tuple(dict.fromkeys((*_fields(self.name), *self.files)))

    @property
    def each(self) -> tuple[str, ...]:
        """Columns that identify a point of a figure."""
        columns = (self.lines, self.panels, self.names.column, self.series)
        return tuple(name for name in dict.fromkeys(columns) if name and name != "over")

    @property
    def measures(self) -> tuple[Points, ...]:
        """Its points, as a tuple."""
        return (self.points,) if isinstance(self.points, Points) else self.points


@dataclass(frozen=True)
class Summary:
    """Table of a run's times: over runs, with gains over baselines, and ages of memory.

    Args:
        by: columns that identify a case, without `label`.
        label: column of the cases that are compared.
        baselines: values of `label`; of those measured there are gains.
        value: column of times.
        ages: whether the age of memory is added.
        name: of the file.
    """

    by: tuple[str, ...]
    label: str
    baselines: tuple[str, ...] = ()
    value: str = "time_ms"
    ages: bool = False
    name: str = "summary"

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the summary of a table with the columns `run` and `round`."""
        keys = [*self.by, self.label]
        table = gains.with_rounds(table, keys)
        found = gains.over_runs(table, keys, self.value)
        for baseline in (name for name in self.baselines if name in set(table[self.label])):
            over = gains.gains(table, list(self.by), self.label, baseline, self.value)
            named = gains.named(over, baseline.replace(" ", "_"))
            found = found.merge(named, on=keys, how="left")
        found = found[~found[self.label].map(is_again)]
        return with_ages(found, table, keys) if self.ages else found


View = Chart | Summary | Callable[[pd.DataFrame, Any], Any]


def _fields(template: str) -> list[str]:
    """Return the names of the fields of a template."""
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def estimates(table: pd.DataFrame, points: Points, each: Sequence[str]) -> pd.DataFrame:
    """Compute the numbers of points.

    This is the one function in which a chart asks for gains and intervals.

    Args:
        table: of a run, or of those of its rows that a figure shows.
        points: what is computed.
        each: columns that identify a point.

    Returns:
        Columns `each`, `value`, `value_low`, `value_high`, `runs`, `rounds`; for gains `over`, `noise_floor`
        and `difference`. A row for each point; none if no baseline was measured.

    Raises:
        TypeError: no table.
        ValueError: a filter or an expression that cannot be evaluated, or a column that is missing.
    """
    table_of("table", table, each)
    rows = selected(table, points)
    if rows.empty:
        return pd.DataFrame(columns=[*each, VALUE, "runs"])
    rows = gains.with_rounds(rows, list(each)) if _is_of_runs(rows) else rows
    if points.form == GAIN:
        found = _gains(rows, points, list(each))
    else:
        cases = rows[~rows[list(each)].map(is_again).any(axis=1)] if each else rows
        found = _averages(cases, points.form, list(each))
    return _scaled(found, rows, points.scale, list(each))


def selected(table: pd.DataFrame, points: Points) -> pd.DataFrame:
    """Return the rows of points, with the column `value`.

    Raises:
        ValueError: a filter or an expression that cannot be evaluated.
    """
    try:
        rows = table.query(points.where, engine="python") if points.where else table
        number = rows[points.value] if points.value in rows else rows.eval(points.value, engine="python")
    except (SyntaxError, ValueError, TypeError, LookupError, AttributeError, NameError) as error:
        raise ValueError(
            f"points of {points.value!r} where {points.where!r} cannot be evaluated: {error}; allowed: "
            f"expressions of {', '.join(map(str, table.columns))}"
        ) from error
    rows = rows.assign(**{VALUE: number})
    return rows[rows[VALUE].notna()]


def _is_of_runs(rows: pd.DataFrame) -> bool:
    """Return whether rows are of runs with rounds, and not of gases."""
    return "run" in rows or "time_ms" in rows or "repeat" not in rows


def _gains(rows: pd.DataFrame, points: Points, each: list[str]) -> pd.DataFrame:
    """Compute gains over each baseline that was measured."""
    by = [name for name in each if name != points.compared]
    parts = []
    for baseline in points.over:
        over = gains.gains(rows, by, points.compared, baseline, VALUE)
        if len(over):
            ends = gains.bounds(over, GAIN).set_axis([VALUE, f"{VALUE}_low", f"{VALUE}_high"], axis=1)
            kept = [*by, points.compared, "over", "runs", "rounds", "noise_floor", "difference"]
            parts.append(over[[name for name in kept if name in over]].join(ends))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*each, VALUE, "runs"])


def _averages(rows: pd.DataFrame, form: str, each: list[str]) -> pd.DataFrame:
    """Compute a number for each case."""
    if form == MEDIAN and _is_of_runs(rows):
        found = gains.over_runs(rows, each, VALUE)
        ends = gains.bounds(found, VALUE).set_axis([VALUE, f"{VALUE}_low", f"{VALUE}_high"], axis=1)
        return found[[*each, "runs", "rounds"]].join(ends)
    names = {FIRST: ("first",) * 3, MIDDLE: ("median",) * 3, MEDIAN: ("median", "min", "max")}
    how = names[checks.word("statistic", form, names)]
    groups = rows.groupby(each, sort=False)[VALUE]
    columns = dict(zip((VALUE, f"{VALUE}_low", f"{VALUE}_high"), map(groups.agg, how), strict=True))
    runs = rows["repeat"].nunique() if "repeat" in rows and form == MEDIAN else 1
    return pd.DataFrame(columns).assign(runs=runs, rounds=1).reset_index()


def _scaled(found: pd.DataFrame, rows: pd.DataFrame, scale: str, each: list[str]) -> pd.DataFrame:
    """Multiply numbers by an expression of columns, of which each case has the median."""
    if not scale or found.empty:
        return found
    named = [name for name in rows if str(name) in scale and name not in each]
    if named:
        medians = rows.groupby(each, sort=False)[named].median().reset_index()
        factor = found[each].merge(medians, on=each, how="left").eval(scale, engine="python")
    else:
        factor = found.eval(scale, engine="python")
    ends = [VALUE, f"{VALUE}_low", f"{VALUE}_high"]
    return found.assign(**{name: found[name] * np.asarray(factor) for name in ends})


def word(column: str, value: Any) -> str:
    """Return the text of a value in a title: a share in %, a number with commas, a flag by its name.

    Args:
        column: of the table.
        value: one of its values.
    """
    if column == "filling_fraction":
        return percent(value)
    if isinstance(value, bool | np.bool_):
        return column if value else f"not {column}"
    if checks.is_number(value):
        whole = isinstance(value, int | np.integer) or (abs(value) >= 1000 and value == round(value))
        return f"{value:,.0f}" if whole else f"{value:g}"
    return quoted(str(value))


def facts(chart: Chart, rows: pd.DataFrame, found: pd.DataFrame) -> dict[str, str]:
    """Return the fields of a title, of one case: the largest number of each column, or its first word.

    Args:
        chart: whose title it is.
        rows: of the table that its figure shows.
        found: `estimates` of its first points.

    Returns:
        `best`, the name with the best number there, a gain's largest or the least; `worst`; `value`, the best
        number with its interval; `of_worst`; `over`, its baseline; each column of the points; columns of the
        rows with one value.
    """
    constant = {str(name): rows[name].iloc[0] for name in rows if rows[name].nunique() == 1}
    words = {name: word(name, value) for name, value in constant.items()}
    if found.empty:
        return words
    is_gain = chart.measures[0].form == GAIN and "over" in found
    label = chart.names.column if chart.form != LINES else chart.series
    cases = [name for name in chart.each if name != label]
    at = headline(found[found["over"] == found["over"].iloc[0]] if is_gain else found, *cases)
    at = at.sort_values(VALUE, ascending=not is_gain, kind="stable").to_dict("records")

    def said(row: Mapping) -> str:
        given = {name.replace(VALUE, GAIN): number for name, number in row.items()}
        return gain_in_words(given) if is_gain else in_words(given, GAIN)

    words |= {name: word(name, at[0][name]) for name in cases}
    words |= {"value": said(at[0]), "of_worst": said(at[-1]), "over": str(at[0].get("over", ""))}
    if label:
        words |= {"best": word(label, at[0][label]), "worst": word(label, at[-1][label])}
    return words


def filled(template: str, words: Mapping[str, str]) -> str:
    """Fill the fields of a title.

    Raises:
        ValueError: a field that the chart does not have.
    """
    missing = [name for name in _fields(template) if name not in words]
    if missing:
        raise ValueError(
            f"title {template!r} has no value for {', '.join(missing)}; allowed: fields {', '.join(words)}"
        )
    return template.format(**words)
