"""Worst-case dilation of a curve in the limit of its orders, by branch and bound on its automaton."""

import math
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.tables import reached
from sfc.locality.measure import checked_norm

BYTES = 2**27  # of the pairs that are refined at once


class _Automaton(NamedTuple):
    """Tables of a curve, as geometry.

    Attributes:
        base: of a digit.
        cells: (states, n, dim) sub-cube at each position.
        succ: (states, n) state of the sub-cube at each position.
        corners: (2**dim, dim) 0 and 1, corners of the unit cube.
        times: (states, 2**dim) time in [0, 1] at which the curve visits each corner.
    """

    base: int
    cells: np.ndarray
    succ: np.ndarray
    corners: np.ndarray
    times: np.ndarray


def limit_dilation(curve: Curve, norm: float = 2, tolerance: float = 1e-6) -> float:
    """Compute the worst-case dilation of the curve to which the orders converge.

    That curve maps [0, 1] to the unit cube. Its dilation is the supremum over s < t of
    |c(t) - c(s)|**dim / (t - s); the worst `dilation` of every order is at most that.

    Pairs of cells of one size are refined. The farthest points of two cells, over the time between the cells,
    bound the dilation from above; their corners, and the times at which the curve visits them, from below. A
    pair that cannot exceed the best value by more than the tolerance is dropped.

    Args:
        curve: the curve.
        norm: of c(t) - c(s): 1 (sum), 2 (Euclid) or math.inf (largest).
        tolerance: largest relative error, from 1e-9 to 1.

    Returns:
        The largest dilation found between two corners: the supremum, or less by a factor of at most
        1 + tolerance. math.inf for a curve that jumps.

    Raises:
        TypeError: an argument of another class.
        ValueError: another norm, a tolerance out of range, or not enough memory for the pairs of cells.

    Haverkort and van Walderveen, Computational Geometry 43 (2010) 131, on bounds by refinement; Malykhin and
    Shchepin, Discrete Comput. Geom. 70 (2023) 189, on times of corners.
    """
    checks.instance("curve", curve, Curve, "an sfc.Curve", "make one with sfc.curve or sfc.Curve(...)")
    norm = checked_norm(norm)
    factor = 1 + checks.number("tolerance", tolerance, 1e-9, 1)
    pairs_at_once = len(curve.rank) * curve.base ** (2 * curve.dim) // 2
    remedy = "take fewer dims, or sfc.locality.dilation of an order"
    checks.require_allocatable(f"pairs of cells of {curve!r}", 500 * pairs_at_once, remedy)
    automaton = _geometry(curve)
    pairs = _first_pairs(automaton, curve.start)
    if pairs is None:
        return math.inf
    if curve.dim == 1:
        return 1.0  # monotone, as it visits every point of the interval
    worst = 0.0
    rows = max(1, BYTES // (8 * automaton.succ.shape[1] ** 2 * pairs.shape[1]))
    while len(pairs):
        parts = np.array_split(pairs, -(-len(pairs) // rows))
        worst = max(worst, *(_between_corners(automaton, part, norm) for part in parts))
        finer = [pairs[:0]]
        for part in parts:
            children = _refined(automaton, part[_bound(part, norm) > worst * factor])
            finer.append(children[_bound(children, norm) > worst * factor])
        pairs = np.unique(np.concatenate(finer), axis=0)
    return float(worst)


def _geometry(curve: Curve) -> _Automaton:
    weight = curve.base ** np.arange(curve.dim)
    cells = curve.cell[..., None] // weight % curve.base
    corners = np.indices((2,) * curve.dim).reshape(curve.dim, -1).T
    digit = corners * (curve.base - 1) @ weight
    rank, next = curve.rank[:, digit], curve.next[:, digit]
    times = np.zeros(rank.shape)
    for _ in range(64):  # each halves the error, or better
        times = (rank + times[next, np.arange(len(corners))]) / curve.base**curve.dim
    return _Automaton(curve.base, cells.astype(np.int64), curve.succ.astype(np.int64), corners, times)


def _first_pairs(automaton: _Automaton, start: int) -> np.ndarray | None:
    """List the pairs of cells from which all others follow, but for successive cells.

    Two points lie in one cell of some order and in two of the next. If these are successive, without time
    between them, they are refined: in turn, one pair of their sub-cells is successive. Both cells' states and
    the step between them repeat after finitely many, because a curve that does not jump has cells that touch.

    Returns:
        (n, dim + 3): states of the earlier and the later cell, step from one to the other in cells, and cells
        between them along the curve. None if successive cells do not touch.
    """
    cells, succ = automaton.cells, automaton.succ
    states, n = reached(start, lambda state: succ[state].tolist()), succ.shape[1]
    found = [
        (succ[s, i], succ[s, j], *(cells[s, j] - cells[s, i]), j - i - 1)
        for s in states
        for i in range(n)
        for j in range(i + 1, n)
    ]
    apart = {pair for pair in found if pair[-1]}
    successive = list({pair for pair in found if not pair[-1]})
    known = set(successive)
    for pair in successive:  # grows during the loop
        if max(map(abs, pair[2:-1])) > 1:
            return None
        for child in map(tuple, _refined(automaton, np.array([pair], np.float64)).tolist()):
            if child[-1]:
                apart.add(child)
            elif child not in known:
                known.add(child)
                successive.append(child)
    return np.array(sorted(apart), np.float64).reshape(len(apart), cells.shape[2] + 3)


def _refined(automaton: _Automaton, pairs: np.ndarray) -> np.ndarray:
    """Return the pairs of a sub-cell of the earlier and one of the later cell, in units of the sub-cells."""
    earlier, later = pairs[:, :2].astype(np.int64).T
    base, cells, succ = automaton.base, automaton.cells, automaton.succ
    n, dim = cells.shape[1:]
    position = np.arange(n)
    children = np.empty((len(pairs), n, n, dim + 3))
    children[..., 0] = succ[earlier][:, :, None]
    children[..., 1] = succ[later][:, None, :]
    children[..., 2:-1] = base * pairs[:, None, None, 2:-1]
    children[..., 2:-1] += cells[later][:, None, :] - cells[earlier][:, :, None]
    children[..., -1] = n * pairs[:, -1, None, None] + (n - 1 - position[:, None]) + position
    return children.reshape(-1, dim + 3)


def _bound(pairs: np.ndarray, norm: float) -> np.ndarray:
    """Bound the dilation between any two points of each pair of cells from above."""
    return _power(np.abs(pairs[:, 2:-1]) + 1, norm) / pairs[:, -1]


def _between_corners(automaton: _Automaton, pairs: np.ndarray, norm: float) -> float:
    """Compute the largest dilation between a corner of the earlier and one of the later cell."""
    earlier, later = pairs[:, :2].astype(np.int64).T
    corners, times = automaton.corners, automaton.times
    apart = pairs[:, None, None, 2:-1] + corners - corners[:, None]
    lag = pairs[:, -1, None, None] + 1 + times[later][:, None, :] - times[earlier][:, :, None]
    return float((_power(apart, norm) / lag).max())


def _power(apart: np.ndarray, norm: float) -> np.ndarray:
    """Compute |apart|**dim over the last axis."""
    return np.linalg.norm(apart, norm, axis=-1) ** apart.shape[-1]
