"""Pictures of the space-filling curves there are, and what their tables say of them.

The first orders of each curve are drawn as the path through the cell centres, coloured by the position
along the
curve: the thesis's figures 4.1 to 4.3 in 2D and 4.5 in 3D.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from mpl_toolkits.mplot3d.art3d import Line3DCollection

import sfc
from experiments.core import Settings, main, style, values

KNOWN = tuple(f"{name}-{dim}d" for dim in (2, 3) for name in sfc.curves(dim))
MAX_CELLS = 2**20
_MAP = "viridis"


@dataclass(frozen=True)
class Config(Settings):
    """Curves and orders to draw."""

    curve: tuple[str, ...] = KNOWN
    """Curves, as name-2d or name-3d."""
    order: tuple[int, ...] = (1, 2, 3, 4)
    """Recursion depths, a panel each."""

    def __post_init__(self):
        for name in values(self.curve):
            if name not in KNOWN:
                raise ValueError(f"unknown curve {name!r}; known: {', '.join(KNOWN)}")
            for order in values(self.order):
                curve = _curve(name)
                if order < 1 or curve.base ** (curve.dim * order) > MAX_CELLS:
                    raise ValueError(f"--order {order} of {name}; allowed: 1 up to {MAX_CELLS} cells")


QUICK = {"order": (1, 2)}


def measure(case: Config) -> Iterator[dict]:
    """One row: the size of the automaton, and the steps of the curve at this order."""
    curve = _curve(case.curve)
    step = np.abs(np.diff(curve.traversal(case.order), axis=0)).sum(axis=1)
    yield {
        "dim": curve.dim,
        "base": curve.base,
        "states": len(curve.rank),
        "cells": curve.base ** (curve.dim * case.order),
        "is_continuous": curve.is_continuous,
        "is_closed": curve.is_closed,
        "mean_step_cells": float(step.mean()),
        "longest_step_cells": int(step.max()),
    }


def draw(table: pd.DataFrame, out: Path) -> None:
    """One figure a curve, one panel an order."""
    for name, rows in table.groupby("curve", sort=False):
        _draw_curve(str(name), sorted(rows["order"]), out)


def _curve(name: str) -> sfc.Curve:
    stem, dim = name.rsplit("-", 1)
    return sfc.curve(stem, int(dim[0]))


def _draw_curve(name: str, orders: list[int], out: Path) -> None:
    curve = _curve(name)
    kind = {"projection": "3d"} if curve.dim == 3 else {}
    figure, panels = plt.subplots(
        1, len(orders), figsize=(2.6 * len(orders) + 0.7, 2.9), squeeze=False, subplot_kw=kind
    )
    for panel, order in zip(panels[0], orders, strict=True):
        path = curve.traversal(order) + 0.5
        lines = _path(path, curve.dim)
        panel.add_collection(lines)
        side = curve.base**order
        limits = {f"{axis}lim": (0, side) for axis in "xyz"[: curve.dim]}
        panel.set(**limits, xlabel="x (cells)", ylabel="y (cells)")
        panel.set_title(f"order {order}, {len(path):,} cells", fontsize=9)
        ticks = np.arange(0, side + 1, max(1, side // (3 if curve.base == 3 else 4)))
        panel.set(xticks=ticks, yticks=ticks)
        if curve.dim == 2:
            panel.set_aspect("equal")
        else:
            panel.set(zlabel="z (cells)", zticks=ticks)
            panel.tick_params(labelsize=6, pad=-2)
            for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
                axis.label.set_size(7)
                axis.labelpad = -7
            panel.set_box_aspect((1, 1, 1), zoom=0.8)
    bar = figure.colorbar(plt.cm.ScalarMappable(plt.Normalize(0, 1), _MAP), ax=list(panels[0]), shrink=0.8)
    bar.set_label("position along the curve")
    figure.suptitle(f"{curve.name}, {curve.dim}D", fontsize=10)
    style.save(figure, out, name)


def _path(path: np.ndarray, dim: int) -> LineCollection | Line3DCollection:
    segments = np.stack([path[:-1], path[1:]], axis=1)
    width = float(np.clip(60 / len(path) ** (1 / dim) / 4, 0.5, 3))
    kind = LineCollection if dim == 2 else Line3DCollection
    lines = kind(segments, cmap=_MAP, linewidths=width, capstyle="round")
    lines.set_array(np.linspace(0, 1, len(segments)))
    return lines


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
