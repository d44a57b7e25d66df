"""Stand-ins for a user's code: what they compute, and that no order changes it."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import cKDTree

from experiments.advice import kernels
from experiments.advice.uses import CELLS, CODES, CUTOFF, MATRIX, NEIGHBOURS, ON_GPU, OWN, TRACE, Use
from md.errors import BackendUnavailableError

N = 600


def marked(*given: str):
    """Parameters of a test, which needs a GPU if one of them does."""
    return pytest.param(*given, marks=[pytest.mark.gpu] if {*given} & {*ON_GPU} else [])


KINDS = [marked(kind, code) for kind, codes in CODES.items() for code in codes if kind != OWN]


def codes_of(kind: str, without: str = ""):
    """Kinds of code of a use, but for one."""
    return [marked(code) for code in CODES[kind] if code != without]


def use_of(kind: str, code: str, dim: int = 3, boxed: bool = False) -> Use:
    random = np.random.default_rng(3)
    points = random.random((N, dim)) * 10
    options: dict = {"points": points}
    if kind == CUTOFF:
        options |= {"reach": 1.4}
        if boxed:
            options |= {"lengths": np.full(dim, 10.0), "periodic": (True,) * dim}
    elif kind == NEIGHBOURS:
        options |= {"reach": 5}
    elif kind == CELLS:
        options |= {"cells": random.integers(0, N, (2000, 3))}
    elif kind == MATRIX:
        options = {"matrix": scipy.sparse.random_array((N, N), density=0.01, rng=random, format="csr")}
    else:
        options = {"trace": random.integers(0, N, 5000)}
    return Use(kind, code, N, **options)


def result_of(use: Use, order: np.ndarray | None = None) -> np.ndarray:
    work = use.arrange(order)
    return work.result(work.run(*work.arrays))


@pytest.mark.parametrize(("kind", "code"), KINDS)
def test_no_order_changes_what_is_computed(kind, code):
    use = use_of(kind, code)
    given, found = use.arrange(None), result_of(use)
    assert found.any()
    for order in (np.arange(N)[::-1].copy(), np.random.default_rng(1).permutation(N)):
        np.testing.assert_allclose(result_of(use, order), found, rtol=1e-9)
        for one, other in zip(given.arrays, use.arrange(order).arrays, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)


@pytest.mark.parametrize(("kind", "code"), KINDS)
def test_a_use_works_on_arrays_wherever_they_lie(kind, code):
    use, order = use_of(kind, code), np.random.default_rng(1).permutation(N)
    work, memory = use.arrange(order), use.arrange(None)
    for place, one in zip(memory.arrays, work.arrays, strict=True):
        np.copyto(place, one)
    found = work.result(work.run(*memory.arrays))
    np.testing.assert_allclose(found, result_of(use, order), rtol=1e-12 if code in ON_GPU else 0)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("code", codes_of(CUTOFF))
def test_sums_within_a_cutoff_are_those_of_all_pairs(code, dim, boxed):
    use = use_of(CUTOFF, code, dim, boxed)
    apart = use.points[:, None] - use.points
    if boxed:
        apart -= 10 * np.round(apart / 10)
    far = np.sqrt((apart**2).sum(axis=2))
    np.fill_diagonal(far, np.inf)
    right = np.where(far < use.reach, 1 - far / use.reach, 0).sum(axis=1)
    if code == "scipy":
        assert np.array_equal(result_of(use), (far < use.reach).sum(axis=1))
    else:
        np.testing.assert_allclose(result_of(use), right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("code", codes_of(CUTOFF, "scipy"))
def test_spheres_of_two_sizes_are_neighbours_within_the_sum_of_their_radii(code):
    points, order = use_of(CUTOFF, code).points, np.random.default_rng(1).permutation(N)
    radii = np.where(np.arange(N) % 3, 0.3, 0.7)
    far = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    np.fill_diagonal(far, np.inf)
    right = np.maximum(1 - far / (radii[:, None] + radii), 0).sum(axis=1)
    use = Use(CUTOFF, code, N, points=points, reach=1.4, radii=radii)
    for found in (result_of(use), result_of(use, order)):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
    assert "the sum of their radii" in use.in_words


@pytest.mark.parametrize("code", codes_of(CUTOFF))
def test_a_point_just_outside_a_periodic_side_is_inside(code):
    use, box = use_of(CUTOFF, code, boxed=True), {"lengths": np.full(3, 10.0), "periodic": (True,) * 3}
    points = use.points.copy()
    points[0], points[1] = [-1e-18, *points[0, 1:]], [10, *points[1, 1:]]
    right = points.copy()
    right[:2, 0] = 0
    found, expected = (
        result_of(Use(CUTOFF, code, N, points=one, reach=1.4, **box)) for one in (points, right)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    points[5] += 10  # a box away
    again = result_of(Use(CUTOFF, code, N, points=points, reach=1.4, **box))
    np.testing.assert_allclose(again, expected, rtol=1e-9)


@pytest.mark.parametrize("code", codes_of(CUTOFF))
def test_points_of_single_precision_are_doubles(code):
    use = use_of(CUTOFF, code)
    single = Use(CUTOFF, code, N, points=use.points.astype(np.float32), reach=1.4)
    assert {one.dtype for one in single.arrange(None).arrays} == {
        one.dtype for one in use.arrange(None).arrays
    }
    np.testing.assert_allclose(result_of(single), result_of(use), atol=1e-4)


def test_points_of_radius_0_at_one_place_do_not_touch():
    points = np.random.default_rng(0).random((N, 3))
    points[1] = points[0]
    radii = np.where(np.arange(N) < 2, 0.0, 0.05)
    for code in ("compiled", "numpy"):
        assert np.isfinite(result_of(Use(CUTOFF, code, N, points=points, reach=0.1, radii=radii))).all()


def test_a_stray_point_decides_no_cells():
    points = np.random.default_rng(0).random((20_000, 3)) * 10
    points[7] = 1e30
    use = Use(CUTOFF, "compiled", len(points), points=points, reach=0.5)
    found = result_of(use)
    pairs = cKDTree(np.delete(points, 7, axis=0)).count_neighbors(cKDTree(np.delete(points, 7, axis=0)), 0.5)
    assert (found > 0).sum() > 0.9 * len(points)
    assert found[7] == 0
    assert pairs > len(points)


@pytest.mark.parametrize("code", codes_of(NEIGHBOURS))
def test_distances_are_those_of_the_nearest(code):
    use = use_of(NEIGHBOURS, code)
    right = np.sort(np.linalg.norm(use.points[:, None] - use.points, axis=2), axis=1)[:, 1:6].sum(axis=1)
    found = result_of(use)
    np.testing.assert_allclose(found, right, rtol=1e-9)


@pytest.mark.parametrize("code", codes_of(CELLS))
def test_cells_add_the_mean_of_their_items_to_each(code):
    use = use_of(CELLS, code)
    right = np.zeros(N)
    assert use.values.shape == (N, use.item_bytes // 8)
    np.add.at(right, use.cells, use.values.sum(axis=1)[use.cells].mean(axis=1)[:, None])
    found = result_of(use)
    np.testing.assert_allclose(found, right, rtol=1e-9)


@pytest.mark.parametrize("code", codes_of(MATRIX))
def test_a_product_is_that_of_the_matrix(code):
    use = use_of(MATRIX, code)
    found = result_of(use, np.random.default_rng(5).permutation(N))
    np.testing.assert_allclose(found, use.matrix @ use.values, rtol=1e-9)


@pytest.mark.parametrize("code", codes_of(MATRIX))
def test_indices_of_64_bits_are_those_of_32(code):
    use = use_of(MATRIX, code)
    use.matrix.indptr, use.matrix.indices = (
        one.astype(np.int64) for one in (use.matrix.indptr, use.matrix.indices)
    )
    for order in (None, np.random.default_rng(5).permutation(N)):
        np.testing.assert_allclose(result_of(use, order), use.matrix @ use.values, rtol=1e-9)


@pytest.mark.parametrize("code", codes_of(TRACE, "cuda"))
def test_a_trace_reads_each_item_as_often_as_it_says(code):
    use = use_of(TRACE, code)
    found = result_of(use, np.random.default_rng(5).permutation(N))
    sums = [(0.5 * (use.trace + k)).sum() for k in range(8)]
    np.testing.assert_allclose(found, sums, rtol=1e-9)


@pytest.mark.gpu
def test_each_read_of_a_trace_has_a_sum_on_a_gpu():
    use = use_of(TRACE, "cuda")
    found = result_of(use, np.random.default_rng(5).permutation(N))
    np.testing.assert_allclose(found, 0.5 * (8 * use.trace + np.arange(8).sum()), rtol=1e-12)


def test_code_on_a_gpu_needs_one(monkeypatch):
    monkeypatch.setattr("md.backend.why_not", lambda: "no CUDA device is visible")
    with pytest.raises(BackendUnavailableError, match="no CUDA device is visible"):
        use_of(CELLS, "cuda")


def test_cells_are_sorted_in_another_order_and_stay_in_that_of_the_file(monkeypatch):
    seen = []
    monkeypatch.setattr(kernels, "cell_sums", lambda values, cells, out: seen.append(cells))
    use = use_of(CELLS, "compiled")
    order = np.random.default_rng(1).permutation(N)
    for one in (None, order):
        result_of(use, one)
    assert np.array_equal(seen[0], use.cells)
    assert (np.diff(seen[1].min(axis=1)) >= 0).all()
    named = sorted(map(tuple, order[seen[1]].tolist()))
    assert named == sorted(map(tuple, use.cells.tolist()))


def test_a_function_of_ones_own_gets_its_arrays_in_order():
    seen = []
    points, masses = np.random.default_rng(0).random((N, 3)), np.arange(N)
    use = Use(OWN, OWN, N, points=points, function=lambda *given: seen.append(given), arrays=(points, masses))
    order = np.random.default_rng(1).permutation(N)
    result_of(use, order)
    ((pos, mass),) = seen
    assert np.array_equal(pos, points[order])
    assert np.array_equal(mass, order)


@pytest.mark.parametrize(("kind", "code", "message"), [
    ("cutoffs", "numpy", "kind"), (MATRIX, "numpy", "code of matrix.*compiled, scipy"),
])  # fmt: skip
def test_an_unknown_kind_or_code_is_refused(kind, code, message):
    with pytest.raises(ValueError, match=message):
        Use(kind, code, N)
