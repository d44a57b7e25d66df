"""Time per phase of a step: a bar for each memory order, the phases one after the other.

Colours are those of Okabe and Ito (2008); a hatch tells the phases apart without colour.
"""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.container import BarContainer
from matplotlib.patches import Patch

from experiments.drawing import figures

SHADES = {  # phase -> colour and hatch
    "force": ("#56B4E9", ""), "build": ("#E69F00", "//"), "integrate": ("#009E73", ".."),
    "reorder": ("#CC79A7", "xx"), "other": ("0.8", "//"),
}  # fmt: skip
TOTAL = "total"  # the part that is a whole step
_LEAST_BESIDE = 0.05  # smallest share that is written beside the bars
_FONT, _PAD = 7.5, 0.15  # of a share: points, and the edge of its plate over them
_PLATE = {"boxstyle": f"round,pad={_PAD}", "facecolor": "white", "edgecolor": "none"}


def stacked_phases(found: pd.DataFrame, names: Mapping[str, str], title: str) -> plt.Figure:
    """Draw the phases of a step and their shares: in the bars, or beside them where they are wider.

    Args:
        found: a row for each `ordering` and `part` of a step, with `centre`, `low` and `high` in ms. The part
            "total" is the whole step. The part "other" is left out where "build" was measured.
        names: ordering -> its name in the figure, from the top.
        title: of the figure.
    """
    measured = set(found["part"])
    shown = [name for name in SHADES if name in measured and not (name == "other" and "build" in measured)]
    figure, panel = plt.subplots(figsize=(6.8, 0.5 * len(names) + 1.6))
    for place, name in enumerate(names):
        own, before = found[found["ordering"] == name].set_index("part"), 0.0
        total = own.loc[[TOTAL]]
        for phase in (phase for phase in shown if phase in own.index):
            (colour, hatch), ms = SHADES[phase], float(own["centre"][phase])
            look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6}
            panel.barh(place, ms, 0.62, before, label=phase, **look)
            before += ms
        ends = figures.error_bars(total)  # below the bar, where they hide no share
        panel.errorbar(total["centre"], [place + 0.4], xerr=ends, color="black", capsize=2, linewidth=1.2)
    panel.set_yticks(range(len(names)), list(names.values()))
    panel.invert_yaxis()
    panel.set_xlabel("time per step (ms)")
    marks = [Patch(facecolor=SHADES[name][0], hatch=SHADES[name][1], edgecolor="black") for name in shown]
    panel.legend(marks, shown, title="phase", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(title, fontsize=9)
    totals = found[found["part"] == TOTAL].set_index("ordering")["centre"]
    figure.draw_without_rendering()  # the widths of bars and words are known then
    for place, name in enumerate(names):
        _write_shares(panel, place, float(totals[name]))
    return figure


def _write_shares(panel: plt.Axes, place: int, total: float) -> None:
    """Write the shares of the phases of one step; those wider than their bars stand right of the last bar."""
    look: dict[str, Any] = {"va": "center", "fontsize": _FONT}
    edges = 2 * _PAD * _FONT * panel.figure.dpi / 72
    beside, end = [], 0.0
    for bars in panel.containers:
        for bar in bars if isinstance(bars, BarContainer) else ():
            if round(bar.get_y() + bar.get_height() / 2) != place:
                continue
            end = max(end, bar.get_x() + bar.get_width())
            middle, share = bar.get_x() + bar.get_width() / 2, bar.get_width() / total
            inside = panel.text(middle, place, f"{share:.0%}", ha="center", bbox=_PLATE, **look)
            if inside.get_window_extent().width + edges > bar.get_window_extent().width:
                inside.remove()
                beside += [f"{bars.get_label()} {share:.0%}"] if share >= _LEAST_BESIDE else []
    text = panel.annotate(", ".join(beside), (end, place), (4, 0), textcoords="offset points", **look)
    if not beside or text.get_window_extent().x1 > panel.get_window_extent().x1:
        text.remove()
