"""The one module that draws a `Chart` as a figure: panels, lines and rows of dots with intervals, bars.

`draw` draws all views of an experiment. The looks of names are those of `experiments.drawing.style`: memory
orders by their families, numbers from dark to light, anything else in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from experiments.drawing import figures, style
from experiments.results import gains
from experiments.results.baselines import BASELINES, aged, fresh, is_again
from experiments.results.charts import (
    DOTS,
    LINES,
    VALUE,
    Chart,
    Points,
    Scale,
    Summary,
    View,
    estimates,
    facts,
    filled,
    selected,
    word,
)
from experiments.results.tables import save_table
from sfc import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[[pd.DataFrame, Path], Any]
_ORDERING = "ordering"  # the column of memory orders, whose looks are fixed
_WIDTH, _LINE, _ROW = 2.5, 2.9, 0.22  # inches: of a panel; height of a panel of lines, and of a row of dots


def draw(views: Sequence[View], table: pd.DataFrame, out: Path) -> None:
    """Draw all views of an experiment into a folder.

    Args:
        views: charts and summaries, and functions of a table and a folder for what no chart can say.
        table: of the run.
        out: folder of the files.

    Raises:
        ValueError: a chart that does not fit the table; the error names the chart.
    """
    for view in views:
        if isinstance(view, Chart):
            draw_chart(view, table, out)
        elif isinstance(view, Summary):
            save_table(view.table(table), out, view.name)
        else:
            view(table, out)


def draw_chart(chart: Chart, table: pd.DataFrame, out: Path) -> None:
    """Draw a chart: a figure for each value of its columns `files`.

    Args:
        chart: what is drawn.
        table: of the run.
        out: folder of the files.

    Raises:
        ValueError: a chart that does not fit the table; the error names the chart.
    """
    files = list(chart.files_of)
    for key, rows in table.groupby(files, sort=False) if files else [((), table)]:
        few = any(rows[name].nunique() < 2 for name in chart.varying)
        if few or any(rows[name].nunique() > 1 for name in chart.single):
            continue
        try:
            figure = _figure(chart, rows)
        except ValueError as error:
            raise ValueError(f"chart {chart.name}: {error}") from error
        if figure is not None:
            style.save(figure, out, _file_name(chart, table, dict(zip(files, key, strict=True))), rows)


def _file_name(chart: Chart, table: pd.DataFrame, values: dict[Any, Any]) -> str:
    """Name a figure: the fields of the chart's name, then those other columns that vary."""
    words = {
        name: (f"_{name}" if value else "") if isinstance(value, bool | np.bool_) else value
        for name, value in values.items()
    }
    stem = chart.name.format(**words)
    return figures.file_name(stem, table, chart.files, [values[name] for name in chart.files])


def _measures(chart: Chart, rows: pd.DataFrame) -> Iterator[tuple[Points, pd.DataFrame]]:
    """Yield the points of each line of panels and their numbers; each baseline has a line of its own."""
    is_apart = "over" not in (chart.series, chart.panels)
    for points in chart.measures:
        found = estimates(rows, points, chart.each)
        if found.empty and points.over and chart.otherwise is not None:
            points, found = chart.otherwise, estimates(rows, chart.otherwise, chart.each)
        if found.empty:
            continue
        if points.over and is_apart:
            yield from ((points, part) for _, part in found.groupby("over", sort=False))
        else:
            yield points, found


def _figure(chart: Chart, rows: pd.DataFrame) -> Figure | None:
    """Draw a figure of some rows; None if there is nothing to be drawn."""
    measures = list(_measures(chart, rows))
    if not measures:
        return None
    names = _names(chart, rows)
    shown, left_out = _series(chart, rows)
    figure, grid = _panels(chart, rows, measures, names, shown)
    for line, (points, found) in zip(grid, measures, strict=True):
        axis, timed = points.values or chart.values, selected(rows, points)
        part = found[found[chart.series].isin(shown)] if chart.series else found
        for panel, at in zip(line, _columns(chart, rows), strict=True):
            own = part[part[chart.panels] == at] if chart.panels else part
            _DRAWN[chart.form](panel, chart, own, names, shown)
            _mark(panel, chart, axis, own, timed)
        _scale(line[0], chart, axis, part)
    figure.suptitle(_title(chart, rows, measures, left_out), fontsize=9)
    return figure


def _names(chart: Chart, rows: pd.DataFrame) -> list[str]:
    """Return the names of rows of dots from the top."""
    every = dict.fromkeys(rows[chart.names.column]) if chart.form != LINES else {}
    return [name for name in every if not is_again(name)]


def _series(chart: Chart, rows: pd.DataFrame) -> tuple[list, str]:
    """Return the values of the series that are drawn, and a line of text about the others."""
    if not chart.series or chart.series == "over":
        return list(chart.measures[0].over if chart.series else []), ""
    every = [name for name in dict.fromkeys(rows[chart.series]) if not is_again(name)]
    shown = style.few(every) if chart.series == _ORDERING else every[: style.MOST_LINES]
    return shown, style.left_out(every, shown)


def _columns(chart: Chart, rows: pd.DataFrame) -> list:
    return sorted(rows[chart.panels].unique()) if chart.panels else [None]


def _panels(
    chart: Chart,
    rows: pd.DataFrame,
    measures: Sequence[tuple[Points, pd.DataFrame]],
    names: Sequence[str],
    shown: Sequence,
) -> tuple[Figure, np.ndarray]:
    """Make the panels: a column for each value of `panels`, a line for each measure."""
    import matplotlib.pyplot as plt  # here, as in style

    columns = _columns(chart, rows)
    one = _LINE if chart.form == LINES else (_ROW + 0.05 * max(len(shown) - 1, 0)) * len(names) + 0.62
    size = (_WIDTH * len(columns) + 1.4, one * len(measures) + 0.5)
    shape = (len(measures), len(columns))
    share: dict[str, Any] = {"sharey": "row"} | ({} if chart.form == LINES else {"sharex": "row"})
    figure, grid = plt.subplots(*shape, figsize=size, squeeze=False, **share)
    for panel, at in zip(grid[0], columns, strict=True):
        if chart.panels:
            heading = chart.heading or f"{{{chart.panels}}}"
            panel.set_title(filled(heading, {chart.panels: word(chart.panels, at)}))
    return figure, grid


def _dots(panel: Axes, chart: Chart, found: pd.DataFrame, names: list[str], shown: Sequence) -> None:
    """Draw a row of dots for each name but the baseline, with an interval each."""
    names = [name for name in names if "over" not in found or name not in set(found["over"])]
    if chart.series:
        rows = found.assign(name=found[chart.names.column], state=found[chart.series])
        figures.dots_by_name(panel, rows, names, _look(chart, shown), VALUE)
    elif chart.names.column == _ORDERING:
        figures.dots_by_order(panel, found, names, VALUE)
    else:
        look = {"hue_order": [""], "palette": {"": style.TURNS[0]}, "markers": {"": "o"}}
        figures.dots_by_name(
            panel, found.assign(name=found[chart.names.column], state=""), names, look, VALUE
        )


def _lines(panel: Axes, chart: Chart, found: pd.DataFrame, names: list[str], shown: Sequence) -> None:
    """Draw a line for each value of the series, with intervals."""
    figures.lines(panel, found, chart.names.column, VALUE, _look(chart, shown), log=bool(chart.names.log))
    if chart.names.log:
        panel.set_xscale("log", base=chart.names.log)
    panel.set_xlabel(chart.names.title)


_DRAWN: dict[str, Callable[[Axes, Chart, pd.DataFrame, list[str], Sequence], None]] = {
    DOTS: _dots,
    LINES: _lines,
}


def _look(chart: Chart, shown: Sequence) -> dict:
    """Return the look of a series: of memory orders, of numbers, or of other names in turn."""
    if chart.series == _ORDERING:
        return style.lines(shown)
    is_number = all(isinstance(value, int | float | np.number) for value in shown)
    return (style.steps_in_turn if is_number else style.lines_in_turn)(shown, chart.series)


def _mark(panel: Axes, chart: Chart, axis: Scale, found: pd.DataFrame, rows: pd.DataFrame) -> None:
    """Draw the noise and the line of an axis, and name it."""
    across = chart.form != LINES
    if axis.line is not None:
        (panel.axvline if across else panel.axhline)(axis.line, color="0.6", linewidth=0.8, zorder=0.5)
    floor = found["noise_floor"].max() if "noise_floor" in found else np.nan
    if np.isfinite(floor):
        (panel.axvspan if across else panel.axhspan)(1 / floor, floor, color="0.92", zorder=0)
    over = str(found["over"].iloc[0]) if "over" in found and len(found) else ""
    title = axis.title.format(over=_memory(rows, over))
    if across:
        panel.set_xlabel(title, fontsize=8)
    elif panel.get_subplotspec().is_first_col():
        panel.set_ylabel(title)


def _ages(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the ages of some memory orders, if the rows have ages."""
    if not {"age_steps", _ORDERING} <= set(rows):
        return pd.Series(dtype=float)
    return pd.to_numeric(rows.loc[rows[_ORDERING].isin(names), "age_steps"]).dropna()


def _memory(rows: pd.DataFrame, baseline: str) -> str:
    """Name a baseline; memory that has an age with it."""
    if baseline not in BASELINES:
        return baseline
    ages = _ages(rows, [baseline])
    return f"{baseline} memory, {aged(round(ages.max()))}" if len(ages) else f"{baseline} memory"


def _scale(panel: Axes, chart: Chart, axis: Scale, found: pd.DataFrame) -> None:
    """Limit the axis of values of a line of panels to all that it shows."""
    across = chart.form != LINES
    if not axis.log:
        (panel.set_xlim if across else panel.set_ylim)(*axis.ends)
        return
    floor = found["noise_floor"].max() if "noise_floor" in found else np.nan
    others = [axis.line or np.nan, floor, 1 / floor]
    figures.whole_centres_on_log(panel, found, VALUE, 1.0, others, across)


def _title(chart: Chart, rows: pd.DataFrame, measures: Sequence, left_out: str) -> str:
    """Return the title: the chart's sentence, its case, and what dots and bars are."""
    points, found = measures[0]
    words = facts(chart, rows, found)
    sentence = filled(chart.title, words) if points in chart.measures else ""  # not for those in their place
    noise = "noise_floor" in found and found["noise_floor"].notna().any()
    about = [gains.caption(found)] + ["grey: noise (one case measured twice)"] * bool(noise)
    orders = [name for name in rows[_ORDERING].unique() if name not in BASELINES] if _ORDERING in rows else []
    ages = _ages(selected(rows, points), orders)
    note = filled(chart.note, words) + (f"; orders: {fresh(round(ages.max()))}" if len(ages) else "")
    return "\n".join(filter(None, [sentence, note, "; ".join(about), left_out]))


def drawer(views: Draw | Sequence[View]) -> Draw:
    """Return the function that draws views of an experiment; a function is returned as it is.

    Raises:
        TypeError: neither a function nor a sequence of views.
    """
    if callable(views):
        return views
    allowed = "charts, summaries, and functions of a table and a folder"
    every = tuple(checks.sequence("views", views, allowed))
    for view in every:
        if not isinstance(view, Chart | Summary) and not callable(view):
            raise checks.refuse_class("view", view, f"one of {allowed}")
    return lambda table, out: draw(every, table, out)
