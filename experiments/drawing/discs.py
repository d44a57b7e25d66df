"""A section through spheres: the discs in which a plane cuts them, between the walls of their container."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection

MAP = "viridis"


class Discs:
    """Discs in their own axes, which move from picture to picture.

    Args:
        panel: axes to draw in.
        length: of the container along x, which is periodic, in d.
        height: of the container, between its walls, in d.
        fastest: the speed that has the brightest colour.
        swing: how far the container moves up and down, in d.

    Attributes:
        scale: of the colours, for a colour bar.
    """

    def __init__(self, panel: plt.Axes, length: float, height: float, fastest: float, swing: float = 0.0):
        self._panel, self._length, self._height = panel, length, height
        self._discs: EllipseCollection | None = None
        self.scale = plt.cm.ScalarMappable(plt.Normalize(0, fastest), MAP)
        panel.set(xlim=(0, length), ylim=(-swing - 0.5, height + swing + 0.5), aspect="equal")
        panel.set(xlabel="x (d)", ylabel="z (d)")
        self._walls = [panel.axhline(z, color="black", linewidth=1.5) for z in (0, height)]

    def show(
        self, x: np.ndarray, z: np.ndarray, radius: np.ndarray, speed: np.ndarray, lift: float = 0.0
    ) -> None:
        """Replace the discs by others.

        Args:
            x: (p,) centres along the container, in d. A disc that reaches over a side is drawn at both.
            z: (p,) centres above its floor, in d.
            radius: (p,) in d.
            speed: (p,), which gives the colours.
            lift: how high the container is, in d.
        """
        images = [np.flatnonzero(x < radius), np.flatnonzero(x > self._length - radius)]
        rows = np.concatenate([np.arange(len(x)), *images])
        shift = np.repeat([0, self._length, -self._length], [len(x), *map(len, images)])
        if self._discs is not None:
            self._discs.remove()
        size = 2 * radius[rows]
        self._discs = discs = EllipseCollection(
            size, size, np.zeros(len(rows)), units="xy", cmap=MAP, norm=self.scale.norm, linewidths=0,
            offsets=np.column_stack([x[rows] + shift, z[rows] + lift]),
            offset_transform=self._panel.transData, rasterized=True,
        )  # fmt: skip
        discs.set_array(speed[rows])
        self._panel.add_collection(discs)
        for wall, level in zip(self._walls, (0, self._height), strict=True):
            wall.set_ydata([level + lift] * 2)
