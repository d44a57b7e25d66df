"""Arrowheads where the bars of intervals leave the frame of their panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure

_SIZE = 3.5  # points
_HEADS = (("<", ">"), ("v", "^"))  # at the lower and at the upper end of each axis


def mark_clipped(figure: Figure) -> None:
    """Draw an arrowhead at the frame for each error bar that ends outside of it.

    Args:
        figure: its panels have their limits.
    """
    from matplotlib.container import ErrorbarContainer  # here, as in saving

    for panel in figure.axes:
        limits = panel.get_xlim(), panel.get_ylim()
        for container in panel.containers:
            if isinstance(container, ErrorbarContainer):
                _mark(panel, container)
        panel.set(xlim=limits[0], ylim=limits[1])


def _mark(panel: Axes, container: ErrorbarContainer) -> None:
    limits = panel.get_xlim(), panel.get_ylim()
    bars: Any
    for bars in container.lines[2]:
        for segment in bars.get_segments():
            along = int(segment[0, 0] == segment[1, 0])  # the axis of the bar
            across = segment[0, 1 - along]
            if not min(limits[1 - along]) <= across <= max(limits[1 - along]):
                continue
            ends = min(segment[:, along]), max(segment[:, along])
            for end, limit in enumerate(sorted(limits[along])):
                if ends[0] < limit < ends[1]:  # a bar that is wholly outside has no end at the frame
                    upper = end if limits[along][0] < limits[along][1] else 1 - end  # of an inverted axis
                    place = (limit, across) if along == 0 else (across, limit)
                    look: dict[str, Any] = {"color": bars.get_color()[0], "markersize": _SIZE}
                    panel.plot(*place, _HEADS[along][upper], clip_on=False, label="_clipped", **look)
