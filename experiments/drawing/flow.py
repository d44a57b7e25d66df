"""A field around a body: colours of cells in a tunnel, and the outline of the body."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.image import AxesImage

MAP = "inferno"


class Flow:
    """Picture of a field in its own axes, which changes with time.

    Args:
        panel: axes to draw in.
        length: of the tunnel along x, in d.
        height: of the tunnel, between its walls, in d.
        outline: (m, 2) of the body, in d.
        most: the value that has the brightest colour; the darkest is 0.

    Attributes:
        scale: of the colours, for a colour bar.
    """

    def __init__(self, panel: plt.Axes, length: float, height: float, outline: np.ndarray, most: float):
        self._panel, self._extent = panel, (0, length, 0, height)
        self._image: AxesImage | None = None
        self._norm = plt.Normalize(0, most)
        self.scale = plt.cm.ScalarMappable(self._norm, MAP)
        panel.set(xlim=(0, length), ylim=(0, height), aspect="equal", xlabel="x (d)", ylabel="y (d)")
        panel.fill(*outline.T, facecolor="white", edgecolor="black", linewidth=0.8, zorder=2)

    def show(self, field: np.ndarray) -> None:
        """Replace the field by another.

        Args:
            field: (cells along y, cells along x) values, which give the colours.
        """
        if self._image is None:
            self._image = self._panel.imshow(
                field, origin="lower", extent=self._extent, cmap=MAP, norm=self._norm,
                interpolation="nearest", zorder=1,
            )  # fmt: skip
        self._image.set_data(field)
