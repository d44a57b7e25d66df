"""Measures of an order of vertices, by their definitions, and beside scipy's orders of sparse matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

import sfc
from sfc.locality import bandwidth, edge_cut, edge_length


@st.composite
def graphs(draw):
    """An order of up to 12 vertices, and edges of them."""
    n = draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    return draw(st.permutations(range(n))), draw(st.lists(st.tuples(vertex, vertex), max_size=20))


@given(graphs(), st.integers(1, 12))
def test_they_are_their_definitions(graph, parts):
    order, edges = graph
    parts = min(parts, len(order))
    at = {vertex: k for k, vertex in enumerate(order)}
    lengths = [abs(at[a] - at[b]) for a, b in edges]
    ends = np.array(edges, int).reshape(-1, 2)
    assert bandwidth(order, ends) == max(lengths, default=0)
    found = edge_length(order, ends)
    assert (found.exact, found.error, found.samples) == (True, 0.0, len(edges))
    if edges:
        assert found.mean == pytest.approx(np.mean(lengths))
        assert found.worst == max(lengths)
    else:
        assert np.isnan(found.mean)
    part = [k * parts // len(order) for k in range(len(order))]
    assert edge_cut(order, ends, parts) == sum(part[at[a]] != part[at[b]] for a, b in edges)


def grid_graph(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells of a square in shuffled order, and the pairs that share a face."""
    cells = np.argwhere(np.ones((side, side))).astype(float)
    number = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [np.stack([number[1:], number[:-1]], -1), np.stack([number.T[1:], number.T[:-1]], -1)]
    ).reshape(-1, 2)
    new = np.random.default_rng(1).permutation(side * side)
    shuffled = np.empty_like(cells)
    shuffled[new] = cells
    return shuffled, new[edges]


def test_a_matrix_has_each_edge_once():
    points, edges = grid_graph(8)
    entries = np.ones(len(edges))
    matrix = sparse.coo_matrix((entries, edges.T), shape=(64, 64))
    order = sfc.argsort(points, "hilbert", 3)
    for given_matrix in (matrix, matrix.T, matrix + matrix.T, (matrix + sparse.eye(64)).tocsr()):
        assert edge_length(order, given_matrix) == edge_length(order, edges)
        assert edge_cut(order, given_matrix) == edge_cut(order, edges)


def test_a_curve_shortens_edges_and_rows_have_the_least_bandwidth():
    points, edges = grid_graph(32)
    shuffled, hilbert = np.arange(len(points)), sfc.argsort(points, "hilbert")
    rows = np.lexsort(points.T)
    assert bandwidth(rows, edges) == 32
    matrix = sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=2 * (len(points),))
    known = reverse_cuthill_mckee(sparse.csr_matrix(matrix + matrix.T), symmetric_mode=True)
    assert bandwidth(known, edges) <= 48
    assert bandwidth(hilbert, edges) > 500
    assert edge_length(hilbert, edges).mean < edge_length(shuffled, edges).mean / 8
    assert edge_cut(hilbert, edges, 4) == 64  # four squares of 16 x 16, each with two others
    assert edge_cut(rows, edges, 4) == 96
    assert edge_cut(shuffled, edges, 4) > 1000


@pytest.mark.parametrize(
    ("order", "edges", "message"),
    [
        ([0, 1, 1], [[0, 1]], r"order\[2\] = 1; allowed: each number from 0 to 2 once; sfc.argsort"),
        ([0, 3, 1], [[0, 1]], r"order\[1\] = 3"),
        ([0, -1], [[0, 1]], r"order\[1\] = -1"),
        ([[0, 1]], [[0, 1]], r"order of shape \(1, 2\)"),
        ([0.5, 1.0], [[0, 1]], "order of dtype float64"),
        ([0, 1], [[0, 1], [1, 2]], r"edges\[1\] = \[1, 2\]; allowed: vertices of the order, 0 to 1"),
        ([0, 1], [[0, -1]], r"edges\[0\] = \[0, -1\]"),
        ([0, 1], [0, 1], r"edges of shape \(2,\)"),
    ],
)
def test_what_is_refused(order, edges, message):
    for measure in (bandwidth, edge_length, edge_cut):
        with pytest.raises(ValueError, match=message):
            measure(order, edges)


def test_a_number_of_parts_that_is_refused():
    for parts in (0, 3):
        with pytest.raises(ValueError, match=rf"parts = {parts}"):
            edge_cut([1, 0], [[0, 1]], parts)
