"""Surfaces in a box of cells, with hidden surfaces removed for each pixel.

Matplotlib sorts whole polygons, which fails for interlocking tubes. Here a z-buffer (Catmull, 1974) keeps the
nearest surface of every pixel, and matplotlib draws the picture, the box around it and its axes.
"""

from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from experiments.drawing.plane import MAP
from experiments.drawing.tubes import Mesh
from sfc.compile import kernel

_LIGHT = np.array([-0.45, 0.65, 0.75]) / np.linalg.norm([-0.45, 0.65, 0.75])  # right, up, towards the eye
_SAMPLES = 2  # per pixel and direction
PIXELS = 130  # an inch
COLOURS = 96  # of a picture


class View(NamedTuple):
    """Direction of view of a picture, without perspective.

    Attributes:
        azimuth: degrees around z, 0 from the side of large x.
        elevation: degrees above the horizon.
    """

    azimuth: float = -62
    elevation: float = 24

    def project(self, points: np.ndarray) -> np.ndarray:
        """Project (n, 3) points to (n, 3) coordinates: right, up, and towards the eye."""
        a, e = np.radians(self)
        right = [-np.sin(a), np.cos(a), 0]
        eye = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
        return np.asarray(points, dtype=float) @ np.column_stack([right, np.cross(eye, right), eye])


def draw_mesh(
    panel: plt.Axes,
    mesh: Mesh,
    shape: tuple[int, ...],
    view: View | None = None,
    inches: float = 3.2,
    axes: bool = True,
) -> None:
    """Draw a mesh in its box, coloured by the position along the path, with the box's axes in cells.

    Args:
        panel: axes to draw in; their frame is hidden.
        mesh: points in cells, cell centres at whole numbers and a half.
        shape: sides of the box.
        view: direction of view, above the horizon.
        inches: width of the panel, from which the number of pixels follows.
        axes: whether to draw the box and name its axes.
    """
    view = view or View()
    corners = np.array(np.meshgrid(*([0, side] for side in shape))).reshape(3, -1).T
    flat = view.project(np.vstack([corners, mesh.vertices]))
    low, high = flat[:, :2].min(axis=0), flat[:, :2].max(axis=0)
    scale = PIXELS * inches / (high - low).max()
    picture = render(view.project(mesh.vertices), view.project(mesh.normals), mesh, low, high, scale)
    few = Image.fromarray(picture[..., :3]).quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    picture = np.dstack([np.asarray(few), picture[..., 3]])
    panel.imshow(picture, extent=(low[0], high[0], low[1], high[1]), interpolation="antialiased", zorder=2)
    if axes:
        _draw_box(panel, tuple(shape), view)
    panel.set_axis_off()
    panel.set_aspect("equal")


def render(
    points: np.ndarray, normals: np.ndarray, mesh: Mesh, low: np.ndarray, high: np.ndarray, scale: float
) -> np.ndarray:
    """Render a mesh.

    Args:
        points: (v, 3) projected vertices.
        normals: (v, 3) projected normals.
        mesh: their positions and triangles.
        low: (2,) lower left of the picture.
        high: (2,) upper right.
        scale: pixels per unit.

    Returns:
        (rows, columns, 4) uint8 from the top: red, green, blue and opacity.
    """
    fine = scale * _SAMPLES
    columns, rows = (int(n) for n in np.ceil((high - low) * fine / _SAMPLES) * _SAMPLES)
    corners = np.column_stack([(points[:, 0] - low[0]) * fine, (high[1] - points[:, 1]) * fine])
    light = 0.38 + 0.62 * np.clip(normals @ _LIGHT, 0, None)
    buffers = np.zeros((3, rows, columns))
    depth, shade, place = buffers
    depth[:] = -np.inf
    _rasterise(corners, np.stack([points[:, 2], light, mesh.position]), mesh.triangles, buffers)
    seen = np.isfinite(depth)
    colours = plt.get_cmap(MAP)(place)
    colours[..., :3] *= (shade * _outline(depth, seen))[..., None]
    colours[..., 3] = seen
    colours[..., :3] *= colours[..., 3:]
    small = colours.reshape(rows // _SAMPLES, _SAMPLES, columns // _SAMPLES, _SAMPLES, 4).mean(axis=(1, 3))
    small[..., :3] /= np.maximum(small[..., 3:], 1e-9)
    return np.round(255 * np.clip(small, 0, 1)).astype(np.uint8)


def _outline(depth: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Compute darker shades beside nearer surfaces, which separate crossing tubes and darken gaps."""
    far = np.where(seen, depth, np.nanmin(depth[seen]) if seen.any() else 0.0)
    around = np.pad(far, 2, mode="edge")
    nearest = far.copy()
    for down, across in ((0, 2), (4, 2), (2, 0), (2, 4), (1, 1), (1, 3), (3, 1), (3, 3)):
        part = around[down : down + far.shape[0], across : across + far.shape[1]]
        np.maximum(nearest, part, out=nearest)
    return 1 - 0.6 * np.clip((nearest - far - 0.25) / 1.0, 0, 1)


@kernel
def _rasterise(corners, values, triangles, buffers):
    """Fill a buffer for each value, of which depth is the first, with the nearest triangle of each pixel."""
    _, rows, columns = buffers.shape
    for t in range(len(triangles)):
        a, b, c = triangles[t]
        ax, bx, cx = corners[a, 0], corners[b, 0], corners[c, 0]
        ay, by, cy = corners[a, 1], corners[b, 1], corners[c, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area < 0:  # rows count downwards, so these face the eye
            for row in range(max(int(min(ay, by, cy)), 0), min(int(max(ay, by, cy)) + 1, rows)):
                for column in range(max(int(min(ax, bx, cx)), 0), min(int(max(ax, bx, cx)) + 1, columns)):
                    x, y = column + 0.5, row + 0.5
                    u = ((cx - bx) * (y - by) - (cy - by) * (x - bx)) / area
                    v = ((ax - cx) * (y - cy) - (ay - cy) * (x - cx)) / area
                    w = 1 - u - v
                    depth = u * values[0, a] + v * values[0, b] + w * values[0, c]
                    if min(u, v, w) >= 0 and depth > buffers[0, row, column]:
                        for k in range(len(values)):
                            buffers[k, row, column] = u * values[k, a] + v * values[k, b] + w * values[k, c]


def _draw_box(panel: plt.Axes, shape: tuple[int, ...], view: View) -> None:
    """Draw the edges behind the picture, and three near axes with their names and sides."""
    towards = view.project(np.eye(3))[:, 2] > 0  # axes with the far end nearer to the eye
    far, near = np.where(towards, 0, shape), np.where(towards, shape, 0)
    for axis in range(3):
        one, other = sorted({0, 1, 2} - {axis})
        for a, b in ((far, far), (far, near), (near, far)):  # (near, near) would cross the picture
            start = np.zeros(3)
            start[one], start[other] = a[one], b[other]
            panel.plot(*_edge(view, start, axis, shape).T, color="0.8", linewidth=0.6, zorder=1)
    for axis, name in enumerate(("x (cells)", "y (cells)")):
        _label(panel, _edge(view, [near[0], near[1], 0], axis, shape), view, shape, name)
    sides = [_edge(view, start, 2, shape) for start in ([near[0], far[1], 0], [far[0], near[1], 0])]
    _label(panel, min(sides, key=lambda edge: edge[0, 0]), view, shape, "z (cells)")


def _edge(view: View, start: Any, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """Project both ends of an edge of the box: (2, 2)."""
    ends = np.array([start, start], dtype=float)
    ends[:, axis] = 0, shape[axis]
    return view.project(ends)[:, :2]


def _label(panel: plt.Axes, edge: np.ndarray, view: View, shape: tuple[int, ...], name: str) -> None:
    """Write the name of an axis and the numbers at its ends outside the picture."""
    along = edge[1] - edge[0]
    middle = view.project(np.array([shape]) / 2)[0, :2]
    outwards = np.array([along[1], -along[0]]) / np.linalg.norm(along)
    outwards *= np.sign(outwards @ (edge.mean(axis=0) - middle))
    angle = np.degrees(np.arctan2(along[1], along[0]))
    angle = 90 if name[0] == "z" else angle - 180 * round(angle / 180)
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "color": "0.25"}
    side = shape["xyz".index(name[0])]
    crowded = side < 0.3 * max(shape)  # the name goes further out than the numbers
    panel.annotate(
        name, edge.mean(axis=0), outwards * (16 if crowded else 9), rotation=angle, fontsize=7, **look
    )
    for number, share in ((0, 0.06), (side, 0.94)):
        panel.annotate(f"{number}", edge[0] + share * along, outwards * 6, fontsize=6, **look)
