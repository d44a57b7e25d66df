"""Heat map of a table: colours relative to the best of each column, numbers in the cells."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm

MAP = "cividis_r"
BOUND = "≥"  # before a number that the true one is not below: it is never called the best
WORST = 30.0  # times the best; what is worse still has the same colour


def against_best(table: pd.DataFrame) -> pd.DataFrame:
    """Divide each number by the least of its column, which is the best: 1 for that, more for all others.

    NaN where there is no number, and where the least is not positive and so nothing is a multiple of it.
    """
    ratio = table / table.min().where(lambda best: best > 0)
    return ratio.where(table.ne(table.min()) | table.isna(), 1.0)


def from_best_to_worst(table: pd.DataFrame) -> list:
    """Sort rows by the geometric mean of their numbers over the best of each column."""
    return list(np.log(against_best(table)).mean(axis=1).sort_values(kind="stable").index)


def draw_heat(
    panel: plt.Axes, table: pd.DataFrame, labels: Sequence[str], signs: pd.DataFrame | None = None
) -> None:
    """Draw the heat map.

    Args:
        panel: axes to draw in.
        table: numbers, less is better; its index names the rows.
        labels: names of the columns.
        signs: of the same form, text to put before each number, such as `BOUND`.
    """
    ratio = against_best(table)
    panel.imshow(np.clip(ratio, 1, WORST), cmap=MAP, norm=LogNorm(1, WORST), aspect="auto")
    for (row, column), times in np.ndenumerate(ratio.to_numpy()):
        value: Any = table.iat[row, column]
        sign = "" if signs is None else str(signs.iat[row, column])
        dark = np.isfinite(times) and np.log(times) > 0.45 * np.log(WORST)
        text = sign + short(value) if np.isfinite(value) else "-"
        panel.text(
            column, row, text, color="white" if dark else "black", ha="center", va="center", fontsize=7,
            weight="bold" if times == 1 and sign != BOUND else "normal",
        )  # fmt: skip
    panel.set_xticks(range(len(labels)), labels, rotation=35, ha="right", rotation_mode="anchor", fontsize=7)
    panel.set_yticks(range(len(table)), list(table.index), fontsize=8)
    panel.tick_params(length=0)
    panel.set_xticks(np.arange(1, len(labels)) - 0.5, minor=True)
    panel.set_yticks(np.arange(1, len(table)) - 0.5, minor=True)
    panel.grid(which="minor", color="white", linewidth=1)
    panel.tick_params(which="minor", length=0)
    panel.spines[:].set_visible(False)


def heat_bar(figure: plt.Figure, panels: list[plt.Axes]) -> None:
    """Draw the scale of the colours."""
    scale = plt.cm.ScalarMappable(LogNorm(1, WORST), MAP)
    bar = figure.colorbar(scale, ax=panels, ticks=[1, 2, 5, 10, WORST], shrink=0.45, aspect=25)
    bar.set_ticklabels(["best", "2", "5", "10", f"{WORST:g} or more"])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7)
    bar.set_label("times the best of the column", fontsize=8)
    bar.outline.set_visible(False)


def short(value: float) -> str:
    """Format a number with three digits: 0.123, 12.3, 1,230."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    return f"{round(value, digits):,.{min(max(digits, 0), 6)}f}"
