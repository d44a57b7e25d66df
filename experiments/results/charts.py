"""Charts as data: which rows are shown, what is computed from them, and along which axes.

Contract. A `Chart` names a selection and a form, and draws nothing: `experiments.drawing.charts` draws it as
a figure, `experiments.results.page.specs` as a chart of the page. Its numbers are those of `estimates`, which
asks the one module that computes gains and intervals. A title is a sentence with the chart's own numbers: a
template with fields that `facts` fills, so that no number is typed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.results import gains
from experiments.results.answers import estimate as estimate_in_words
from experiments.results.answers import fields_of, gain_in_words, headline, rounded, word
from experiments.results.baselines import is_again, with_ages
from experiments.results.tables import names_of, table_of
from sfc import checks

DOTS, LINES, BARS = "dots", "lines", "bars"
DASHED, STAR, HOLLOW = "dashed", "star", "hollow"
MOST_MARKS = 3  # bounds, or published values, of a chart: each has dashes or a shape
FORMS = (DOTS, LINES, BARS)
GAIN, MEDIAN, MEAN, FIRST, MIDDLE, GIVEN = "gain", "median", "mean", "first", "middle", "given"
VALUE, LOW, HIGH, AT = "value", "value_low", "value_high", "at"  # columns of `estimates`
OVER = "over"  # the column of baselines
_WAYS = ("median", "mean", "max")
Preparation = Callable[[pd.DataFrame], pd.DataFrame]
_BROKEN = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError, NameError)


@dataclass(frozen=True)
class Scale:
    """Axis of a chart.

    Args:
        title: with the unit; `{over}` in it is the baseline, other fields are columns with one value.
        column: of the rows; empty for the axis of what is computed.
        log: base of its logarithmic scale, 2 for sizes or 10; 0 for a linear scale.
        line: value that a line marks, such as a gain of 1; None for none.
        ends: of a linear scale; None for an end that the values set.
        from_zero: whether a logarithmic scale of `names` begins at 0, with a linear part up to 2.

    Raises:
        ValueError: another base.
    """

    title: str
    column: str = ""
    log: int = 0
    line: float | None = None
    ends: tuple[float | None, float | None] = (None, None)
    from_zero: bool = False

    def __post_init__(self) -> None:
        """Check the base."""
        if isinstance(self.log, bool) or self.log not in (0, 2, 10):
            raise checks.refuse_value("log", self.log, "0 for a linear scale, or the base 2 or 10")


GAINS = Scale("gain of a step over\n{over}", log=10, line=1)
PARTICLES, ORDERS = Scale("particles", "n", log=2), Scale("", "ordering")
FILLED = "{filling_fraction} filled"  # above a panel


@dataclass(frozen=True)
class Points:
    """Points of a chart: rows of a table, and the number that is computed in each of their groups.

    Args:
        value: column, or a pandas expression of columns; times for a gain.
        where: pandas query that selects the rows, those of baselines among them; empty for all.
        statistic: "gain" (over a baseline, in every round), "median" (of rounds, then mean of runs with its
            interval; of gases the median with their range), "mean" (of all rows, with twice its standard
            error), "first" (of the first row), "middle" (median of all rows), these two without an interval,
            "given" (with its interval in the rows of a table that the chart prepares, and with `runs`),
            or another one of `gains.STATISTICS`, such as "over best". Empty: "gain" with a baseline, "median"
            without.
        over: baselines, values of the column `compared`, or a function of the rows that returns them. Each
            that was measured gives points, with its name in the column `over`.
        compared: column of the cases that are compared with a baseline.
        pairs: case -> the one that it is compared with, in place of `over`; or a function of the rows that
            returns it. Each case has one gain.
        scale: expression of columns by which the numbers are multiplied at the end, such as "1e6 / n".
        values: axis of these numbers; None for that of the chart. Each axis has panels of its own.
        at: axis of numbers to the right in place of `names` of the chart; None for that one.
        label: name of a line that all series share, see `Chart.bounds`.
        run: kept run below `results/reference`, `<experiment>/<name>`, of a chart of the page.
        each: columns that identify a point, beside those of the chart; of a chart of the page all.
        along: second expression, for a statistic that has one.
        across: expression that gives the place of a point by its median, if no column does.
        constants: columns of all these points.
        names: column of the table -> column of the chart, beyond those of `page.charts.NAMES`.
        repeated: what the rows of a point are, if nothing is timed: "gases", or "shakes".

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a baseline without the column that it is in.
    """

    value: str
    where: str = ""
    statistic: str = ""
    over: Any = ()
    compared: str = ""
    pairs: Any = None
    scale: str = ""
    values: Scale | None = None
    at: Scale | None = None
    label: str = ""
    run: str = ""
    each: tuple[str, ...] = ()
    along: str = ""
    across: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    repeated: str = "gases"

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        checks.text("value", self.value)
        if not callable(self.over):
            checks.sequence("over", self.over, "values of the column `compared`")
        names_of("each", self.each)
        if (self.over or self.pairs) and not self.compared:
            raise checks.refuse_value("compared", self.compared, "the column that holds the baselines")

    @property
    def form(self) -> str:
        """The statistic, also if none is named."""
        return self.statistic or (GAIN if self.over or self.pairs else MEDIAN)


@dataclass(frozen=True)
class Marks:
    """Published values beside what was measured.

    Args:
        label: in the legend, with the source.
        table: columns of the chart, such as that of its names, and `value`.
        value: column of the published numbers.
        where: pandas query; a figure has the marks if all its rows are selected. Empty for all figures.
    """

    label: str
    table: pd.DataFrame = field(compare=False)
    value: str
    where: str = ""


@dataclass(frozen=True)
class Layer:
    """Points that lie over the lines of a chart, in the colours of its series; in the panels of their axis.

    Args:
        points: what is computed; with `across` at that place, else over the column of the chart's `names`. A
            line for each value of their columns `each`.
        sign: "dashed", lines without points, such as those of a model; "star", single points; or "hollow",
            large hollow markers, such as a check with other steps.

    Raises:
        ValueError: an unknown sign.
    """

    points: Points
    sign: str = DASHED

    def __post_init__(self) -> None:
        """Check the sign."""
        checks.word("sign", self.sign, (DASHED, STAR, HOLLOW))


@dataclass(frozen=True)
class Select:
    """Choice of a reader of the page.

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
    """Chart of a table.

    Args:
        name: of its files, or on the page. A field such as `{n}` is a column with a figure for each value.
        title: a sentence with fields of `facts`: "{best} is {value} times as fast as {over} memory".
        form: "dots" (a row for each name, values to the right), "lines" (values over numbers; over a single
            number the series are rows of dots) or "bars" (a row for each name, the values of the series one
            behind the other).
        points: what is computed; several have panels of their own by their axes.
        names: axis of names, or of numbers to the right.
        values: axis of the numbers computed.
        series: column that colour and shape show; empty for none.
        title_of_series: in front of the legend.
        panels: column with a panel for each value, side by side; empty for none.
        heading: above a panel, such as "{filling_fraction} filled".
        lines: column with a line of panels for each value; empty for none.
        files: columns with a figure for each value; files are named by those that vary.
        note: second line of the title, with fields of `facts`; or a function of the rows that returns it.
        caption: below a chart of the page.
        selects: choices of a reader of the page.
        varying: columns that need several values, in the table if they tell figures apart, else in a figure;
            or there is no figure.
        single: columns that need one value, or there is no figure.
        otherwise: points in place of those of which no baseline was measured.
        most: number of series of lines in a figure. More are rows of dots: a panel for each number, a line of
            panels for each value of `panels`. 0 for any number.
        bounds: points of dotted lines in the panels of the same axes: that all series share, such as the
            floor of memory, or without a label of each series, such as a fit; at bars a mark for each name;
            at dots, of points with `each`, a mark for each name and series. At most
            three in a panel.
        marks: published values, at most three.
        layers: points over the lines.
        order: values of the series in their order, others are not drawn; empty for all, of which at most six.
        without: values of the series, or names, that are not drawn, such as baselines.
        fastest: whether the best names stand first, and the best series are drawn, by the largest case.
        peers: values of the series that are other codes, and look so.
        whole: value of the series that is the whole of a bar, a mark with an interval; empty if
            the parts are not compared with a whole.
        gaps: whether a line is broken where it lacks a number that another line has.
        numbers: whether the value stands at each point, of a panel with one line.
        words: value of a column of names or of a series -> its name in the figure.
        prepare: function of the table that adds columns; None for the table as it is.
        needs: column of the tables that it is for; it is not drawn of others. Empty for all tables.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: an unknown form, an axis of names without a column, too many bounds or marks, or layers
            without a series.
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
    note: str | Callable[[pd.DataFrame], str] = ""
    caption: str = ""
    selects: tuple[Select, ...] = ()
    varying: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    otherwise: Points | None = None
    most: int = 0
    bounds: tuple[Points, ...] = ()
    marks: tuple[Marks, ...] = ()
    layers: tuple[Layer, ...] = ()
    order: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    fastest: bool = False
    peers: tuple[str, ...] = ()
    whole: str = ""
    gaps: bool = True
    numbers: bool = False
    words: Mapping[str, str] | Callable[[pd.DataFrame], Mapping[str, str]] = field(default_factory=dict)
    prepare: Preparation | None = None
    needs: str = ""

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        checks.word("form", self.form, FORMS)
        for points in self.measures:
            checks.instance("points", points, Points, "Points, or a tuple of them")
        if not self.measures:
            raise checks.refuse_value("points", self.points, "Points, or a tuple of one or more")
        for name in ("names", "values"):
            checks.instance(name, getattr(self, name), Scale, "a Scale")
        if not self.names.column and not all(points.across for points in self.measures):
            raise checks.refuse_value("names", self.names, "a Scale with a column, or points with `across`")
        if self.form == LINES and self.layers and not self.series:
            raise checks.refuse_value("series", self.series, "a column whose colours the layers have")
        of_axes = Counter((points.at, points.values) for points in self.bounds)
        for name, most in (("bounds", max(of_axes.values(), default=0)), ("marks", len(self.marks))):
            if most > MOST_MARKS:
                raise checks.refuse_value(f"number of {name}", most, f"at most {MOST_MARKS} in a panel")
        for name in ("files", "varying", "single", "order", "without", "peers"):
            names_of(name, getattr(self, name))

    @property
    def measures(self) -> tuple[Points, ...]:
        """Its points, as a tuple."""
        return (self.points,) if isinstance(self.points, Points) else tuple(self.points)

    @property
    def figures(self) -> tuple[str, ...]:
        """Columns with a figure for each value: the fields of its name, and `files`."""
        return tuple(dict.fromkeys((*fields_of(self.name), *self.files)))

    def beside(self, points: Points) -> Chart:
        """Return the chart with the axes of some of its points, and what lies in the panels of these axes."""
        axes = points.at or self.names, points.values or self.values

        def has_axes(one: Points) -> bool:
            return (one.at or self.names, one.values or self.values) == axes

        bounds = tuple(filter(has_axes, self.bounds))
        layers = tuple(layer for layer in self.layers if has_axes(layer.points))
        return replace(self, names=axes[0], values=axes[1], bounds=bounds, layers=layers)

    @property
    def each(self) -> tuple[str, ...]:
        """Columns that identify a point of a figure."""
        columns = dict.fromkeys((self.lines, self.panels, self.names.column, self.series))
        return tuple(name for name in columns if name and name != OVER)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of text that identify a point of the page."""
        chosen = [select.column for select in self.selects]
        return tuple(dict.fromkeys(filter(None, (self.names.column, self.series, *chosen))))


@dataclass(frozen=True)
class Summary:
    """Table of a run's times: over runs, with gains over baselines and more columns.

    Args:
        by: columns that cases which are compared have in common.
        label: column of the cases that are compared.
        baselines: values of `label`, or a function of the table that returns them, or name -> its part of the
            names of columns; of those that were measured there are gains.
        beside: columns that follow from `label`.
        value: column of times.
        more: column -> "median", "mean" or "max" over the rows of a case, or an expression of columns, and of
            `value`, the time. A column that an older table lacks is left out.
        ages: whether the age of memory is added.
        pairs: function of the table that returns case -> the one that it is compared with beside the
            baselines; None for none.
        name: of the file.
        prepare: function of the table that adds columns; None for the table as it is.
        needs: column of the tables that it is for; it is not written of others. Empty for all tables.
    """

    by: tuple[str, ...]
    label: str
    baselines: Any = ()
    beside: tuple[str, ...] = ()
    value: str = "time_ms"
    more: Mapping[str, str] = field(default_factory=dict)
    ages: bool = False
    pairs: Callable[[pd.DataFrame], Mapping[str, str | None]] | None = None
    name: str = "summary"
    prepare: Preparation | None = None
    needs: str = ""

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the summary of a table of samples.

        Raises:
            TypeError: no table.
            ValueError: a column that is missing.
        """
        keys, by = [*self.by, *self.beside, self.label], [*self.by]
        table = gains.with_rounds(prepared(self, table), keys)
        found = gains.over_runs(table, keys, self.value)
        time = gains.bounds(found, self.value)["centre"]
        for name, how in self.more.items():
            if how not in _WAYS:
                found[name] = found.assign(value=time).eval(how, engine="python")
            elif name in table:
                of_case = table.groupby(keys, sort=False)[name].agg(how).reset_index()
                found = found.merge(of_case, on=keys, how="left")
        over = self.baselines(table) if callable(self.baselines) else self.baselines
        over = over if isinstance(over, Mapping) else {name: _in_a_column(name) for name in over}
        for baseline, column in over.items():
            over = gains.gains(table, by, self.label, baseline, self.value)
            if not over.empty:
                found = found.merge(gains.named(over, column), on=[*by, self.label], how="left")
        pairs = self.pairs(table) if self.pairs else {}
        if not (over := gains.gains_over(table, by, self.label, pairs, self.value)).empty:
            found = found.merge(over.drop(columns=["runs", "rounds"]), on=[*by, self.label], how="left")
        found = found[~found[self.label].map(is_again)]
        return with_ages(found, table, keys) if self.ages else found


def _in_a_column(name: str) -> str:
    return name.replace(", ", "_").replace(" ", "_")


@dataclass(frozen=True)
class Table:
    """Table that a function makes from that of a run; one without rows is not written.

    Args:
        name: of the file.
        rows: function of the table of a run that returns the table.
    """

    name: str
    rows: Callable[[pd.DataFrame], pd.DataFrame]

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table that is written."""
        return self.rows(table_of("table", table))


View = Chart | Summary | Table | Callable[[pd.DataFrame, Path], Any]


def prepared(view: Chart | Summary, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns that a view adds to it."""
    return view.prepare(table_of("table", table)) if view.prepare else table_of("table", table)


def estimates(table: pd.DataFrame, points: Points, each: Sequence[str]) -> pd.DataFrame:
    """Compute the numbers of points; every gain and interval of a figure comes from here.

    Args:
        table: rows of a run that a figure shows.
        points: what is computed.
        each: columns that identify a point, beside `points.each`.

    Returns:
        Columns `each`, `value`, `value_low`, `value_high`, `runs`, `rounds`, and `of_gases`, whether the ends
        are a range over gases; of gains also `over`, `noise_floor` and `difference`; with `across` also `at`,
        the place. A row for each point; none if no baseline was measured.

    Raises:
        TypeError: no table.
        ValueError: an expression that cannot be evaluated, a column that is missing, or an unknown statistic.
    """
    by = list(dict.fromkeys((*each, *points.each)))
    rows = selected(table_of("table", table, by), points)
    if rows.empty:
        return pd.DataFrame(columns=[*by, VALUE, LOW, HIGH, "runs", "rounds"])
    if points.form == GIVEN:
        ends = gains.bounds(rows, points.value).set_axis([VALUE, LOW, HIGH], axis=1)
        kept = [name for name in (*by, "runs", "rounds", "noise_floor", "difference") if name in rows]
        return rows[kept].join(ends).assign(of_gases="rounds" not in rows).reset_index(drop=True)
    is_of_gases = "repeat" in rows and "run" not in rows and "time_ms" not in rows
    rows = rows if is_of_gases else gains.with_rounds(rows, by)
    if points.form == GAIN:
        found = _gains(rows, points, by)
    elif points.form not in gains.OF_ROWS:
        cases, along = rows[~rows[by].map(is_again).any(axis=1)], points.along
        if along in cases and not pd.api.types.is_numeric_dtype(cases[along]):
            cases, along = cases.assign(_along=pd.factorize(cases[along])[0]), "_along"
        every = gains.estimates(cases, VALUE, points.form, along=along, each=by, compared=points.compared)
        one = [key | {VALUE: e.value, LOW: e.low, HIGH: e.high} for key, e in every]
        found = pd.DataFrame(one).assign(runs=[e.runs for _, e in every], rounds=[e.rounds for _, e in every])
    else:
        cases = rows[~rows[by].map(is_again).any(axis=1)] if by else rows
        found = _averages(cases, points.form, by, is_of_gases)
    if points.across:
        numbers: Any = rows.eval(points.across, engine="python")
        places = rows.assign(**{AT: numbers}).groupby(by)[AT].median()
        found = found.merge(places.reset_index(), on=by, how="left")
    return _scaled(found, rows, points.scale, by).assign(of_gases=is_of_gases)


def selected(table: pd.DataFrame, points: Points) -> pd.DataFrame:
    """Return the rows of points that have a number, in the column `value`.

    Raises:
        ValueError: a filter or an expression that cannot be evaluated.
    """
    try:
        rows = table.query(points.where, engine="python") if points.where else table
        numbers: Any
        if points.form == GIVEN:
            numbers = gains.bounds(rows, points.value)["centre"]
        elif (numbers := rows.get(points.value)) is None:
            numbers = rows.eval(points.value, engine="python")
        return rows.assign(value=numbers).dropna(subset=[VALUE])
    except _BROKEN as error:
        raise ValueError(
            f"points of {points.value!r} where {points.where!r} cannot be evaluated: {error}; allowed: "
            f"expressions of {', '.join(map(str, table.columns))}"
        ) from error


def _gains(rows: pd.DataFrame, points: Points, each: list[str]) -> pd.DataFrame:
    """Compute gains over each baseline that was measured, or of pairs."""
    by, label = [name for name in each if name != points.compared], points.compared
    named = points.pairs or points.over
    named = named(rows) if callable(named) else named
    if points.pairs:
        found = [gains.gains_over(rows, by, label, named, VALUE)]
    else:
        found = [gains.gains(rows, by, label, baseline, VALUE) for baseline in named]
    parts = []
    for over in found:
        if not over.empty:
            ends = gains.bounds(over, GAIN).set_axis([VALUE, LOW, HIGH], axis=1)
            kept = [name for name in over if not str(name).startswith(GAIN)]
            parts.append(over[kept].join(ends))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*each, VALUE, LOW, HIGH])


def _averages(rows: pd.DataFrame, form: str, each: list[str], of_gases: bool) -> pd.DataFrame:
    """Compute a number for each case."""
    if form == MEDIAN and not of_gases:
        found = gains.over_runs(rows, each, VALUE)
        ends = gains.bounds(found, VALUE).set_axis([VALUE, LOW, HIGH], axis=1)
        return found[[*each, "runs", "rounds"]].join(ends)
    runs = rows["repeat"].nunique() if of_gases and form == MEDIAN else 1
    return gains.of_rows(rows, each, VALUE, form).assign(runs=runs, rounds=1)


def _scaled(found: pd.DataFrame, rows: pd.DataFrame, scale: str, each: list[str]) -> pd.DataFrame:
    """Multiply numbers by an expression of columns, of which each case has the median."""
    if not scale or found.empty:
        return found
    named = [name for name in rows if str(name) in scale and name not in each]
    cases = found[each]
    if named:
        cases = cases.merge(rows.groupby(each, sort=False)[named].median().reset_index(), on=each, how="left")
    factor = np.asarray(cases.eval(scale, engine="python"))
    return found.assign(**{name: found[name] * factor for name in (VALUE, LOW, HIGH)})


def rows_at(found: pd.DataFrame, at: Mapping[str, Any]) -> pd.DataFrame:
    """Select rows by values of columns.

    Args:
        found: any rows.
        at: column -> value.
    """
    for column, value in at.items():
        found = found[found[column] == value]
    return found


def facts(chart: Chart, rows: pd.DataFrame, found: pd.DataFrame) -> dict[str, str]:
    """Return the fields of a title.

    They are those of one case: the largest number in each column that identifies a point, or its first word.

    Args:
        chart: with the title.
        rows: of the table that its figure shows.
        found: `estimates` of its first points.

    Returns:
        `best`, the name with the largest gain there, or the least number; `value`, its number with the
        interval; `worst` and `of_worst`, the same at the other end; `times`, the larger of the two over the
        smaller; `over`, the baseline; each column of the case; columns of the rows with one value.
    """
    known = {str(name): rows[name].dropna() for name in rows if rows[name].nunique() == 1}
    words = {name: word(name, values.iloc[0]) for name, values in known.items()}
    if found.empty:
        return words
    is_gain = OVER in found
    label = chart.series if chart.form == LINES else chart.names.column
    cases = [name for name in chart.each if name != label]
    is_of_one = is_gain and not chart.measures[0].pairs
    first = found[found[OVER] == found[OVER].iloc[0]] if is_of_one else found
    first = first[first[chart.series] == chart.whole] if chart.whole else first
    at: list[Any] = headline(first, *cases).sort_values(VALUE, ascending=not is_gain).to_dict("records")
    best, worst = at[0], at[-1]
    words |= {
        name: of if isinstance(of := best[name], str) else word(name, of) for name in cases
    }  # no name, so not quoted
    words |= {"value": _said(best, is_gain), "of_worst": _said(worst, is_gain), OVER: str(best.get(OVER, ""))}
    low, high = sorted((best[VALUE], worst[VALUE]))
    words["times"] = rounded(high / low if low else math.nan)
    return words | ({"best": word(label, best[label]), "worst": word(label, worst[label])} if label else {})


def _said(row: Mapping[str, Any], is_gain: bool) -> str:
    """Format a number of `estimates` with its interval, and with the verdict of a gain that is not faster."""
    named = {name.replace(VALUE, GAIN): number for name, number in row.items()}
    return gain_in_words(named) if is_gain else estimate_in_words(named, GAIN)
