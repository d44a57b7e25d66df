"""What several figures have in common: lines with their intervals, a legend outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.analysis import statistics
from experiments.analysis.tables import table_of
from sfc import checks

LOOK = ("hue", "hue_order", "palette", "markers", "dashes")  # keys of what tells lines apart
_ASIDE = 0.008  # of the axis: how far apart the points of two names stand
_BEYOND = 1.6  # factor that intervals may reach beyond all centres within the frame
_MARGIN = 0.06  # of a logarithmic axis, at each end
_FEW_TICKS, _SOME_TICKS = 2.5, 20  # ranges of an axis of gains up to which ticks lie close

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def lines(
    panel: Axes,
    summary: pd.DataFrame,
    x: str,
    value: str,
    look: dict,
    scale: pd.Series | float = 1.0,
    log: bool = False,
) -> None:
    """A line for each name, with the interval over runs (or the range over one run's rounds) as bars.

    Args:
        panel: where.
        summary: rows of `statistics.over_runs` or `gains`, with a column `x`, and that which `look` names.
        x: column of the horizontal axis.
        value: what was averaged.
        look: of `style.lines` and its like: hue, hue_order, palette, markers.
        scale: by which values are multiplied, of each row or of all.
        log: whether the horizontal axis is logarithmic; names stand a little apart, so that bars are told
            apart.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing, or a look without one of its keys.
    """
    missing = [key for key in LOOK if key not in checks.instance("look", look, dict, "a dict of style.lines")]
    if missing:
        raise ValueError(f"look has no {', '.join(missing)}; allowed: a dict of style.lines, with {LOOK}")
    table_of("summary", summary, [x, look["hue"]])
    ends = statistics.bounds(summary, value).mul(scale, axis=0)
    at_most = summary[x].max()
    for place, name in enumerate(look["hue_order"]):
        rows = summary[summary[look["hue"]] == name].sort_values(x)
        if rows.empty:
            continue
        at = ends.loc[rows.index]
        reach = np.clip([at["centre"] - at["low"], at["high"] - at["centre"]], 0, None)
        aside = _ASIDE * (place - (len(look["hue_order"]) - 1) / 2)
        panel.errorbar(
            rows[x] * (1 + 2 * aside) if log else rows[x] + aside * at_most,
            at["centre"],
            yerr=reach,
            color=look["palette"][name],
            marker=look["markers"][name],
            markersize=look.get("markersize", 5),
            capsize=2,
            linewidth=1.1,
            elinewidth=0.9,
            label=name,
            linestyle=_dash(look, name),
        )


def _dash(look: dict, name: str):
    dashes = look["dashes"]
    return (0, dashes[name]) if isinstance(dashes, dict) else "-"


def legend_outside(panel: Axes, title: str | None, panels: Iterable[Axes] = ()) -> None:
    """A legend to the right of a panel, of its names, or of those of several panels.

    Args:
        panel: where.
        title: of the legend.
        panels: whose names are told, each once; none for those of the panel.
    """
    look = {"title": title, "fontsize": 7, "bbox_to_anchor": (1.02, 1), "loc": "upper left"}
    found = {}
    for one in tuple(panels) or (panel,):
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    panel.legend(found.values(), found.keys(), **look)


def whole_centres(panel: Axes, summary: pd.DataFrame, value: str, from_zero: bool = True) -> None:
    """Let a vertical axis hold all centres; wide intervals may leave the frame.

    Args:
        panel: where.
        summary: rows of `statistics.over_runs` or `gains`, of all panels that share the axis.
        value: what was averaged.
        from_zero: whether the axis begins at 0; else it ends at intervals, up to a factor beyond all centres.
    """
    ends = statistics.bounds(summary, value)
    if from_zero:
        panel.set_ylim(0, _BEYOND * ends["centre"].max())
        return
    low, high = _within(ends)
    margin = _MARGIN * (high - low) + 0.001 * high
    panel.set_ylim(low - margin, high + margin)


def whole_centres_on_log(
    panel: Axes,
    summary: pd.DataFrame,
    value: str,
    scale: pd.Series | float = 1.0,
    beside: Sequence[float] = (),
) -> None:
    """Let a logarithmic vertical axis hold all centres, and intervals up to a factor beyond.

    Wider intervals leave the frame.

    Args:
        panel: where.
        summary: rows of `statistics.over_runs` or `gains`, of all panels that share the axis.
        value: what was averaged.
        scale: by which values are multiplied, of each row or of all.
        beside: other values that the axis must hold.
    """
    _log_frame(panel, statistics.bounds(summary, value).mul(scale, axis=0), False, beside)


def gain_axis(
    panel: Axes, summary: pd.DataFrame, beside: Sequence[float] = (), horizontal: bool = False
) -> None:
    """A logarithmic axis of gains with plain numbers, which holds 1, the noise and all centres.

    Intervals that reach beyond all centres by more than a factor leave the frame.

    Args:
        panel: where.
        summary: rows of `statistics.gains`, of all panels that share the axis.
        beside: other gains that the axis must hold.
        horizontal: whether it is the horizontal axis.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator  # here, as in style

    floor = summary["noise_floor"].max() if "noise_floor" in summary else np.nan
    ends = statistics.bounds(summary, "gain")
    _log_frame(panel, ends, horizontal, [1.0, floor, 1 / floor, *beside])
    axis = panel.xaxis if horizontal else panel.yaxis
    low, high = panel.get_xlim() if horizontal else panel.get_ylim()
    if high / low < _FEW_TICKS:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    else:
        subs = (1, 1.5, 2, 3, 5, 7) if high / low < _SOME_TICKS else (1, 2, 5)
        axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def _log_frame(panel: Axes, ends: pd.DataFrame, horizontal: bool, beside: Sequence[float]) -> None:
    """A logarithmic axis over centres and, up to a factor beyond, over ends."""
    (panel.set_xscale if horizontal else panel.set_yscale)("log")
    told = [one for one in (*_within(ends), *beside) if np.isfinite(one)]
    if not told:
        return
    low, high = min(told), max(told)
    margin = (high / low) ** _MARGIN * 1.01
    (panel.set_xlim if horizontal else panel.set_ylim)(low / margin, high * margin)


def _within(ends: pd.DataFrame) -> tuple[float, float]:
    """The lowest and highest end of intervals, or a factor beyond all centres if that is nearer."""
    centres = ends["centre"]
    return max(ends["low"].min(), centres.min() / _BEYOND), min(ends["high"].max(), centres.max() * _BEYOND)


def noise_band(panel: Axes, summary: pd.DataFrame) -> None:
    """A line at a gain of 1, and a band of gains that noise alone would give."""
    panel.axhline(1, color="0.6", linewidth=0.8, zorder=0.5)
    floor = summary["noise_floor"].max() if "noise_floor" in table_of("summary", summary) else np.nan
    if np.isfinite(floor):
        panel.axhspan(1 / floor, floor, color="0.92", zorder=0, label=None)
