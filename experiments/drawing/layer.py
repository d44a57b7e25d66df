"""Path through a layer of cubes, whole and with gaps between the cubes; after Fig. 4.6 of [thesis]."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.drawing import plane, solid, tubes


def pulled_apart(path: np.ndarray, side: int, gap: float) -> np.ndarray:
    """Shift a path through a layer of cubes, so that there is a gap between one cube and the next.

    Args:
        path: (n, 3) points in cells.
        side: of a cube.
        gap: along x and along y, in cells.

    Returns:
        (n, 3) points; those of one cube keep their distances.
    """
    return path + gap * np.column_stack([path[:, :2] // side, np.zeros(len(path))])


def draw_layer(name: str, path: np.ndarray, shape: tuple[int, int, int]) -> plt.Figure:
    """Draw the path through a shallow box, and the same path with gaps between the cubes.

    Args:
        name: of the ordering.
        path: (n, 3) cells in visiting order.
        shape: cells along x, y and z; x and y multiples of z, the side of a cube.

    Returns:
        A figure of two panels.
    """
    (nx, ny, side), path = shape, path + 0.5
    gap = 0.75 * side
    apart = pulled_apart(path, side, gap)
    around = (*(apart.max(axis=0)[:2] + 0.5), side)
    look: dict[str, Any] = {"radius": 0.27, "sides": 8, "pieces": 2}
    inches = 7.0
    figure, panels = plt.subplots(2, 1, figsize=(inches + 1, 1.42 * inches), height_ratios=(1, 1.2))
    whole, pulled = tubes.path_mesh(path, **look), tubes.path_mesh(apart, longest=1 + gap, **look)
    solid.draw_mesh(panels[0], whole, (nx, ny, side), solid.View(-62, 40), inches)
    solid.draw_mesh(panels[1], pulled, around, solid.View(-62, 50), inches, axes=False)
    panels[0].set_title(f"{name} of {nx} x {ny} x {side} cells", fontsize=10)
    panels[1].set_title(f"its cubes of {side} x {side} x {side} cells pulled apart", fontsize=10)
    plane.position_bar(figure, list(panels), marks=False)
    return figure
