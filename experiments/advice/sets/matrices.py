"""Sparse matrices: Laplacians of grids, graphs, and a band of which some rows were moved.

Every function takes a number of rows and a seed, and returns the same arrays for the same two. A matrix of a
grid has the most rows that fit into the number. `values` is the vector that the matrix is multiplied with.
Matrices of grids have the coordinates of their rows as `points`, which a file of a matrix does not hold.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from experiments.advice.sets.data import SetData
from experiments.advice.sets.permutations import Order, put


def laplacian_27(n: int, seed: int) -> SetData:
    """Make the 27-point Laplacian of a cubic grid, row by row of the grid.

    Args:
        n: rows at most; the grid has the same number of points along each axis.
        seed: of the values.

    Returns:
        `matrix`, `values`, and `points` of the grid.
    """
    side = int(np.floor(n ** (1 / 3) + 1e-9))
    line = _chain(side)
    matrix = 27 * sparse.eye_array(side**3) - sparse.kron(line, sparse.kron(line, line))
    return _of(matrix, seed, _grid((side,) * 3))


def laplacian_shuffled(n: int, seed: int) -> SetData:
    """Make the 5-point Laplacian of a square grid, its points in random order.

    Args:
        n: rows at most; the grid has the same number of points along both axes.
        seed: of the values and of the order.

    Returns:
        `matrix`, `values`, and `points` of the grid.
    """
    side = int(np.floor(np.sqrt(n) + 1e-9))
    line, one = _chain(side), sparse.eye_array(side)
    matrix = 6 * sparse.eye_array(side**2) - sparse.kron(line, one) - sparse.kron(one, line)
    order = np.random.default_rng([seed, 1]).permutation(side**2)
    return put(_of(matrix, seed, _grid((side,) * 2)), Order(order))


def random_graph(n: int, seed: int, degree: int = 8) -> SetData:
    """Make the adjacency matrix of a random graph: no order of it has locality.

    Args:
        n: rows.
        seed: of the edges and values.
        degree: mean number of neighbours.

    Returns:
        `matrix` and `values`.
    """
    ends = np.random.default_rng(seed).integers(0, n, (2, n * degree // 2))
    return _of(_adjacency(ends, n), seed)


def band_moved(n: int, seed: int, half: int = 5, moved: float = 0.1) -> SetData:
    """Make a band matrix of which some rows, with their columns, have exchanged their places.

    Args:
        n: rows.
        seed: of the entries, of the values and of the rows that moved.
        half: entries on either side of the diagonal.
        moved: share of the rows that moved.

    Returns:
        `matrix` and `values`.
    """
    rng = np.random.default_rng(seed)
    offsets = np.arange(-half, half + 1)
    matrix = sparse.dia_array((rng.random((len(offsets), n)) - 0.5, offsets), shape=(n, n))
    order, rows = np.arange(n), np.flatnonzero(rng.random(n) < moved)
    order[rows] = rng.permutation(rows)
    return put(_of(matrix, seed), Order(order))


def power_law(n: int, seed: int, degree: int = 8, exponent: float = 2.3) -> SetData:
    """Make the adjacency matrix of a graph with few rows of very many entries, in random order.

    Both ends of each edge are drawn by weights that fall as a power of the rank (Chung and Lu, 2002).

    Args:
        n: rows.
        seed: of the edges and values.
        degree: mean number of neighbours, before edges that repeat are joined.
        exponent: of the distribution of the degrees, above 2.

    Returns:
        `matrix` and `values`.
    """
    rng = np.random.default_rng(seed)
    weights = np.cumsum(np.arange(1.0, n + 1) ** (-1 / (exponent - 1)))
    drawn = np.searchsorted(weights[:-1], rng.random((2, n * degree // 2)) * weights[-1])
    return _of(_adjacency(rng.permutation(n)[drawn], n), seed)


def _adjacency(ends: np.ndarray, n: int) -> csr_array:
    """Return the symmetric matrix of edges, (2, edges); equal edges are joined."""
    row, column = np.concatenate([ends, ends[::-1]], axis=1)
    found = csr_array((np.ones(len(row)), (row, column)), shape=(n, n))
    found.sum_duplicates()
    found.data[:] = 1
    return found


def _chain(n: int) -> csr_array:
    """Return ones on the diagonal and on both sides of it."""
    return csr_array(sparse.dia_array((np.ones((3, n)), np.array([-1, 0, 1])), shape=(n, n)))


def _grid(shape: tuple[int, ...]) -> np.ndarray:
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1).astype(np.float64)


def _of(matrix: Any, seed: int, points: np.ndarray | None = None) -> SetData:
    """Return the data of a matrix, with columns of int32 that ascend in each row."""
    rows = csr_array(matrix)
    rows.sort_indices()
    columns, begin = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    found = csr_array((rows.data.astype(np.float64), columns, begin), shape=rows.shape)
    values = np.random.default_rng([seed, 2]).random(rows.shape[0])
    return SetData(matrix=found, values=values, points=points)
