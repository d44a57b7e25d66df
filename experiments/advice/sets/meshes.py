"""Meshes: points, and cells or edges between them, in the order of a mesher or in none.

Every function takes a number of points and a seed, and returns the same arrays for the same two. A mesh that
comes in certain sizes only has the most points that fit into the number. `values` are of the points.
"""

from itertools import permutations

import numpy as np
from scipy.spatial import Delaunay

from experiments.advice.sets.data import SetData
from experiments.advice.sets.permutations import Order, put


def _block(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a block of unit cubes, axis 2 fastest and moved a little, and their corners.

    Returns:
        (points, 3), and (cubes, 8) int32 in which corner 4 x + 2 y + z is at (x, y, z).
    """
    side = int(np.floor(n ** (1 / 3) + 1e-9))
    places = np.stack(np.meshgrid(*3 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 3)
    points = places + np.random.default_rng(seed).uniform(-0.15, 0.15, places.shape)
    first = np.arange(side**3, dtype=np.int32).reshape(3 * (side,))[:-1, :-1, :-1].reshape(-1, 1)
    x, y, z = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)))
    return points, first + (x * side**2 + y * side + z).astype(np.int32)


def tetrahedra(n: int, seed: int) -> SetData:
    """Make tetrahedra of a block, row by row as a mesher of blocks does: six in each cube.

    Args:
        n: points at most; the block has the same number along each axis.
        seed: of the places of the points within their cells.

    Returns:
        `points`, `values`, and `cells` of 4 corners.
    """
    points, corners = _block(n, seed)
    steps = [np.cumsum((0, *order)) for order in permutations((4, 2, 1))]  # from corner 0 to 7 (Kuhn, 1960)
    cells = np.ascontiguousarray(np.stack([corners[:, step] for step in steps], axis=1).reshape(-1, 4))
    return SetData(points=points, cells=cells, values=_values(len(points), seed))


def hexahedra_shuffled(n: int, seed: int) -> SetData:
    """Make hexahedra of a block, with points and cells in random order.

    Args:
        n: points at most; the block has the same number along each axis.
        seed: of the places of the points and of the order.

    Returns:
        `points`, `values`, and `cells` of 8 corners.
    """
    points, cells = _block(n, seed)
    data = SetData(points=points, cells=cells, values=_values(len(points), seed))
    rng = np.random.default_rng([seed, 1])
    return put(data, Order(rng.permutation(len(points)), rng.permutation(len(cells))))


def icosphere(n: int, seed: int) -> SetData:
    """Make the edges of a sphere of triangles, each divided into four again and again.

    New points follow the former ones, in the order of the edges that they divide, so that points of one level
    are partly in order, and neighbours of different levels are far apart.

    Args:
        n: points at most; there are 10 * 4**k + 2.
        seed: of the values.

    Returns:
        `points` on the unit sphere, `values`, and `cells` of 2 corners, sorted.

    Raises:
        ValueError: fewer than 12 points.
    """
    if n < 12:
        raise ValueError(f"n = {n}; allowed: 12 or more, the points of an icosahedron")
    points, faces = _icosahedron()
    while 4 * len(points) - 6 <= n:
        ends, sides = _edges(faces, len(points))
        middle = points[ends[:, 0]] + points[ends[:, 1]]
        a, b, c = (len(points) + sides).T  # in the middle of the sides 0-1, 1-2 and 2-0
        points = np.concatenate([points, middle / np.linalg.norm(middle, axis=1, keepdims=True)])
        x, y, z = faces.T
        faces = np.stack([x, a, c, y, b, a, z, c, b, a, b, c], axis=1).reshape(-1, 3)
    edges = _edges(faces, len(points))[0].astype(np.int32)
    return SetData(points=points, cells=edges, values=_values(len(points), seed))


def delaunay(n: int, seed: int) -> SetData:
    """Make the edges of the Delaunay triangles of random points in a square, in random order.

    Args:
        n: number of points, 4 or more.
        seed: of the points and the values.

    Returns:
        `points` (n, 2), `values`, and `cells` of 2 corners.
    """
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    edges = _edges(Delaunay(points).simplices.astype(np.int64), n)[0].astype(np.int32)
    return SetData(points=points, cells=edges[rng.permutation(len(edges))], values=_values(n, seed))


def _edges(faces: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of triangles, sorted, and (faces, 3) the edge of each side, from corner k to k + 1."""
    ends = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    keys, sides = np.unique(ends[:, 0].astype(np.int64) * n + ends[:, 1], return_inverse=True)
    return np.stack(np.divmod(keys, n), axis=1), sides.reshape(-1, 3)


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Return the 12 points and 20 faces of an icosahedron: the triangles of points at the least distance."""
    golden = (1 + np.sqrt(5)) / 2
    corners = [(0, s, t * golden) for s in (-1, 1) for t in (-1, 1)]
    points = np.array([np.roll(corner, k) for k in range(3) for corner in corners], float)
    points /= np.linalg.norm(points[0])
    near = np.linalg.norm(points[:, None] - points, axis=-1) < 1.1  # edges are 1.05 long
    faces = [
        (i, j, k)
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if near[i, j] and near[j, k] and near[i, k]
    ]
    return points, np.array(faces, np.int64)


def _values(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 2]).random(n)
