"""Parts that figures share: lines with intervals, rows of dots, bars, legends, logarithmic axes.

The colours of bars are those of Okabe and Ito (2008); a hatch tells them apart without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from experiments.drawing import style
from experiments.results import gains

_ASIDE = 0.008  # of the axis: how far apart the points of two names stand
_HELD = 2.5  # largest factor between centres and the ends of intervals within the frame
_BEYOND = 1.6  # factor between centres and the frame that wider intervals leave
_NEAR = 0.15  # of the range of a line: distance of points at which their values would overlap
_MARGIN = 0.06  # of a logarithmic axis, at each end
_SHORT_NUMBERS = (0.5, 12)  # low end of an axis with short numbers, and range up to which its ticks lie close
_FEW_TICKS, _SOME_TICKS = 2.5, (20, 8)  # ranges up to which ticks lie close, vertical and horizontal
_MANY_TICKS = (1000, 200)  # the same for up to three a decade, on a vertical and on a horizontal axis
_WIDE = 1e5  # end of an axis from which its ticks are few, and powers of ten if it has many
_BAR_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "0.8", "0.6")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--")
_BAR = 0.62  # height, of the distance of two names
_LEAST_SHARE = 0.07  # of the longest bar: narrower parts have no room for their share
_PLATE = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
_SHARE: dict[str, Any] = {"fontsize": 7, "bbox": _PLATE}

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def titled(figure: Figure, title: str, out: Path, name: str, rows: pd.DataFrame | None = None) -> None:
    """Write a figure under a title, and close it.

    Args:
        figure: to be written.
        title: above all panels.
        out: folder of the files.
        name: of the files, without an ending.
        rows: of the table that it shows, as for `style.save`; None for all.
    """
    figure.suptitle(title, fontsize=9)
    style.save(figure, out, name, rows)


def file_name(stem: str, table: pd.DataFrame, columns: Sequence[str], key: Sequence[Any]) -> str:
    """Join a stem with the values of those columns that have more than one value in a table.

    Args:
        stem: first part of the name.
        table: of all figures.
        columns: that tell figures apart.
        key: value of each column in this figure.

    Returns:
        A name without points, such as "gain_0_2".
    """
    several = [table[column].nunique() > 1 for column in columns]
    values = [str(value).replace(".", "_") for value, shown in zip(key, several, strict=True) if shown]
    return "_".join([stem, *values])


def line_options(look: dict, name: str) -> dict[str, Any]:
    """Return the options of matplotlib for the line of a name, with markers.

    Args:
        look: of `style.lines` and its like; `markersize` in points if it is not to be 4.5.
        name: one of its names.
    """
    dashes = look["dashes"][name]
    return {
        "color": look["palette"][name],
        "marker": look["markers"][name],
        "markersize": look.get("markersize", 4.5),
        "markeredgewidth": 0.4,
        "markeredgecolor": "white",
        "linewidth": 1.2,
        "linestyle": (0, dashes) if dashes else "-",
    }


def error_bars(ends: pd.DataFrame) -> np.ndarray:
    """Return the lengths of error bars, (2, rows): from the centre down to `low`, and up to `high`.

    Args:
        ends: rows of `gains.bounds`.
    """
    return np.clip([ends["centre"] - ends["low"], ends["high"] - ends["centre"]], 0, None)


def lines(panel: Axes, summary: pd.DataFrame, x: str, value: str, look: dict, log: bool = False) -> None:
    """Draw a line for each name, with the interval over runs (or the range of one run's rounds) as bars.

    Args:
        panel: where.
        summary: rows of `gains.over_runs` or `gains`, with the column `x` and the one that `look` names.
        x: column of the horizontal axis.
        value: the averaged column.
        look: of `style.lines` and its like: hue, hue_order, palette, markers.
        log: whether the horizontal axis is logarithmic. Points of different names are drawn a little apart,
            so that their bars can be distinguished. A line is broken where it lacks an x that another has.
    """
    ends = gains.bounds(summary, value)
    every = np.sort(summary[x].unique())
    for place, name in enumerate(look["hue_order"]):
        rows = summary[summary[look["hue"]] == name].sort_values(x)
        if rows.empty:
            continue
        at = ends.loc[rows.index].set_axis(rows[x]).reindex(every)  # the line breaks at an x without a row
        aside = _ASIDE * (place - (len(look["hue_order"]) - 1) / 2)
        panel.errorbar(
            every * (1 + 2 * aside) if log else every + aside * every.max(),
            at["centre"],
            yerr=error_bars(at),
            capsize=2,
            elinewidth=0.9,
            label=name,
            **line_options(look, name),
        )


def values_at_points(panel: Axes, summary: pd.DataFrame, x: str, value: str) -> None:
    """Write the value of each point of a single line with three digits.

    It stands left of the point, above it where the line falls, and right of it if the one before is near.

    Args:
        panel: where.
        summary: rows of `gains.over_runs` or `gains`, of one line.
        x: column of the horizontal axis.
        value: the averaged column.
    """
    points = gains.bounds(summary, value).assign(x=summary[x]).sort_values("x")
    falls = points["centre"].diff() < 0
    near = points["x"].diff() < _NEAR * np.ptp(points["x"])
    for at, centre, is_lower, is_near in zip(points["x"], points["centre"], falls, near, strict=True):
        place, side = ((4, -7), "left") if is_near else ((0, 5), "center") if is_lower else ((-4, 2), "right")
        look: dict[str, Any] = {"textcoords": "offset points", "ha": side, "va": "bottom", "fontsize": 6.5}
        panel.annotate(f"{centre:.3g}", (at, centre), place, **look)
    panel.margins(x=0.24)


def name_lines(
    panel: Axes, heading: str | None, panels: Sequence[Axes] = (), most: int = style.MOST_LINES
) -> None:
    """Write the names of lines at their ends, right of a panel, or in a legend where that is not possible.

    A legend is drawn if there are too many names, or if a name has no line in this panel.

    Args:
        panel: the last one of those that share the names.
        heading: above the names; None for none.
        panels: panels of the names; empty for this panel alone.
        most: largest number of names at ends; one more than lines where a bound is drawn too.
    """
    handles, own = panel.get_legend_handles_labels()
    every = {name for one in panels for name in one.get_legend_handles_labels()[1]} | set(own)
    ends = [style.last_point(handle) for handle in handles]
    if not 0 < len(every) <= most or set(own) != every or not np.isfinite(ends).all():
        legend_outside(panel, heading, panels)
        return
    style.label_ends(panel)
    if heading:
        look: dict[str, Any] = {"fontsize": 7, "style": "italic", "ha": "left", "va": "bottom"}
        panel.text(1.03, 1.02, heading, transform=panel.transAxes, **look)


def legend_outside(panel: Axes, title: str | None, panels: Iterable[Axes] = ()) -> None:
    """Draw a legend to the right of a panel, with its names or those of several panels; none without names.

    Args:
        panel: where.
        title: of the legend.
        panels: panels of the names, each listed once; empty for this panel alone.
    """
    found: dict[str, Any] = {}
    for one in tuple(panels) or (panel,):
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    look: dict[str, Any] = {"title": title, "fontsize": 7, "bbox_to_anchor": (1.02, 1), "loc": "upper left"}
    if found:
        panel.legend(found.values(), found.keys(), **look)


def whole_centres_on_log(
    panel: Axes, summary: pd.DataFrame, value: str, others: Sequence[float] = (), horizontal: bool = False
) -> None:
    """Make an axis logarithmic, with plain numbers, over all centres and intervals up to a factor beyond.

    Wider intervals leave the frame.

    Args:
        panel: where.
        summary: rows of `gains.over_runs` or `gains`, of all panels that share the axis.
        value: the averaged column.
        others: other values that the axis must hold.
        horizontal: whether it is the horizontal axis.
    """
    (panel.set_xscale if horizontal else panel.set_yscale)("log")
    ends = gains.bounds(summary, value)
    lowest, highest = ends["centre"].min(), ends["centre"].max()
    low, high = ends["low"].min(), ends["high"].max()
    low = lowest / _BEYOND if low < lowest / _HELD else low
    high = highest * _BEYOND if high > highest * _HELD else high
    held = [one for one in (low, high, *others) if np.isfinite(one)]
    if held:
        low, high = min(held), max(held)
        margin = (high / low) ** _MARGIN * 1.01
        (panel.set_xlim if horizontal else panel.set_ylim)(low / margin, high * margin)
    plain_log_ticks(panel, horizontal)


def noise_by_name(panel: Axes, summary: pd.DataFrame, names: list[str]) -> None:
    """Draw a line at a gain of 1, and behind each name of `dots_by_name` the gains that noise alone gives.

    Args:
        panel: where.
        summary: rows of `gains.gains`, with a column `name`.
        names: of the rows of dots.
    """
    panel.axvline(1, color="0.6", linewidth=0.8, zorder=0.5)
    for name, floor in summary.groupby("name")["noise_floor"].max().dropna().items():
        at = names.index(str(name))
        panel.fill_betweenx([at - 0.5, at + 0.5], 1 / floor, floor, color="0.92", linewidth=0, zorder=0)


def dots_by_name(panel: Axes, rows: pd.DataFrame, names: list[str], look: dict, value: str) -> None:
    """Draw a row of dots for each name, the first at the top.

    Args:
        panel: where.
        rows: of `gains.over_runs` or `gains.gains`, with columns `name` and `state`.
        names: of the rows of dots.
        look: of the states, as `style.lines_in_turn` returns it.
        value: column along the horizontal axis.
    """
    ends = gains.bounds(rows, value)
    for place, state in enumerate(look["hue_order"]):
        own = rows[rows["state"] == state]
        at = ends.loc[own.index]
        aside = 0.5 * (place / max(1, len(look["hue_order"]) - 1) - 0.5) if len(look["hue_order"]) > 1 else 0
        places = [names.index(name) + aside for name in own["name"]]
        ink, marker = look["palette"][state], look["markers"][state]
        _dots(panel, at, places, color=ink, marker=marker, markersize=4, label=state)
    rows_of_names(panel, names)


def dots_by_order(panel: Axes, rows: pd.DataFrame, names: Sequence[str], value: str) -> None:
    """Draw a row with one dot and its interval for each memory order, the first at the top.

    Args:
        panel: where.
        rows: of `gains.over_runs` or `gains.gains`, at most one for each order.
        names: of the orders, from the top; one without a row has no dot.
        value: column along the horizontal axis.
    """
    ends = gains.bounds(rows, value)
    for place, name in enumerate(names):
        at = ends[(rows["ordering"] == name).to_numpy()]
        look = style.look(name)
        _dots(panel, at, [place] * len(at), color=look.colour, marker=look.marker, markersize=4.5)
    rows_of_names(panel, names)


def _dots(panel: Axes, ends: pd.DataFrame, places: list[float], **look: Any) -> None:
    """Draw dots with their intervals at some places of the vertical axis."""
    bars: dict[str, Any] = {"xerr": error_bars(ends), "linestyle": "", "capsize": 2, "elinewidth": 0.9}
    panel.errorbar(ends["centre"], places, **bars, **look)


def stacked_bars(
    panel: Axes, parts: pd.DataFrame, order: Sequence[Any], whole: pd.DataFrame | None = None, label: str = ""
) -> None:
    """Draw the parts of each name one behind the other, and the whole as a mark with its interval.

    Args:
        panel: where.
        parts: a row for each name, the first at the top; a column for each series, NaN for none.
        order: of all series; it sets the colours.
        whole: columns `centre`, `low` and `high`, for the same names; None if there is no whole.
        label: of the whole.
    """
    left, at = np.zeros(len(parts)), np.arange(len(parts))
    for name, shade, hatch in zip(order, _BAR_COLOURS, _HATCHES, strict=False):
        if name not in parts or parts[name].isna().all():
            continue
        there = parts[name].notna().to_numpy() | (whole is not None)
        widths = parts[name].fillna(0).to_numpy()
        bars = panel.barh(
            at[there], widths[there], _BAR, left[there], label=name,
            color=shade, hatch=hatch, edgecolor="white", linewidth=0.6,
        )  # fmt: skip
        left += widths
        if whole is not None and panel.figure.axes == [panel]:  # in a figure of several they are too narrow
            has_room = widths >= _LEAST_SHARE * whole["centre"].max()
            shares = [f"{share:.0%}" for share in widths / whole["centre"]]
            panel.bar_label(bars, np.where(has_room, shares, ""), label_type="center", **_SHARE)
    if whole is not None:
        panel.errorbar(
            whole["centre"], at, xerr=error_bars(whole), label=label, fmt="k|", markersize=9, capsize=2,
            linewidth=1,
        )  # fmt: skip
        panel.set_xlim(0, 1.08 * max(whole["centre"].max(), left.max()))


def rows_of_names(panel: Axes, names: Sequence[str]) -> None:
    """Make the vertical axis one of names, the first at the top, with a line of the grid for each."""
    panel.set(ylim=(len(names) - 0.5, -0.5))
    panel.set_yticks(range(len(names)), list(names))
    panel.grid(axis="y", color="0.92", linewidth=0.6)
    panel.set_axisbelow(True)


def plain_log_ticks(panel: Axes, horizontal: bool = False) -> None:
    """Put few ticks with plain numbers on a logarithmic axis, by its limits.

    Args:
        panel: where.
        horizontal: whether it is the horizontal axis.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator  # here, as in style

    axis = panel.xaxis if horizontal else panel.yaxis
    low, high = panel.get_xlim() if horizontal else panel.get_ylim()
    many, some, wide = _MANY_TICKS[horizontal], _SOME_TICKS[horizontal], high >= _WIDE
    some = max(some, _SHORT_NUMBERS[1]) if low >= _SHORT_NUMBERS[0] else some
    if high < _FEW_TICKS * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    else:
        close = (1, 2, 5) if wide else (1, 1.5, 2, 3, 5, 7)
        apart = (1, 2, 5) if high < many * low and not wide else (1,)
        subs = close if high < some * low else apart
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    if not wide:
        axis.set_major_formatter("{x:g}")
    elif high < some * low:
        axis.set_major_formatter("{x:,.0f}")
    axis.set_minor_locator(NullLocator())
