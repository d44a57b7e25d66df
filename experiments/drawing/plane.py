"""Order of the cells of a rectangle, drawn as the path through their centres."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import MultipleLocator

MAP = "viridis"
SHADES = 200
_TICK_STEPS = (1, 2, 3, 4, 5, 8, 9, 10, 16, 20, 27, 32, 50, 64, 81, 100)


def draw_path(panel: plt.Axes, path: np.ndarray, shape: tuple[int, int], inches: float = 2.4) -> None:
    """Draw the path in its grid, coloured by the position along it; a jump is drawn thinner than a step.

    Args:
        panel: axes to draw in.
        path: (n, 2) cells in visiting order, one or more.
        shape: cells along x and y.
        inches: width of the panel, from which the width of the lines follows.
    """
    nx, ny = shape
    cell = 72 * inches / max(nx, ny)  # points
    _draw_grid(panel, nx, ny, cell)
    parts = max(1, SHADES // len(path))  # of a step, so that the colour runs smoothly along a short path
    place, number = np.arange((len(path) - 1) * parts + 1) / parts, np.arange(len(path))
    points = np.column_stack([np.interp(place, number, axis) for axis in (path + 0.5).T])
    ends: Any = np.stack([points[:-1], points[1:]], axis=1)
    jumps = np.repeat(np.abs(np.diff(path, axis=0)).sum(axis=1) > 1, parts)
    width = float(np.clip(0.3 * cell, 0.5, 4))
    lines = LineCollection(
        ends, cmap=MAP, linewidths=np.where(jumps, 0.45 * width, width), capstyle="round", zorder=2
    )
    lines.set_array(np.arange(len(ends)) + 0.5)
    lines.set_clim(0, max(len(ends), 1))
    panel.add_collection(lines)
    size = float(np.clip((0.55 * cell) ** 2, 5, 40))
    for end, marker, colour in zip(points[[0, -1]], "os", plt.get_cmap(MAP)([[0.0], [1.0]]), strict=True):
        panel.scatter(end[0], end[1], s=size, color=colour, marker=marker, zorder=3)
    frame_cells(panel, (nx, ny))


def frame_cells(panel: plt.Axes, shape: tuple[int, int]) -> None:
    """Set axes in cells: square cells, few ticks, a full frame, names of x and y."""
    panel.set(xlim=(0, shape[0]), ylim=(0, shape[1]), aspect="equal", xlabel="x (cells)", ylabel="y (cells)")
    for axis, side in zip((panel.xaxis, panel.yaxis), shape, strict=True):
        fitting = [s for s in _TICK_STEPS if side % s == 0 and side / s <= 5]
        axis.set_major_locator(MultipleLocator(fitting[0] if fitting else max(1, round(side / 4))))
        axis.label.set_fontsize(8)
    panel.tick_params(labelsize=7, length=2.5, pad=2)
    panel.spines[:].set(visible=True, color="0.6", linewidth=0.6)


def position_bar(figure: plt.Figure, panels: list[plt.Axes], marks: bool = True) -> None:
    """Draw the scale of the colours along a path beside the panels, with the marks of its ends if wanted."""
    scale = plt.cm.ScalarMappable(plt.Normalize(0, 1), MAP)
    height = figure.get_figheight()
    bar = figure.colorbar(
        scale, ax=panels, ticks=[0, 1], shrink=min(0.7, 2.4 / height), aspect=20, pad=0.02, fraction=0.04
    )
    bar.set_ticklabels(["● first cell", "■ last cell"] if marks else ["first cell", "last cell"])
    bar.ax.tick_params(labelsize=7, length=0)
    bar.outline.set_visible(False)


def _draw_grid(panel: plt.Axes, nx: int, ny: int, cell: float) -> None:
    upright = [[(x, 0), (x, ny)] for x in range(1, nx)]
    level = [[(0, y), (nx, y)] for y in range(1, ny)]
    width = float(np.clip(0.04 * cell, 0.1, 0.5))
    panel.add_collection(LineCollection(upright + level, colors="0.82", linewidths=width, zorder=1))
