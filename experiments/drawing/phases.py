"""Time per phase of a step: a bar for each memory order, the phases one after the other.

Colours are those of Okabe and Ito (2008); a hatch tells the phases apart without colour.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.patches import Patch

from experiments.drawing import figures

SHADES = {  # phase -> colour and hatch
    "force": ("#56B4E9", ""), "build": ("#E69F00", "//"), "integrate": ("#009E73", ".."),
    "reorder": ("#CC79A7", "xx"), "other": ("0.8", "//"),
}  # fmt: skip
TOTAL = "total"  # the part that is a whole step
_LABELLED = 0.06  # smallest phase, over the longest step, whose share is written into its bar
_PLATE = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}


def stacked_phases(found: pd.DataFrame, names: Mapping[str, str], title: str) -> plt.Figure:
    """Draw the phases of a step and their shares.

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
            panel.barh(place, ms, 0.62, before, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6)
            if ms > _LABELLED * found["centre"].max():
                share = f"{ms / total['centre'].iloc[0]:.0%}"
                at = before + ms / 2
                panel.text(at, place, share, ha="center", va="center", fontsize=8, bbox=_PLATE)
            before += ms
        ends = figures.error_bars(total)  # below the bar, where they hide no share
        panel.errorbar(total["centre"], [place + 0.4], xerr=ends, color="black", capsize=2, linewidth=1.2)
    panel.set_yticks(range(len(names)), list(names.values()))
    panel.invert_yaxis()
    panel.set_xlabel("time per step (ms)")
    marks = [Patch(facecolor=SHADES[name][0], hatch=SHADES[name][1], edgecolor="black") for name in shown]
    panel.legend(marks, shown, title="phase", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(title, fontsize=9)
    return figure
