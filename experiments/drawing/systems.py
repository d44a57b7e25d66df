"""Picture of a system of boxes in space, with a sphere in some of them."""

import itertools

import numpy as np
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection

EDGE, SPHERE = "0.55", "#0072B2"


def draw_system(panel: Axes3D, shape: tuple[int, int, int], columns: bool = False) -> None:
    """Draw the grid on three faces of a block of boxes, and spheres of diameter 1 in boxes of the front.

    Args:
        panel: three-dimensional axes.
        shape: boxes along each axis; in d.
        columns: whether the boxes are as high as the block.
    """
    nx, ny, nz = shape
    levels = (0, nz) if columns else range(nz + 1)
    edges = [[(x, 0, 0), (x, 0, nz)] for x in range(nx + 1)]
    edges += [[(x, 0, nz), (x, ny, nz)] for x in range(nx + 1)]
    edges += [[(nx, y, 0), (nx, y, nz)] for y in range(ny + 1)]
    edges += [[(0, y, nz), (nx, y, nz)] for y in range(ny + 1)]
    edges += [[(0, 0, z), (nx, 0, z)] for z in levels] + [[(nx, 0, z), (nx, ny, z)] for z in levels]
    panel.add_collection3d(Line3DCollection(edges, colors=EDGE, linewidths=0.6, zorder=2))
    generator = np.random.default_rng(2)
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 24), np.linspace(0, np.pi, 12))
    ball = 0.5 * np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    fronts = [(x, 0, z) for x, z in itertools.product(range(nx), range(nz))]
    for number in generator.choice(len(fronts), max(2, len(fronts) // 6), replace=False):
        centre = np.array(fronts[number]) + 0.5
        placed = ball + centre[:, None, None]
        panel.plot_surface(*placed, color=SPHERE, linewidth=0, zorder=1, rasterized=True)
    panel.computed_zorder = False  # so that the grid is before the spheres, which are within the boxes
    panel.set(xlim=(0, nx), ylim=(0, ny), zlim=(0, max(nz, 1)))
    panel.set_box_aspect((nx, ny, max(nz, 1)), zoom=0.9)
    panel.view_init(elev=24, azim=-52)
    panel.set_axis_off()
