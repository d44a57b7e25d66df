"""Names of lines at their right ends, moved up and down so that they do not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its `optimize` is loaded when first used

from sfc import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_END = "name at the end of a line"  # gid of an annotation
_SIZE, _SPACING = 7, 1.25  # points; distance of two names in sizes
_BESIDE = 1.03  # of the width of the panel
_LEADER: dict[str, Any] = {  # from the left of the name, so that it crosses no other name
    "arrowstyle": "-", "linewidth": 0.5, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5),
}  # fmt: skip


def spread(wanted: np.ndarray, distance: float, low: float, high: float) -> np.ndarray:
    """Move positions apart as little as possible, by the sum of squares, and keep their order.

    Args:
        wanted: (n,) positions.
        distance: smallest distance of two neighbours.
        low: smallest position.
        high: largest position; exceeded if there is no room for all.

    Returns:
        (n,) positions.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: numbers that are not finite, or a negative distance.

    With the distance subtracted place by place, it is isotonic regression: Barlow, Bartholomew, Bremner and
    Brunk, Statistical Inference under Order Restrictions (1972).
    """
    wanted = checks.array("wanted", wanted, "fiu", "numbers", ("n",)).astype(float)
    distance = checks.number("distance", distance, 0)
    order = np.argsort(wanted, kind="stable")
    room = distance * np.arange(len(wanted))
    moved = scipy.optimize.isotonic_regression(wanted[order] - room).x if len(wanted) else wanted
    found = np.empty_like(wanted)
    found[order] = np.clip(moved, low, max(low, high - distance * (len(wanted) - 1))) + room
    return found


def label_ends(panel: Axes) -> None:
    """Write the name of each labelled line to the right of a panel, with a thin line to its last point.

    `settle` moves the names apart, once the figure is complete.

    Args:
        panel: with lines or error bars that have labels.
    """
    for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
        ink = _line_of(handle).get_color()
        panel.annotate(
            name, last_point(handle), (_BESIDE, 0.5), "data", "axes fraction", fontsize=_SIZE, color=ink,
            va="center", ha="left", annotation_clip=False, gid=_END, arrowprops=_LEADER | {"color": ink},
        )  # fmt: skip


def last_point(handle: Any) -> tuple[float, float]:
    """Return the last point of a line, or of error bars, that has numbers; NaN for none."""
    line = _line_of(handle)
    points = np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])
    points = points[np.isfinite(points).all(axis=1)]
    return (float(points[-1, 0]), float(points[-1, 1])) if len(points) else (np.nan, np.nan)


def _line_of(handle: Any) -> Any:
    return handle[0] if isinstance(handle, tuple) else handle  # error bars are a tuple of their parts


def settle(figure: Figure) -> None:
    """Move the names of `label_ends` in a figure apart; its layout, if it has one, is computed for that."""
    found = []
    for panel in figure.axes:
        texts: Any = panel.texts
        if names := [text for text in texts if text.get_gid() == _END]:
            found.append((panel, names))
    if not found:
        return
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for panel, names in found:
        panel.apply_aspect()
        panel.get_xlim(), panel.get_ylim()  # found from the data, if they were not set
        distance = _SPACING * _SIZE * figure.dpi / 72 / panel.bbox.height
        ends = panel.transAxes.inverted().transform(panel.transData.transform([name.xy for name in names]))
        places = spread(np.clip(ends[:, 1], 0, 1), distance, 0, 1)
        for name, place in zip(names, places, strict=True):
            name.set_position((_BESIDE, place))
