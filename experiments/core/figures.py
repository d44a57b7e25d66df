"""What several figures have in common: lines with their intervals, a legend outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.core import statistics
from experiments.core.tables import table_of
from sfc import checks

LOOK = ("hue", "hue_order", "palette", "markers", "dashes")  # keys of what tells lines apart
_ASIDE = 0.008  # of the axis: how far apart the points of two names stand

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


def legend_outside(panel: Axes, title: str | None) -> None:
    """A legend to the right of a panel."""
    panel.legend(title=title, fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")


def whole_centres(panel: Axes, summary: pd.DataFrame, value: str) -> None:
    """Let a vertical axis from 0 end above all centres; wide intervals may leave the frame.

    Args:
        panel: where.
        summary: rows of `statistics.over_runs` or `gains`.
        value: what was averaged.
    """
    panel.set_ylim(0, 1.6 * statistics.bounds(summary, value)["centre"].max())


def noise_band(panel: Axes, summary: pd.DataFrame) -> None:
    """A line at a gain of 1, and a band of gains that noise alone would give."""
    panel.axhline(1, color="0.6", linewidth=0.8, zorder=0.5)
    floor = summary["noise_floor"].max() if "noise_floor" in table_of("summary", summary) else np.nan
    if np.isfinite(floor):
        panel.axhspan(1 / floor, floor, color="0.92", zorder=0, label=None)
