"""Figures of a `Chart`: panels, axes, names and title. `draw` draws all views of an experiment."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from experiments.drawing import figures, style
from experiments.drawing.charts.panel import (
    DASHES,
    DRAWN,
    IS_BOUND,
    IS_LAYER,
    MARK,
    NO_SERIES,
    ORDERING,
    Names,
    Part,
    is_same,
    parts_of,
    worded,
)
from experiments.results import gains, reliability
from experiments.results.answers import fields_of, filled, word
from experiments.results.baselines import AGED, BASELINES, aged, fresh, is_again
from experiments.results.charts import (
    BARS,
    DOTS,
    FIRST,
    GIVEN,
    LINES,
    MEAN,
    MIDDLE,
    OVER,
    VALUE,
    Chart,
    Points,
    Scale,
    Summary,
    Table,
    View,
    estimates,
    facts,
    prepared,
    rows_at,
    selected,
)
from experiments.results.tables import save_table
from sfc import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[[pd.DataFrame, Path], Any]
_WIDTH, _HEIGHT = 2.7, 2.9  # of a panel of lines, in inches
_TITLE_LINES, _LINE, _LETTERS_AN_INCH = 3, 0.18, 14  # of a title with room above rows of dots; one more
_LETTERS = 34  # of a line along such a panel
_ROW, _STATE, _MARGIN = 0.21, 0.06, 0.65  # inches: of a row of dots, for each more state, around the rows
_LEAST_ROWS = 5  # a figure of fewer rows of dots is as high, so that its title has room
_LETTER, _SHORT, _ROOM = 0.065, 12, 2.0  # inches of a letter; letters, and inches, that fit beside panels
_NO_PARTS = f"no parts where they differ from the whole by over {reliability.MOST_APART:.0%}"
_ONE = {"gases": "one gas", "scenes": "one scene", "runs": "one run, no verdict", "repeats": "one repeat"}
_FEW = 4  # whole numbers along a logarithmic axis that have a tick each
_APART = 0.1  # inches on either side of panels where numbers stand at the ends of axes
_ACROSS = 3  # panels with axes of their own in a line, if there are more than one more


def drawer(views: Draw | Sequence[View]) -> Draw:
    """Return the function that draws views; a function that draws is returned as it is.

    Args:
        views: charts, summaries, tables, and functions of a table and a folder.

    Raises:
        TypeError: neither a function nor a sequence of views.
    """
    if callable(views):
        return views
    allowed = "charts, summaries, tables, and functions of a table and a folder"
    for view in checks.sequence("draw", views, f"{allowed}; or one function"):
        if not isinstance(view, Chart | Summary | Table) and not callable(view):
            raise checks.refuse_class("view", view, f"one of {allowed}")
    return lambda table, out: draw(views, table, out)


def draw(views: Sequence[View], table: pd.DataFrame, out: Path) -> None:
    """Draw all views of an experiment into a folder.

    Args:
        views: charts, summaries and tables, and functions of a table and a folder for what no chart can say.
        table: of the run.
        out: folder of the files.

    Raises:
        ValueError: a view that does not fit the table; that of a chart names it.
        OSError: a file cannot be written.
    """
    for view in views:
        if (needed := getattr(view, "needs", "")) and needed not in table:
            continue
        if isinstance(view, Chart):
            draw_chart(view, table, out)
        elif isinstance(view, Summary | Table):
            if len(rows := view.table(table)):
                save_table(rows, out, view.name)
        else:
            view(table, out)


def draw_chart(chart: Chart, table: pd.DataFrame, out: Path) -> None:
    """Draw a chart: a figure for each value of its columns `figures`.

    Args:
        chart: what is drawn.
        table: of the run.
        out: folder of the files.

    Raises:
        ValueError: a chart that does not fit the table; the error names the chart.
        OSError: a file cannot be written.
    """
    try:
        table, columns = prepared(chart, table), list(chart.figures)
        if table.empty:  # it has nothing of what the chart shows
            return
        conditions = (*chart.varying, *chart.single)
        for key, rows in table.groupby(columns, sort=False) if columns else [((), table)]:
            counts = {name: (table if name in columns else rows)[name].nunique() for name in conditions}
            if any(counts[name] < 2 for name in chart.varying) or any(counts[n] > 1 for n in chart.single):
                continue
            if (figure := _figure(chart, rows)) is not None:
                style.save(figure, out, _file_name(chart, table, dict(zip(columns, key, strict=True))), rows)
    except (ValueError, KeyError) as error:
        raise ValueError(f"chart {chart.name}: {error}") from error


def _file_name(chart: Chart, table: pd.DataFrame, values: Mapping[Any, Any]) -> str:
    """Name a figure: the fields of the chart's name, and those other columns that vary."""
    words = dict(values)
    for name, value in values.items():
        if isinstance(value, bool | np.bool_):
            words[name] = f"_{name}" if value else ""
        elif isinstance(value, float):
            words[name] = f"{value:g}"
    stem = chart.name.format(**words)
    return figures.file_name(stem, table, chart.files, [values[name] for name in chart.files])


def _figure(chart: Chart, rows: pd.DataFrame) -> Figure | None:
    """Draw a figure of some rows; None if no point is known. Lines over one number are rows of dots."""
    names = Scale("", chart.series or chart.names.column)
    named = replace(chart, form=DOTS, names=names, series="", title_of_series="")
    if chart.form == LINES and rows[chart.names.column].nunique() == 1:
        chart = named
    elif chart.most and len({*_known(rows, chart.series)} - {*chart.without, *BASELINES, AGED}) > chart.most:
        chart = replace(named, panels=chart.names.column, lines=chart.panels, heading="")
    measures = list(_measures(chart, rows))
    if not measures:
        return None
    grid = _grid(chart, rows, measures)
    common = _names(chart, rows, measures[0][1], len(grid) == 1 and len(measures) > 1)
    grid = _broken(grid[0]) if common.is_beside else grid
    figure, panels = _panels(chart, grid, common)
    column = chart.names.column
    for parts, line in zip(grid, panels, strict=True):
        every = pd.concat([part.found for part in parts], ignore_index=True)
        drawn = common
        if chart.form == DOTS:
            drawn = common._replace(names=[name for name in common.names if name in set(every[column])])
        own = [(panel, chart.beside(part.points), part) for part, panel in zip(parts, line, strict=True)]
        for panel, of_panel, part in own:
            DRAWN[chart.form](panel, of_panel, part, drawn)
        for panel, of_panel, part in own:  # those of a line share an axis
            shown = (part.found, [panel]) if _has_own_axes(chart, common) else (every, line)
            _limit(panel, of_panel, *shown)
            _name_axes(panel, of_panel, part, common)
    _keep_apart(figure, panels)
    _name_series(chart, panels, common)
    title = _title(chart, measures[0], grid, common)
    if chart.form == DOTS:
        across = _LETTERS_AN_INCH * figure.get_figwidth()
        lines = sum(1 + int(len(line) / across) for line in title.splitlines())
        figure.set_figheight(figure.get_figheight() + _LINE * max(0, lines - _TITLE_LINES))
    figure.suptitle(title, fontsize=9)
    return figure


def _has_own_axes(chart: Chart, common: Names) -> bool:
    """Return whether each panel has an axis of values of its own, as that of a number has."""
    return common.is_beside or (chart.form == DOTS and chart.most > 0)


def _measures(chart: Chart, rows: pd.DataFrame) -> Iterator[tuple[Points, pd.DataFrame]]:
    """Yield the points of each line of panels and their numbers; each baseline has a line of its own."""
    for points in chart.measures:
        found = estimates(rows, points, chart.beside(points).each)
        if found.empty and points.over and chart.otherwise is not None:
            points, found = chart.otherwise, estimates(rows, chart.otherwise, chart.each)
        for column in (chart.series, chart.beside(points).names.column):
            found = found[~found[column].isin(chart.without)] if column and column != OVER else found
        if OVER in found and not points.pairs and OVER not in (chart.series, chart.panels):
            yield from ((points, part) for _, part in found.groupby(OVER, sort=False))
        elif not found.empty:
            yield points, found


def _grid(chart: Chart, rows: pd.DataFrame, measures: Sequence) -> list[list[Part]]:
    """Return the panels: a line for each measure; side by side if each has a single panel."""
    columns = _values(rows, measures[0][1], chart.panels)
    lines = [
        [Part(points, rows_at(found, dict(at, **of)), dict(at, **of)) for of in columns]
        for points, found in measures
        for at in _values(rows, found, chart.lines)
    ]
    return lines if len(columns) > 1 or chart.lines else [[part for line in lines for part in line]]


def _broken(parts: list[Part]) -> list[list[Part]]:
    """Break a line of panels with axes of their own into lines of few."""
    across = _ACROSS if len(parts) > _ACROSS + 1 else len(parts)
    return [parts[start : start + across] for start in range(0, len(parts), across)]


def _values(rows: pd.DataFrame, found: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """Return the values of a column of panels: numbers in their order, names as they come first."""
    if not column:
        return [{}]
    values = list((found if column == OVER else rows)[column].unique())
    every = sorted(values) if all(map(checks.is_number, values)) else values
    return [{column: value} for value in every if value in set(found[column])]


def _names(chart: Chart, rows: pd.DataFrame, found: pd.DataFrame, is_beside: bool) -> Names:
    """Return the names and series of a figure, and which series are not drawn."""
    words: Any = chart.words(rows) if callable(chart.words) else chart.words
    names = [] if chart.form == LINES else _in_order(chart, rows, found, chart.names.column, ())
    if chart.measures[0].pairs:
        names = [name for name in names if name in set(found[chart.names.column])]
    every = _in_order(chart, rows, found, chart.series, chart.order) if chart.series else [NO_SERIES]
    every = [name for name in every if name not in chart.without]
    shown = [name for name in every if name in chart.order] if chart.order else every
    if chart.series == ORDERING:
        shown = style.few(shown)
    most = set(shown[: style.MOST_LINES])
    series = [name for name in _known(found if chart.series == OVER else rows, chart.series) if name in most]
    series = [name for name in chart.order if name in most] if chart.order else series or shown
    series = sorted(series) if all(map(checks.is_number, series)) else series
    others = "" if chart.order else ", ".join(str(name) for name in every if name not in most)
    first = "one order of each family" if chart.series == ORDERING else f"the first {style.MOST_LINES}"
    which = "the fastest" if chart.fastest else first
    note = f"{which}; in the table: {others}" if others else ""
    return Names(rows, names, series, words, note, is_beside)


def _known(rows: pd.DataFrame, column: str) -> list[Any]:
    return [name for name in dict.fromkeys(rows.get(column, ())) if not is_again(name)]


def _in_order(chart: Chart, rows: pd.DataFrame, found: pd.DataFrame, column: str, order: Sequence) -> list:
    """Return the values of a column as they come, or the best first, by the mean at the largest number."""
    every = _known(found if column == OVER else rows, column)
    if not chart.fastest or order:
        return every
    last = (
        found[found[chart.names.column] == found[chart.names.column].max()] if chart.form == LINES else found
    )
    best = last.groupby(column)[VALUE].mean().sort_values(ascending=OVER not in found).index
    return list(dict.fromkeys([*best, *every]))


def _panels(chart: Chart, grid: list[list[Part]], common: Names) -> tuple[Figure, list[list[Axes]]]:
    """Make the panels of a figure, with their headings."""
    import matplotlib.pyplot as plt  # here, as in style

    states = len(common.series) if chart.form == DOTS else 1
    row = 0.5 if chart.form == BARS and len(grid[0]) == 1 else _ROW + _STATE * (min(states, 6) - 1)
    height = _HEIGHT if chart.form == LINES else row * max(len(common.names), _LEAST_ROWS) + _MARGIN
    width = 2 * _WIDTH if chart.form == BARS and len(grid[0]) == 1 else _WIDTH * len(grid[0])
    size = (width + 1.4 + _beside(chart, common), height * len(grid) + 0.5)
    beside, is_dots = common.is_beside, chart.form == DOTS
    has_common_axis = is_dots or (chart.form == BARS and not chart.whole)
    sharex = "row" if has_common_axis and not _has_own_axes(chart, common) else "none"
    share: dict[str, Any] = {"sharex": sharex, "sharey": "none" if beside and not is_dots else "row"}
    figure, every = plt.subplots(len(grid), len(grid[0]), figsize=size, squeeze=False, **share)
    for panel in every[-1, len(grid[-1]) :]:
        panel.remove()
    panels = [list(line[: len(parts)]) for parts, line in zip(grid, every, strict=True)]
    for number, (parts, line) in enumerate(zip(grid, panels, strict=True)):
        for part, panel in zip(parts, line, strict=True):
            template = chart.heading or ", ".join(f"{{{name}}}" for name in part.at)
            if part.at and (number == 0 or chart.lines):
                words = {name: worded(common, name, value) for name, value in part.at.items()}
                panel.set_title(filled(template, words))
    return figure, panels


def _beside(chart: Chart, common: Names) -> float:
    """Return the inches that long names, and those of a series of rows of dots, need beside the panels."""
    columns = {chart.names.column: common.names}
    columns |= {chart.series: common.series} if chart.form == DOTS and chart.series else {}
    texts = [[worded(common, column, name) for name in names] for column, names in columns.items()]
    letters = [max((len(line) for text in of for line in text.split("\n")), default=0) for of in texts]
    return max(0.0, _LETTER * (letters[0] - _SHORT), _LETTER * sum(letters) - _ROOM)


def _name_axes(panel: Axes, chart: Chart, part: Part, common: Names) -> None:
    """Name the axes, and draw the noise."""
    across, found = chart.form != LINES, part.found
    if np.isfinite(floor := _floor(found)) and chart.form == DOTS and part.points.form == GIVEN:
        figures.noise_by_name(panel, found.assign(name=found[chart.names.column]), common.names)
    elif np.isfinite(floor):
        (panel.axvspan if across else panel.axhspan)(1 / floor, floor, color="0.92", zorder=0)
    title = chart.values.title
    words = {name: word(name, common.rows[name].iloc[0]) for name in fields_of(title) if name != OVER}
    over = str(found[OVER].iloc[0]) if OVER in found and len(found) else ""
    title = title.format(over=_memory(selected(common.rows, part.points), over), **words)
    if across:
        panel.set_xlabel(title, fontsize=8)
        return
    spec = panel.get_subplotspec()
    if spec is None or spec.is_first_col() or panel.yaxis.get_tick_params().get("labelleft", True):
        panel.set_ylabel(textwrap.fill(title, _LETTERS))
    panel.set_xlabel(chart.names.title)
    _number_axis(panel, chart.names, found[chart.names.column])


def _number_axis(panel: Axes, axis: Scale, numbers: pd.Series) -> None:
    """Scale the axis to the right of lines: few whole numbers have a tick each."""
    is_whole, whole = pd.api.types.is_integer_dtype(numbers), sorted(set(numbers))
    if axis.log:
        panel.set_xscale("symlog" if axis.from_zero else "log", base=axis.log)
    if axis.log and axis.from_zero:
        panel.set_xlim(0, None)
    elif axis.log == 10 and is_whole and len(whole) <= _FEW:
        panel.set_xticks(whole, [f"{number:,}" for number in whole])
        panel.minorticks_off()
    elif axis.log == 10:
        figures.plain_log_ticks(panel, horizontal=True)
    elif not axis.log:
        panel.set_xlim(*axis.ends)
        if is_whole:
            panel.locator_params("x", integer=True)


def _floor(found: pd.DataFrame) -> float:
    return float(found["noise_floor"].max()) if "noise_floor" in found else np.nan


def _ages(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the ages of some memory orders, if the rows have ages."""
    if not {"age_steps", ORDERING} <= set(rows):
        return pd.Series(dtype=float)
    return pd.to_numeric(rows.loc[rows[ORDERING].isin(names), "age_steps"]).dropna()


def _memory(rows: pd.DataFrame, baseline: str) -> str:
    """Name a baseline; memory that has an age with it."""
    ages = _ages(rows, [baseline])
    if baseline == AGED and len(ages):
        return f"{aged(round(ages.max()))} memory"
    if baseline not in BASELINES:
        return baseline
    return f"{baseline} memory, {aged(round(ages.max()))}" if len(ages) else f"{baseline} memory"


def _limit(panel: Axes, chart: Chart, found: pd.DataFrame, panels: Sequence[Axes]) -> None:
    """Limit the axis of values to all that the panels which share it show."""
    axis, across = chart.values, chart.form != LINES
    if axis.line is not None:
        (panel.axvline if across else panel.axhline)(axis.line, color="0.6", linewidth=0.8, zorder=0.5)
    if chart.form == BARS:
        return
    if not axis.log:
        if axis.ends != (None, None):  # or panels that share an axis were limited by the first
            (panel.set_xlim if across else panel.set_ylim)(*axis.ends)
    elif (found[VALUE] <= 0).any():  # a cache may hold all of a small system
        if (found[VALUE] > 0).any():
            (panel.set_xscale if across else panel.set_yscale)("log", nonpositive="mask")
            figures.plain_log_ticks(panel, across)
    else:
        floor = _floor(found)
        drawn = [value for one in panels for line in one.lines for value in _values_of(line, across)]
        others = [axis.line or np.nan, floor, 1 / floor, *drawn]
        figures.whole_centres_on_log(panel, found, VALUE, others, across)


def _values_of(line: Any, across: bool) -> list[float]:
    """Return the values of a bound or of published marks, which are drawn besides what is found."""
    is_bound = (line.get_linestyle() in DASHES and line.get_gid() != IS_LAYER) or line.get_gid() == IS_BOUND
    is_shown = is_bound or line.get_color() == MARK["color"]
    return [float(value) for value in (line.get_xdata() if across else line.get_ydata())] if is_shown else []


def _keep_apart(figure: Figure, panels: list[list[Axes]]) -> None:
    """Leave room between panels, so that a number at the end of an axis is apart from those of the next."""
    engine: Any = figure.get_layout_engine()
    beside_another = [panel for line in panels for panel in line[:-1]]
    if engine is not None and any(panel.get_xlim()[1] in panel.get_xticks() for panel in beside_another):
        engine.set(w_pad=_APART)


def _name_series(chart: Chart, panels: list[list[Axes]], common: Names) -> None:
    """Write the names of the series: at the ends of lines, or in a legend."""
    every = [panel for line in panels for panel in line]
    if chart.form == LINES:
        for line in panels if chart.lines else panels[:1]:
            most = style.MOST_LINES + len(chart.bounds) + len(chart.marks)
            most = 0 if len(chart.marks) > 1 else most  # a legend shows their shapes
            figures.name_lines(line[-1], chart.title_of_series or None, list(line), most=most)
    elif chart.series or chart.form == BARS or chart.bounds:
        figures.legend_outside(panels[0][-1], chart.title_of_series or None, every)


def _title(chart: Chart, measure: tuple, grid: Sequence[Sequence[Part]], common: Names) -> str:
    """Return the title: the chart's sentence, its case, and what dots and bars are."""
    points, found = measure
    if chart.form == LINES and chart.series:  # the title is about lines that are drawn
        found = found[found[chart.series].isin(common.series)]
    words = facts(chart, common.rows, found)
    sentence = filled(chart.title, words) if points is chart.measures[0] else ""
    note = chart.note(common.rows) if callable(chart.note) else filled(chart.note, words)
    orders = [name for name in common.rows.get(ORDERING, pd.Series()).unique() if name not in BASELINES]
    ages = _ages(selected(common.rows, points), orders)
    if len(ages) and "reorder_every" not in common.rows:  # which tells of later reorders
        note += f"; orders: {fresh(round(ages.max()))}"
    has_interval = points.form not in (FIRST, MIDDLE)
    about = _about(points, found, common.rows) if has_interval else ""
    if any(np.isfinite(_floor(part.found)) for line in grid for part in line):
        about += "; grey: noise (one case measured twice)"
    if points.pairs and not chart.series and is_same(found).any():
        about += "; hollow: no difference"
    if chart.form == BARS and any(parts_of(chart, part.found, common)[2] for line in grid for part in line):
        about += f"; {_NO_PARTS}"
    return "\n".join(filter(None, [sentence, note.removeprefix("; "), about, common.note]))


def _about(points: Points, found: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Describe points and intervals; a column `spread_over` says what is repeated, if the points do not."""
    if not found["of_gases"].any():
        return gains.caption(found)
    over = str(rows.get("spread_over", pd.Series([points.repeated])).iloc[0])
    if points.form == MEAN:
        return f"mean over {over}, and twice its standard error"
    several = int(found["runs"].max())
    return f"median and range over {several} {over}" if several > 1 else _ONE.get(over, f"one of {over}")
