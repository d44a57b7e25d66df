"""Boids in a plane: an arrow for each, coloured by its heading on a cyclic map."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.quiver import Quiver

_TWILIGHT, _DARKER = "twilight_shifted", 0.82  # its palest colour would be lost on white
_LENGTH = 0.014  # of an arrow, in sides of the window
_WIDTH = 0.0048


def heading_map() -> ListedColormap:
    """Return a cyclic map of colours, which differ in lightness too: safe for the colour-blind."""
    colours = plt.get_cmap(_TWILIGHT)(np.linspace(0, 1, 256))
    return ListedColormap(np.column_stack([_DARKER * colours[:, :3], colours[:, 3]]), "heading")


class Headings:
    """Arrows in their own axes, which move from picture to picture.

    Args:
        panel: axes to draw in.
        width: of the box along x, in units of length.
        height: of the box along y.

    Attributes:
        scale: of the colours, for a colour bar, in degrees.
    """

    def __init__(self, panel: plt.Axes, width: float, height: float):
        self._panel, self._longest = panel, max(width, height)
        self._arrows: Quiver | None = None
        self.scale = plt.cm.ScalarMappable(plt.Normalize(-180, 180), heading_map())
        panel.set(xlim=(0, width), ylim=(0, height), aspect="equal")
        panel.set(xlabel="x (units of length)", ylabel="y (units of length)")

    def show(self, x: np.ndarray, y: np.ndarray, heading: np.ndarray) -> None:
        """Replace the arrows by others.

        Args:
            x: (p,) positions along x.
            y: (p,) positions along y.
            heading: (p,) direction of flight in degrees, counterclockwise from x.
        """
        if self._arrows is not None:
            self._arrows.remove()
        angle = np.radians(heading)
        length = _LENGTH * self._longest
        self._arrows = self._panel.quiver(
            x, y, length * np.cos(angle), length * np.sin(angle), (heading + 180) % 360 - 180,
            cmap=self.scale.cmap, norm=self.scale.norm, angles="xy", scale_units="xy", scale=1, width=_WIDTH,
            pivot="mid", rasterized=True, headwidth=3, headlength=4, headaxislength=3.5,
        )  # fmt: skip
