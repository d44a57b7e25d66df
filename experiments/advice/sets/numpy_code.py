"""Code that a user writes with numpy and scipy: whole arrays, indices of arrays, and trees of points.

The same functions take arrays of cupy where it has what they call; else there is one for cupy beside them.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

PART = 64  # reads of a trace that are summed together


def pair_energies(points: np.ndarray, radii: np.ndarray | None, cutoff: float) -> np.ndarray:
    """Sum (1 - distance / range)**2 over the neighbours of each particle, by the pairs of a k-d tree.

    Args:
        points: (n, dim) float64.
        radii: (n,) float64; the range of a pair is the sum of its radii. None for one range, the cutoff.
        cutoff: largest range.

    Returns:
        (n,) float64.
    """
    pairs = cKDTree(points).query_pairs(cutoff, output_type="ndarray")
    i, j = pairs[:, 0], pairs[:, 1]
    distance = np.sqrt(((points[i] - points[j]) ** 2).sum(axis=1))
    reach = cutoff if radii is None else radii[i] + radii[j]
    energy = np.where(distance < reach, (1 - distance / reach) ** 2, 0.0)
    return np.bincount(i, energy, len(points)) + np.bincount(j, energy, len(points))


def mean_distances(points: np.ndarray, neighbours: int) -> np.ndarray:
    """Return the mean distance of the nearest points of each point, by a k-d tree.

    Args:
        points: (n, dim) float64.
        neighbours: nearest points, without the point itself.

    Returns:
        (n,) float64.
    """
    distance = np.asarray(cKDTree(points).query(points, k=neighbours + 1)[0])
    return distance[:, 1:].mean(axis=1)


def edge_forces(points: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sum the forces of springs on each point; a spring's constant is the mean value of its ends.

    Args:
        points: (n, dim) float64.
        values: (n,) float64.
        edges: (m, 2) int32.

    Returns:
        (n, dim) float64.
    """
    i, j = edges[:, 0], edges[:, 1]
    force = (0.5 * (values[i] + values[j]))[:, None] * (points[j] - points[i])
    forces = np.zeros_like(points)
    np.add.at(forces, i, force)
    np.subtract.at(forces, j, force)
    return forces


def edge_forces_of_cupy(points: Any, values: Any, edges: Any) -> Any:
    """Sum as `edge_forces`, for arrays of cupy."""
    import cupy

    i, j = edges[:, 0], edges[:, 1]
    force = (0.5 * (values[i] + values[j]))[:, None] * (points[j] - points[i])
    forces = np.zeros_like(points)
    cupy.add.at(forces, i, force)
    cupy.add.at(forces, j, -force)
    return forces


def cell_loads(points: np.ndarray, values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Add to each corner of a cell the mean value of the cell, times the distance from the cell's centre.

    Args:
        points: (n, dim) float64.
        values: (n,) float64.
        cells: (c, corners) int32.

    Returns:
        (n,) float64.
    """
    corners = points[cells]
    distance = np.sqrt(((corners - corners.mean(axis=1, keepdims=True)) ** 2).sum(axis=2))
    loads = values[cells].mean(axis=1, keepdims=True) * distance
    return np.bincount(cells.ravel(), loads.ravel(), len(points))


def matrix_product(matrix: csr_array, values: np.ndarray) -> np.ndarray:
    """Multiply a sparse matrix with a vector.

    Args:
        matrix: (n, n).
        values: (n,).

    Returns:
        (n,) float64.
    """
    return matrix @ values


def trace_sums(values: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Sum the entries that a program reads, for each `PART` reads in turn.

    Args:
        values: (n, m) of any float dtype.
        trace: (t,) int64.

    Returns:
        (ceil(t / PART),) float64.
    """
    sums = values[trace].sum(axis=1, dtype=np.float64)
    return np.add.reduceat(sums, np.arange(0, len(trace), PART))


def listed_distances(points: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return the mean distance of the listed points of each point.

    Args:
        points: (n, dim) float64.
        lists: (n, k) integers.

    Returns:
        (n,) float64.
    """
    return (((points[lists] - points[:, None]) ** 2).sum(axis=2) ** 0.5).mean(axis=1)


def trace_sums_in_rows(values: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Sum the entries that a program reads as `trace_sums`, by sums of rows of `PART` reads.

    Args:
        values: (n, m) of any float dtype.
        trace: (t,) int64.

    Returns:
        (ceil(t / PART),) float64.
    """
    rows = -(-len(trace) // PART)
    sums = np.zeros_like(values, np.float64, shape=rows * PART)
    sums[: len(trace)] = values[trace].sum(axis=1, dtype=np.float64)
    return sums.reshape(rows, PART).sum(axis=1)
