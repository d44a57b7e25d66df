"""Indices of workloads on points in space, with the points in a memory order.

Gather reads the nearest points of each, as in a table of neighbours; scatter adds each point to its cell, as
particle-in-cell codes deposit charge; a sparse matrix has an entry for each pair of near points, as meshes
and graphs of neighbours have.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_array

import sfc
from experiments.prediction.memory_orders import IN_TILES, POINTS, in_windows, order_of
from experiments.results.baselines import BASELINES, LATTICE, SHUFFLED
from sfc import checks
from sfc.compile import callee, kernel

KINDS = ("gather", "scatter", "spmv")
MOST_POINTS, MOST_READS = 2**30, 256
PER_CELL = 2.0  # points in a cell of the search and of the strided orders, on average
MOST_ENTRIES = 2**31 - 1  # that int32 counts


def index_case(kind: str, n: int, reads: int, ordering: str, seed: int = 0) -> Any:
    """Draw the index of a workload.

    The same points are drawn for every ordering of a seed, but for the lattice. The cube has open sides.

    Args:
        kind: "gather", "scatter" or "spmv".
        n: number of points, up to 2**30.
        reads: of gather and spmv, the nearest other points that each takes, up to 256 and n - 1. Of scatter,
            points of a cell, on average, up to n.
        ordering: memory order of the points: "shuffled"; a curve of `sfc.curves(3)`, laid over the cube;
            "strided" or "tiled_strided", by a cube of cells of about two points each; "str", in tiles of
            its default capacity; "window W" for Hilbert's with each W points in a row shuffled among
            themselves; or "lattice": the first n sites, row after row, of a simple cubic lattice of the
            fewest sites.
        seed: of the points, and of the numbers of the matrix.

    Returns:
        Gather: (n, reads) int32 numbers of points, the nearest first; of two that are as near, that
        in the earlier cell. Scatter: (n,) int32 numbers of cells of a cube, row after
        row. Spmv: an (n, n) csr_array of float64 numbers from 0 to 1; there is an entry for i, j if one of
        the two points is among the nearest of the other, and none on the diagonal.

    Raises:
        TypeError: a word or number of another class.
        ValueError: an unknown word, or a number out of range.
    """
    checks.word("kind", kind, KINDS)
    n = checks.integer("n", n, 1, MOST_POINTS, unit="points")
    if kind == "scatter":
        reads = checks.integer("reads", reads, 1, n, unit="points of a cell")
    else:
        remedy = "each point reads others: take more points, or fewer reads"
        reads = checks.integer("reads", reads, 1, min(MOST_READS, n - 1), unit="points", remedy=remedy)
        most = MOST_ENTRIES // (2 if kind == "spmv" else 1)
        checks.integer("n * reads", n * reads, 1, most, unit="entries", remedy="take fewer points or reads")
    points = points_in_order(n, ordering, seed)
    if kind == "scatter":
        return cells_of(points, max(1, round((n / reads) ** (1 / 3))))
    index = nearest(points, reads)
    return index if kind == "gather" else _matrix(index, seed)


def points_in_order(n: int, ordering: str, seed: int = 0) -> np.ndarray:
    """Draw points in the unit cube, in a memory order.

    Args:
        n: number of points.
        ordering: as for `index_case`.
        seed: of the points.

    Returns:
        (n, 3) float64.

    Raises:
        TypeError: no word, or no integer.
        ValueError: an unknown ordering, or a seed out of range.
    """
    order = order_of(ordering)
    known = (*BASELINES, *sfc.curves(3), *POINTS)
    if order.steps or order.name not in known:
        raise ValueError(f"ordering {ordering!r}; allowed: {', '.join(known)}, or 'window W' of W points")
    seed = checks.integer("seed", seed, 0, 2**63)
    if ordering == LATTICE:
        side = round(n ** (1 / 3))
        side += side**3 < n
        return (np.stack(np.unravel_index(np.arange(n), (side,) * 3), axis=1) + 0.5) / side
    points = np.random.default_rng(seed).random((n, 3))
    if ordering == SHUFFLED:
        return points
    if order.name == IN_TILES:
        return points[sfc.argsort(points, IN_TILES)]
    side = max(1, round((n / PER_CELL) ** (1 / 3)))
    cells: dict[str, Any] = {"cells": side} if order.name in POINTS else {}
    return points[in_windows(sfc.argsort(points, order.name, box=(0, 1), **cells), order.window, seed)]


def cells_of(points: np.ndarray, side: int) -> np.ndarray:
    """Return the cell of each point in a cube of side**3 cells, row after row: (n,) int32."""
    at = np.minimum((points * side).astype(np.int32), side - 1)
    return (at[:, 0] * side + at[:, 1]) * side + at[:, 2]


def nearest(points: np.ndarray, reads: int) -> np.ndarray:
    """Find the nearest other points of each in the unit cube, by a search in cells.

    Args:
        points: (n, 3) float64 from 0 to 1.
        reads: number of them, from 1 to n - 1.

    Returns:
        (n, reads) int32 numbers of points, as `index_case` says.
    """
    side = max(1, int((len(points) / PER_CELL) ** (1 / 3)))
    cell = cells_of(points, side)
    order = np.argsort(cell, kind="stable")
    start = np.zeros(side**3 + 1, np.int64)
    np.cumsum(np.bincount(cell, minlength=side**3), out=start[1:])
    found = np.empty((len(points), reads), np.int32)
    _search(side, start, order, points[order], found)
    return found


@callee
def _square(points, i, j):
    # Square of the distance of two points.
    x, y, z = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
    return x * x + y * y + z * z


@callee
def _insert(near, far, j, d):
    # Keeps the nearest points in order, with the squares of their distances.
    k = len(far) - 1
    if d > far[k] or (d == far[k] and j > near[k]):
        return
    while k > 0 and (far[k - 1] > d or (far[k - 1] == d and near[k - 1] > j)):
        far[k], near[k] = far[k - 1], near[k - 1]
        k -= 1
    far[k], near[k] = d, j


@kernel(parallel=True)
def _search(side, start, order, points, found):
    # Layer after layer of cells around that of a point, until none can hold a nearer one.
    reads = found.shape[1]
    for line in numba.prange(side * side):
        near, far = np.empty(reads, np.int64), np.empty(reads)
        home = line // side, line % side
        for i in range(start[line * side], start[(line + 1) * side]):
            at = points[i, 0] * side, points[i, 1] * side, points[i, 2] * side
            last = min(int(at[2]), side - 1)
            far[:] = np.inf
            for ring in range(side):
                for a in range(max(0, home[0] - ring), min(side, home[0] + ring + 1)):
                    for b in range(max(0, home[1] - ring), min(side, home[1] + ring + 1)):
                        whole = abs(a - home[0]) == ring or abs(b - home[1]) == ring
                        step = 1 if whole else max(1, 2 * ring)
                        for c in range(last - ring, last + ring + 1, step):
                            if c < 0 or c >= side:
                                continue
                            cell = (a * side + b) * side + c
                            for j in range(start[cell], start[cell + 1]):
                                if j != i:
                                    _insert(near, far, j, _square(points, i, j))
                # faces of the cells that were looked at, less the rounding of cells
                low = min(at[0] - home[0], at[1] - home[1], at[2] - last)
                high = max(at[0] - home[0], at[1] - home[1], at[2] - last)
                reach = (min(low, 1 - high) + ring - 1e-9) / side
                if reach > 0 and far[-1] < reach * reach:
                    break
            for k in range(reads):
                found[order[i], k] = order[near[k]]


def _matrix(index: np.ndarray, seed: int) -> csr_array:
    """Make a matrix with an entry where one of two points is in the index of the other."""
    n, reads = index.shape
    begin = np.arange(0, n * reads + 1, reads, dtype=np.int32)
    ones = np.ones(index.size, np.int8)
    one_way = csr_array((ones, np.sort(index, axis=1).ravel(), begin), shape=(n, n))
    matrix = csr_array(one_way + one_way.T.tocsr())
    numbers = np.random.default_rng(seed).random(len(matrix.data))
    return csr_array((numbers, matrix.indices, matrix.indptr), shape=(n, n))
