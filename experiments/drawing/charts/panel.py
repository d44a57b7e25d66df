"""What a panel of a chart shows: lines, rows of dots or bars, with intervals, bounds, layers and marks.

The looks of names are those of `experiments.drawing.style`: memory orders by their families, numbers from
dark to light, anything else in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.drawing import figures, style
from experiments.results import gains, reliability
from experiments.results.answers import word
from experiments.results.baselines import BASELINES
from experiments.results.charts import (
    AT,
    BARS,
    DOTS,
    HIGH,
    HOLLOW,
    LINES,
    LOW,
    MEAN,
    OVER,
    STAR,
    VALUE,
    Chart,
    Layer,
    Points,
    estimates,
    rows_at,
)
from sfc import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDERING = "ordering"  # the column of memory orders, which have fixed looks
_BOUND: dict[str, Any] = {"color": "#6B4F3A", "linewidth": 1}
_FITTED: dict[str, Any] = {"linestyle": ":", "linewidth": 2.2, "alpha": 0.7}
IS_BOUND, IS_LAYER = "bound", "layer"  # of lines of markers, and of lines that set no limit
DASHES = (":", "--", "-.")  # of bounds
MARK: dict[str, Any] = {"color": "#D00000", "marker": "s", "linestyle": "", "markerfacecolor": "none"}
_BAR_MARKS: tuple[dict[str, Any], ...] = (  # of bounds, in turn
    {"color": "black", "linestyle": "", "marker": "D", "markersize": 6, "markeredgecolor": "white"},
    {"color": "black", "linestyle": "", "marker": "^", "markersize": 6, "markeredgecolor": "white"},
    {"color": "black", "linestyle": "", "marker": "|", "markersize": 11, "markeredgewidth": 2},
)
NO_SERIES = "_"  # a label that matplotlib leaves out of legends
_STAR: dict[str, Any] = {"fmt": "*", "markersize": 11, "markeredgecolor": "black", "elinewidth": 0.9}
_SAME: dict[str, Any] = {"color": style.TURNS[0], "markersize": 4, "markerfacecolor": "white", "zorder": 3}
_HOLLOW: dict[str, Any] = {"linestyle": "", "markersize": 9, "markerfacecolor": "none"}
_SHAPES = ("s", "x", "o")  # of published values
_MOST_MARKERS = 100  # of a line; one with more points has none


class Part(NamedTuple):
    """Panel of a figure.

    Attributes:
        points: that it shows.
        found: their `estimates` in this panel.
        at: its values of the columns `lines` and `panels` of the chart.
    """

    points: Points
    found: pd.DataFrame
    at: dict[str, Any]


class Names(NamedTuple):
    """What the panels of a figure share.

    Attributes:
        rows: of the table.
        names: of rows of dots or bars, from the top.
        series: values that are drawn.
        words: name -> its name in the figure.
        note: on series that are not drawn.
        is_beside: whether measures stand side by side, each with axes of its own.
    """

    rows: pd.DataFrame
    names: list[Any]
    series: list[Any]
    words: Mapping[Any, str]
    note: str
    is_beside: bool


def worded(common: Names, column: str, value: Any) -> str:
    """Return the text of a value in a figure."""
    return common.words.get(value, value if isinstance(value, str) else word(column, value))


def _dots(panel: Axes, chart: Chart, part: Part, common: Names) -> None:
    """Draw a row of dots with intervals for each name."""
    column = chart.names.column
    names = common.names
    if not chart.series and column == ORDERING:
        figures.dots_by_order(panel, part.found, names, VALUE)
    else:
        rows, look = _look(chart, part.found, common, common.series)
        rows = rows.assign(name=part.found[column], state=rows[look["hue"]])
        look["hue_order"] = [name for name in look["hue_order"] if name in set(rows["state"])]
        figures.dots_by_name(panel, rows, names, look, VALUE)
    if part.points.pairs and not chart.series:
        same = part.found[is_same(part.found)]
        panel.plot(same[VALUE], [names.index(name) for name in same[column]], "o", **_SAME)
    for points, dashes in zip(chart.bounds, DASHES, strict=False):
        bound = rows_at(estimates(common.rows, points, [*part.at]), part.at)
        if points.each:
            rows, look = _look(chart, bound, common, common.series)
            look |= {"markers": dict.fromkeys(look["hue_order"], "|")}
            rows, others = rows.assign(name=bound[column], state=rows[look["hue"]]), len(panel.containers)
            figures.dots_by_name(panel, rows, names, look, VALUE)
            for container in panel.containers[others:]:
                container[0].set_gid(IS_BOUND)
            panel.plot([], [], "|", color="0.3", label=points.label)
        for value in bound[VALUE] if not points.each else ():
            panel.axvline(value, label=points.label, linestyle=dashes, **_BOUND)
    panel.set_yticks(range(len(names)), [worded(common, column, name) for name in names])


def is_same(found: pd.DataFrame) -> pd.Series:
    """Return which gains are no difference by their verdict."""
    return found.get("difference", pd.Series("", index=found.index)) == gains.NO_DIFFERENCE


def _lines(panel: Axes, chart: Chart, part: Part, common: Names) -> None:
    """Draw a line for each series: with intervals, a range over gases as a band, or without."""
    x = chart.names.column
    peers = [name for name in common.series if name in chart.peers]
    colours: dict[str, str] = {}
    for series in ([name for name in common.series if name not in peers], peers):
        found, look = _look(chart, part.found, common, series)
        colours |= dict(zip(map(str, series), look["palette"].values(), strict=True))
        has_ends = (found[LOW] < found[HIGH]).any() or not part.points.statistic
        if (found["of_gases"].any() and part.points.form != MEAN) or not has_ends:
            _plain_lines(panel, found, x, look, chart.gaps)
        else:
            figures.lines(panel, found, x, VALUE, look, log=bool(chart.names.log))
    for points, dashes in zip(chart.bounds, DASHES, strict=False):
        series = [chart.series] if chart.series and not points.label else []
        bound = rows_at(estimates(common.rows, points, [*part.at, x, *series]), part.at).sort_values(x)
        if not series:
            panel.plot(bound[x], bound[VALUE], label=points.label or None, linestyle=dashes, **_BOUND)
        for (name,), own in bound.groupby(series) if series else ():
            if str(name) in colours:  # of a series that is drawn
                panel.plot(own[x], own[VALUE], **_FITTED, color=colours[str(name)])
    for layer in chart.layers:
        _layer(panel, chart, layer, part, common)
    for marks, shape in zip(chart.marks, _SHAPES, strict=False):
        if not marks.where or len(common.rows.query(marks.where)) == len(common.rows):
            at = part.at | {name: part.found[name].iloc[0] for name in (OVER,) if name in part.found}
            own = rows_at(marks.table, {name: value for name, value in at.items() if name in marks.table})
            panel.plot(own[x], own[marks.value], label=marks.label, **MARK | {"marker": shape})
    if chart.numbers and len(common.series) == 1:
        figures.values_at_points(panel, part.found, x, VALUE)


def _layer(panel: Axes, chart: Chart, layer: Layer, part: Part, common: Names) -> None:
    """Draw points over the lines, in the colours of the series."""
    x = AT if layer.points.across else chart.names.column
    by = [*part.at, chart.series, *([] if layer.points.across else [x])]
    every = rows_at(estimates(common.rows, layer.points, by), part.at).dropna(subset=x)
    _, look = _look(chart, part.found, common, common.series)
    for (name, *_), own in every.groupby([chart.series, *layer.points.each], sort=False):
        text = worded(common, chart.series, name)
        if text not in look["palette"]:  # a series that is not drawn
            continue
        colour: dict[str, Any] = {"color": look["palette"][text]}
        if layer.sign == STAR:
            ends = own[[VALUE, LOW, HIGH]].set_axis(["centre", "low", "high"], axis=1)
            panel.errorbar(own[x], own[VALUE], yerr=figures.error_bars(ends), capsize=2, **colour, **_STAR)
        elif layer.sign == HOLLOW:
            panel.plot(own[x], own[VALUE], **colour, marker=look["markers"][text], **_HOLLOW)
        else:
            own = own.sort_values(x)
            panel.plot(own[x], own[VALUE], "--", **colour, linewidth=0.9, gid=IS_LAYER)


def _plain_lines(panel: Axes, found: pd.DataFrame, x: str, look: dict, gaps: bool) -> None:
    """Draw a line for each series without intervals, with a band where it has a range."""
    every = np.sort(found[x].unique())
    for name in look["hue_order"]:
        own = found[found[look["hue"]] == name].set_index(x)[[VALUE, LOW, HIGH]].sort_index()
        if own.empty:
            continue
        own = own.reindex(every) if gaps else own
        options = figures.line_options(look, name)
        options |= {"marker": ""} if len(own) > _MOST_MARKERS else {}
        panel.plot(own.index, own[VALUE], label=str(name), **options)
        if (own[HIGH] > own[LOW]).any():
            band: dict[str, Any] = {"color": look["palette"][name], "alpha": 0.18, "linewidth": 0}
            panel.fill_between(own.index, own[LOW], own[HIGH], **band)


def _bars(panel: Axes, chart: Chart, part: Part, common: Names) -> None:
    """Draw the parts of each name one behind the other, bounds as marks, and the whole with its interval."""
    parts, whole, _ = parts_of(chart, part.found, common)
    ends = whole.set_axis(["centre", "low", "high"], axis=1) if chart.whole else None
    figures.stacked_bars(panel, parts, chart.order or common.series, ends, chart.whole)
    for points, marker in zip(chart.bounds, _BAR_MARKS, strict=False):
        bound = rows_at(estimates(common.rows, points, [*part.at, chart.names.column]), part.at)
        if len(bound):
            places = [common.names.index(name) for name in bound[chart.names.column]]
            panel.plot(bound[VALUE], places, label=points.label, **marker)
    figures.rows_of_names(panel, [str(common.words.get(name, name)) for name in common.names])


def parts_of(chart: Chart, found: pd.DataFrame, common: Names) -> tuple[pd.DataFrame, pd.DataFrame, bool]:
    """Return the parts of each name, the whole with its ends, and whether parts were left out."""
    by_name = found.set_index(chart.names.column)
    whole = by_name[by_name[chart.series] == chart.whole][[VALUE, LOW, HIGH]].reindex(common.names)
    parts = by_name[by_name[chart.series].isin(common.series)]
    parts = parts.pivot(columns=chart.series, values=VALUE).reindex(common.names)
    if not chart.whole:
        return parts, whole, False
    agree = (parts.sum(axis=1) / whole[VALUE] - 1).abs() <= reliability.MOST_APART
    others = ~agree.index.isin(BASELINES)  # all of them or none, or they could not be compared
    agree &= agree[others].all() | ~others
    return parts.where(agree, axis=0), whole, not agree.all()


DRAWN: dict[str, Callable[[Axes, Chart, Part, Names], None]] = {DOTS: _dots, LINES: _lines, BARS: _bars}


def _look(chart: Chart, found: pd.DataFrame, common: Names, series: Sequence) -> tuple[pd.DataFrame, dict]:
    """Return points with the texts of a series, and the look of those: orders, numbers, or others in turn."""
    column = chart.series or NO_SERIES
    if series and series[0] in chart.peers:
        look = style.peers_in_turn(series, column)
    elif column == ORDERING:
        look = style.lines(series)
    else:
        is_number = all(map(checks.is_number, series))
        look = (style.steps_in_turn if is_number else style.lines_in_turn)(series, column)
    texts = {name: worded(common, column, name) for name in series}
    for key in ("palette", "markers", "dashes"):
        look[key] = {text: look[key][name] for name, text in texts.items()}
    look["hue_order"] = list(texts.values())
    return found.assign(**{column: found[column].map(texts) if chart.series else NO_SERIES}), look
