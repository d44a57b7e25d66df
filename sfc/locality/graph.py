"""Measures of an order of vertices: how far apart it puts the two vertices of an edge.

Bandwidth and edge length of an order: Chinn, Chvatalova, Dewdney and Gibbs, The bandwidth problem for graphs
and matrices, J. Graph Theory 6 (1982) 223.
"""

from typing import Any

import numpy as np

from sfc import checks
from sfc.locality.measure import Measure, exact_measure


def bandwidth(order: Any, edges: Any) -> int:
    """Compute the largest distance along an order of the two vertices of an edge; 0 without edges.

    Args:
        order: (n,) vertices in their order, such as of `sfc.argsort`: each number below n once.
        edges: (m, 2) vertices of each edge; or an adjacency matrix of `scipy.sparse`, each pair of vertices
            with an entry in either direction once.

    Raises:
        TypeError: an argument that makes no array.
        ValueError: an order that is no permutation, or an edge of a vertex that is not in it.

    Example:
        >>> import sfc
        >>> sfc.locality.bandwidth([0, 2, 1], [[0, 1], [1, 2]])
        2
    """
    lengths = _lengths(order, edges)
    return int(lengths.max()) if len(lengths) else 0


def edge_length(order: Any, edges: Any) -> Measure:
    """Compute the distance along an order of the two vertices of an edge: its mean, and the bandwidth.

    Args:
        order: as for `bandwidth`.
        edges: as for `bandwidth`.

    Returns:
        An exact measure; its mean and worst are NaN without edges.

    Raises:
        TypeError: as `bandwidth`.
        ValueError: as `bandwidth`.
    """
    lengths = _lengths(order, edges)
    return exact_measure(lengths, lengths, len(lengths))


def edge_cut(order: Any, edges: Any, parts: int = 2) -> int:
    """Count the edges between different parts of an order, cut into parts of equal numbers of vertices.

    Args:
        order: as for `bandwidth`.
        edges: as for `bandwidth`.
        parts: number of parts, up to the number of vertices; vertex k of the order is in part k parts // n.

    Raises:
        TypeError: as `bandwidth`, or a number of parts that is no integer.
        ValueError: as `bandwidth`, or a number of parts out of range.
    """
    positions = _positions(order)
    n = len(positions)
    parts = checks.integer("parts", parts, 1, max(1, n), remedy="a part has a vertex at least")
    part = positions[_edges_of(edges, n)] * parts // max(1, n)
    return int((part[:, 0] != part[:, 1]).sum())


def _lengths(order: Any, edges: Any) -> np.ndarray:
    positions = _positions(order)
    ends = positions[_edges_of(edges, len(positions))]
    return np.abs(ends[:, 0] - ends[:, 1])


def _positions(order: Any) -> np.ndarray:
    """Return the (n,) position of each vertex in an order, after checking that it is a permutation."""
    given = checks.array("order", order, "iu", checks.INTEGERS, ("n",))
    n = len(given)
    first = np.unique(given, return_index=True)[1]  # where each vertex is for the first time
    wrong = (given < 0) | (given >= n) | ~np.isin(np.arange(n), first)
    if wrong.any():
        k, allowed = int(wrong.argmax()), f"each number from 0 to {n - 1} once"
        raise checks.refuse_value(f"order[{k}]", int(given[k]), allowed, "sfc.argsort makes an order")
    positions = np.empty(n, np.int64)
    positions[given] = np.arange(n)
    return positions


def _edges_of(edges: Any, n: int) -> np.ndarray:
    """Return the (m, 2) int64 vertices of edges."""
    if hasattr(edges, "tocoo"):
        entries = edges.tocoo()
        ends = np.sort(np.column_stack([entries.row, entries.col]).astype(np.int64), axis=1)
        found = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    else:
        found = checks.array("edges", edges, "iu", checks.INTEGERS, ("m", 2))
    wrong = ((found < 0) | (found >= n)).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise checks.refuse_value(
            f"edges[{row}]", found[row].tolist(), f"vertices of the order, 0 to {n - 1}"
        )
    return found.astype(np.int64)
