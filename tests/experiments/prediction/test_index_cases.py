"""Indices of workloads on points: the nearest points are those of a tree, an order only renames points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import sfc
from experiments.loads.index import gather_loads, scatter_loads, spmv_loads
from experiments.prediction.index_cases import KINDS, cells_of, index_case, nearest, points_in_order
from experiments.prediction.memory_orders import POINTS
from sfc import cache

ORDERINGS = ("shuffled", "lattice", "hilbert", *POINTS)


@given(st.integers(2, 400), st.integers(1, 40), st.sampled_from(ORDERINGS), st.integers(0, 2**32))
def test_a_gather_reads_the_nearest_others(n, reads, ordering, seed):
    reads = min(reads, n - 1)
    index, points = index_case("gather", n, reads, ordering, seed), points_in_order(n, ordering, seed)
    assert index.shape == (n, reads)
    assert index.dtype == np.int32
    assert not (index == np.arange(n)[:, None]).any()
    assert all(len(set(row)) == reads for row in index.tolist())
    distances = np.linalg.norm(points[index] - points[:, None], axis=2)
    assert distances == pytest.approx(cKDTree(points).query(points, reads + 1)[0].reshape(n, -1)[:, 1:])


@pytest.mark.parametrize("points", [np.full((9, 3), 0.5), np.ones((9, 3)), np.eye(3)])
def test_points_at_the_same_place_or_on_a_face_are_found(points):
    index = nearest(points, len(points) - 1)
    assert np.array_equal(np.sort(index, axis=1), [[j for j in range(len(points)) if j != i]
                                                   for i in range(len(points))])  # fmt: skip


def test_points_far_from_all_others_are_found():
    cluster = 0.01 * np.random.default_rng(0).random((500, 3))
    points = np.concatenate([cluster, [[0.99, 0.99, 0.99]]])
    distances = np.linalg.norm(points[nearest(points, 3)] - points[:, None], axis=2)
    assert distances == pytest.approx(cKDTree(points).query(points, 4)[0][:, 1:])


def test_an_order_renames_the_same_points():
    n, seed = 500, 3
    shuffled, ordered = (points_in_order(n, one, seed) for one in ("shuffled", "hilbert"))
    order = sfc.argsort(shuffled, "hilbert", box=(0, 1))
    assert np.array_equal(ordered, shuffled[order])
    assert np.array_equal(sfc.argsort(ordered, "hilbert", box=(0, 1)), np.arange(n))
    named = np.argsort(order)
    gather = [index_case("gather", n, 6, one, seed) for one in ("shuffled", "hilbert")]
    assert np.array_equal(named[gather[0]][order], gather[1])
    scatter = [index_case("scatter", n, 6, one, seed) for one in ("shuffled", "hilbert")]
    assert np.array_equal(scatter[0][order], scatter[1])
    there = [index_case("spmv", n, 6, one, seed).toarray() > 0 for one in ("shuffled", "hilbert")]
    assert np.array_equal(there[0][order][:, order], there[1])
    assert not np.array_equal(gather[0], index_case("gather", n, 6, "shuffled", seed + 1))


def test_strided_points_are_of_cells_of_about_two():
    n = 2 * 7**3
    shuffled, strided = (points_in_order(n, name, 4) for name in ("shuffled", "strided"))
    cells = cells_of(shuffled[:, ::-1], 7)  # axis 0 fastest
    filled = len(np.unique(cells))
    assert np.array_equal(cells_of(strided[:filled, ::-1], 7), np.unique(cells))
    assert np.array_equal(strided, shuffled[sfc.argsort(shuffled, "strided", cells=7, box=(0, 1))])
    tiled = points_in_order(n, "tiled_strided", 4)
    assert np.array_equal(tiled, shuffled[sfc.argsort(shuffled, "tiled_strided", cells=7, box=(0, 1))])


def test_tiles_are_of_the_default_capacity():
    shuffled, tiled = (points_in_order(2000, name, 4) for name in ("shuffled", "str"))
    assert np.array_equal(tiled, shuffled[sfc.argsort(shuffled, "str", capacity=32)])


@pytest.mark.parametrize("n", [1, 8, 27, 30, 63, 64])
def test_a_lattice_is_in_row_order(n):
    points = points_in_order(n, "lattice")
    side = next(k for k in range(1, 5) if k**3 >= n)
    sites = [(x, y, z) for x in range(side) for y in range(side) for z in range(side)]
    assert points * side - 0.5 == pytest.approx(np.array(sites[:n]), abs=1e-12)


def test_inside_a_lattice_six_points_are_nearest():
    index = index_case("gather", 5**3, 6, "lattice")
    assert sorted(index[62].tolist()) == [62 - 25, 62 - 5, 61, 63, 62 + 5, 62 + 25]


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_a_scatter_adds_points_to_their_cells(ordering):
    index, points = index_case("scatter", 4000, 4, ordering, 5), points_in_order(4000, ordering, 5)
    for cell, (x, y, z) in zip(index, (points * 10).astype(int), strict=True):
        assert cell == 100 * x + 10 * y + z
    assert index.dtype == np.int32
    assert index.max() < 1000


def test_the_upper_faces_belong_to_the_last_cells():
    assert cells_of(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), 3).tolist() == [26, 2]


def test_a_matrix_has_the_pairs_of_near_points_both_ways():
    n, reads = 300, 5
    index, matrix = (index_case(kind, n, reads, "morton", 1) for kind in ("gather", "spmv"))
    expected = np.zeros((n, n), bool)
    expected[np.arange(n)[:, None], index] = True
    expected |= expected.T
    assert np.array_equal(matrix.toarray() != 0, expected)
    assert not expected.diagonal().any()
    assert matrix.has_canonical_format
    assert (matrix.indices.dtype, matrix.dtype) == (np.int32, np.float64)
    assert 0 < matrix.data.min() < 0.1 < 0.9 < matrix.data.max() < 1
    assert len(np.unique(matrix.data)) == matrix.nnz


@pytest.mark.parametrize(("ordering", "most"), [("hilbert", 0.85), ("str", 0.9)])
@pytest.mark.parametrize(
    ("kind", "stream"), [("gather", gather_loads), ("scatter", scatter_loads), ("spmv", spmv_loads)]
)
def test_a_curve_and_tiles_save_sectors(kind, stream, ordering, most):
    ordered, shuffled = (
        cache.warps(stream(index_case(kind, 2**13, 8, one))) for one in (ordering, "shuffled")
    )
    taken = [one.read.mean + one.written.mean + one.added.mean for one in (ordered, shuffled)]
    assert taken[0] < most * taken[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("sort", 9, 2, "hilbert"), "unknown kind 'sort'; allowed: one of gather, scatter, spmv"),
        (("gather", 0, 2, "hilbert"), "n = 0; allowed: .*1"),
        (("gather", 9, 9, "hilbert"), "reads = 9; allowed: .*up to 8.*take more points, or fewer reads"),
        (("spmv", 999, 257, "hilbert"), "reads = 257; allowed: .*up to 256"),
        (("scatter", 9, 10, "hilbert"), "reads = 10; allowed: .*up to 9"),
        (("gather", 2**29, 4, "hilbert"), r"n \* reads = 2147483648; allowed: .*up to 2147483647.*fewer"),
        (("spmv", 2**28, 4, "hilbert"), r"n \* reads = 1073741824; allowed: .*up to 1073741823.*fewer"),
        (("gather", 9, 2, "row"), "ordering 'row'; allowed: shuffled, lattice, .*hilbert"),
        (("gather", 9, 2, "hilbert", -1), "seed = -1; allowed"),
    ],
)
def test_bad_input_is_named_with_what_is_allowed(given, message):
    with pytest.raises(ValueError, match=message):
        index_case(*given)


def test_every_kind_is_drawn_in_every_order():
    for kind in KINDS:
        for ordering in (*ORDERINGS, *sfc.curves(3)):
            assert len(index_case(kind, 30, 2, ordering).shape) == (1 if kind == "scatter" else 2)
