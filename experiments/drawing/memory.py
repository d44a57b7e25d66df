"""Memory as a row of slots, arcs between slots, and the particles that the slots hold in their box."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection, LineCollection, PatchCollection
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal, Stroke

from sfc import checks

DIAMETER = 1.0  # d
_POINTS = 40  # of an arc
_EDGE = "0.25"  # of discs and slots


def draw_discs(panel: plt.Axes, pos: np.ndarray, colours: np.ndarray) -> None:
    """Draw discs of diameter 1 at their places in a box.

    Args:
        panel: axes to draw in.
        pos: (n, 2) centres in d.
        colours: (n, 4) RGBA, from 0 to 1.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a shape or dtype that is not allowed.
    """
    pos = checks.array("pos", pos, "f", "positions", ("n", 2))
    colours = checks.array("colours", colours, "f", "RGBA", (len(pos), 4))
    size = np.full(len(pos), DIAMETER)
    discs = EllipseCollection(
        size, size, np.zeros(len(pos)), units="xy", offsets=pos, offset_transform=panel.transData,
        facecolors=colours, edgecolors=_EDGE, linewidths=0.6, zorder=2,
    )  # fmt: skip
    panel.add_collection(discs)


def draw_way(panel: plt.Axes, points: np.ndarray, color: str, width: float, label: str) -> None:
    """Draw a line through points in their order, with a white edge, so that it stands out on any colour.

    Args:
        panel: axes to draw in.
        points: (n, 2) in d, such as the particles in the order of their slots.
        color: of the line.
        width: of the line, in points.
        label: of the line in a legend.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a shape, dtype or number that is not allowed.
    """
    points = checks.array("points", points, "fiu", "points", ("n", 2))
    width = checks.number("width", width, above=0)
    (line,) = panel.plot(*points.T, color=color, linewidth=width, label=label, zorder=3)
    line.set_path_effects([Stroke(linewidth=width + 1.4, foreground="white"), Normal()])


def draw_slots(panel: plt.Axes, colours: np.ndarray, thickness: float) -> None:
    """Draw a row of slots, slot k from k to k + 1 and from 0 down to minus its thickness.

    Args:
        panel: axes to draw in.
        colours: (n, 4) RGBA of each slot, in the order of memory.
        thickness: of the row, in slots.

    Raises:
        ValueError: a shape or number that is not allowed.
    """
    colours = checks.array("colours", colours, "f", "RGBA", ("n", 4))
    thickness = checks.number("thickness", thickness, above=0)
    slots = [Rectangle((k, -thickness), 1, thickness) for k in range(len(colours))]
    panel.add_collection(
        PatchCollection(slots, facecolors=colours, edgecolors=_EDGE, linewidths=0.4, zorder=2)
    )


def draw_arcs(panel: plt.Axes, pairs: np.ndarray, base: float, height: float, **look: object) -> None:
    """Draw half an ellipse between the slots of each pair, the higher the farther apart they are.

    Args:
        panel: axes to draw in.
        pairs: (p, 2) slots.
        base: where the arcs stand.
        height: of an arc over a unit of distance; below 0 the arcs hang.
        look: of the lines, for `LineCollection`.

    Raises:
        ValueError: a shape, dtype or number that is not allowed.
    """
    pairs = checks.array("pairs", pairs, "iu", "slots", ("p", 2)).astype(float)
    base, height = checks.number("base", base), checks.number("height", height)
    angle = np.linspace(0, np.pi, _POINTS)
    middle, reach = pairs.mean(axis=1) + 0.5, np.abs(np.diff(pairs, axis=1)[:, 0]) / 2
    x = middle[:, None] - reach[:, None] * np.cos(angle)
    y = base + 2 * height * reach[:, None] * np.sin(angle)
    panel.add_collection(LineCollection(list(np.stack([x, y], axis=2)), zorder=1, **look))
