"""Mesh of a path through cells: a round tube with rounded corners, closed by half balls."""

import math
from typing import NamedTuple

import numpy as np

from sfc.compile import kernel


class Mesh(NamedTuple):
    """A closed surface of triangles, turned outwards.

    Attributes:
        vertices: (v, 3) points.
        normals: (v, 3) unit vectors, outwards.
        position: (v,) place along the path, 0 at its first cell and 1 at its last.
        triangles: (t, 3) vertices of each, counterclockwise from outside.
    """

    vertices: np.ndarray
    normals: np.ndarray
    position: np.ndarray
    triangles: np.ndarray


def path_mesh(
    path: np.ndarray,
    radius: float = 0.2,
    sides: int = 10,
    pieces: int = 4,
    jumps: float = 0.05,
    longest: float = 1,
) -> Mesh:
    """Build tubes along the steps of a path, and thin tubes along its jumps.

    Args:
        path: (n, 3) floats, one point or more.
        radius: of a tube.
        sides: of its cross-section.
        pieces: of a rounded corner, 1 or more.
        jumps: radius of a jump; 0 leaves jumps out.
        longest: longest step; one that is longer, or not along an axis, is a jump.

    Returns:
        The mesh; its position runs over the whole path.
    """
    step = np.diff(path, axis=0)
    is_jump = (np.count_nonzero(step, axis=1) > 1) | (np.abs(step).max(axis=1) > longest + 1e-9)
    breaks, meshes = np.flatnonzero(is_jump), []
    for first, last in zip(np.r_[0, breaks + 1], np.r_[breaks, len(path) - 1], strict=True):
        place, line = rounded(path[first : last + 1], pieces)
        meshes.append(tube(line, place + first, radius, sides, caps=pieces))
    if jumps:
        meshes += [tube(path[i : i + 2], np.array([i, i + 1]), jumps, 6) for i in breaks]
    mesh = joined(meshes)
    return mesh._replace(position=mesh.position / max(len(path) - 1, 1))


def rounded(path: np.ndarray, pieces: int, bend: float = 0.42) -> tuple[np.ndarray, np.ndarray]:
    """Round the corners of a path by quarter circles.

    Args:
        path: (n, 3) floats, each step along one axis and at least 2 * bend long.
        pieces: pieces of a quarter circle, 1 or more.
        bend: its radius.

    Returns:
        (m,) places, a whole number at a point of the path, and (m, 3) points.
    """
    number = np.arange(len(path), dtype=float)
    if len(path) < 3:
        return number, path
    step = np.diff(path, axis=0)
    step /= np.linalg.norm(step, axis=1, keepdims=True)
    before, after = step[:-1, None], step[1:, None]
    angle = np.linspace(0, np.pi / 2, pieces + 1)[None, :, None]
    corner = path[1:-1, None] + bend * (np.sin(angle) - 1) * before + bend * (1 - np.cos(angle)) * after
    place = number[1:-1, None] + bend * np.linspace(-1, 1, pieces + 1)
    place, corner = place.ravel(), corner.reshape(-1, 3)
    return np.r_[0, place, number[-1]], np.vstack([path[:1], corner, path[-1:]])


def tube(line: np.ndarray, position: np.ndarray, radius: float, sides: int, caps: int = 3) -> Mesh:
    """Build the surface at a distance from a line.

    Args:
        line: (m, 3) floats, no two in succession equal; a single one gives a ball.
        position: (m,) place of each.
        radius: distance from the line.
        sides: of the cross-section, 3 or more.
        caps: rings of each half ball at the ends, 1 or more.

    Returns:
        The mesh; every vertex is at `radius` from the line.
    """
    frames = _frames(line)
    turn = 2 * np.pi * np.arange(sides) / sides
    circle = np.cos(turn)[:, None] * frames[:, None, 1] + np.sin(turn)[:, None] * frames[:, None, 2]
    lift = (np.pi / 2 * np.arange(1, caps + 1) / (caps + 1))[:, None, None]
    back = np.cos(lift) * circle[0] - np.sin(lift) * frames[0, 0]
    front = np.cos(lift) * circle[-1] + np.sin(lift) * frames[-1, 0]
    rings = np.concatenate([back[::-1], circle, front])
    centre = np.pad(line, ((caps, caps), (0, 0)), mode="edge")
    place = np.pad(position, caps, mode="edge")
    normals = np.vstack([rings.reshape(-1, 3), -frames[:1, 0], frames[-1:, 0]])
    centres = np.vstack([np.repeat(centre, sides, axis=0), line[:1], line[-1:]])
    position = np.concatenate([np.repeat(place, sides), position[:1], position[-1:]])
    return Mesh(centres + radius * normals, normals, position, _triangles(len(rings), sides))


def joined(meshes: list[Mesh]) -> Mesh:
    """Join several meshes to one."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    triangles = [mesh.triangles + start for mesh, start in zip(meshes, starts, strict=True)]
    vertices, normals, position = (
        np.concatenate(part) for part in zip(*(mesh[:3] for mesh in meshes), strict=True)
    )
    return Mesh(vertices, normals, position, np.concatenate(triangles))


def _triangles(rings: int, sides: int) -> np.ndarray:
    """Build the triangles of `rings` rings of vertices with a pole at each end, stored after the rings."""
    number = np.arange(rings * sides).reshape(rings, sides)
    beside = np.roll(number, -1, axis=1)
    a, b, c, d = number[:-1], beside[:-1], number[1:], beside[1:]
    back, front = np.full((2, sides), [[rings * sides], [rings * sides + 1]])
    corners = [(a, b, c), (b, d, c), (back, beside[0], number[0]), (front, number[-1], beside[-1])]
    return np.vstack([np.column_stack([part.ravel() for part in three]) for three in corners])


def _frames(line: np.ndarray) -> np.ndarray:
    """Return tangent, normal and binormal at each point, carried along without twist: (m, 3, 3)."""
    ends = np.pad(line, ((1, 1), (0, 0)), mode="edge")
    tangents = ends[2:] - ends[:-2]
    length = np.sqrt((tangents**2).sum(axis=1, keepdims=True))
    tangents = np.divide(tangents, length, out=np.tile([1.0, 0, 0], (len(line), 1)), where=length > 0)
    normals = np.zeros_like(tangents)
    normals[0, 2 if abs(tangents[0, 2]) < 0.6 else 0] = 1  # any direction far from the tangent
    _carry(tangents, normals)
    return np.stack([tangents, normals, np.cross(tangents, normals)], axis=1)


@kernel
def _carry(tangents, normals):
    """Carry the first normal along: each is the part of the one before that is normal to the tangent."""
    for i in range(len(tangents)):
        normal, tangent = normals[max(i - 1, 0)], tangents[i]
        normal = normal - (normal * tangent).sum() * tangent
        normals[i] = normal / math.sqrt((normal**2).sum())
