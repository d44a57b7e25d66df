"""Curves of other packages, each tested if it is installed: which axes to swap for equal indices."""

import itertools

import numpy as np
import pytest

import sfc


def cells_of(order: int, dim: int) -> np.ndarray:
    """All cells of the grid."""
    return np.ascontiguousarray(np.indices((2**order,) * dim).reshape(dim, -1).T)


def axes_of(cells: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(axis) for axis in cells.T.astype(np.uint32)]


def is_a_symmetry_of_a_curve(index: np.ndarray, order: int, dim: int, name: str) -> bool:
    """Whether an index of all cells is that of a curve, with axes swapped or mirrored, or run backwards."""
    cells, last = cells_of(order, dim), 2 ** (dim * order) - 1
    for axes in itertools.permutations(range(dim)):
        for mirrored in itertools.product((False, True), repeat=dim):
            swapped = np.where(mirrored, 2**order - 1 - cells[:, axes], cells[:, axes])
            found = sfc.curve(name, dim).encode(swapped, order)
            if np.array_equal(found, index) or np.array_equal(last - found, index):
                return True
    return False


@pytest.mark.parametrize("order", [1, 2, 3, 6, 7])
def test_hilbertsfc_in_2d_swaps_the_axes_at_odd_orders(order):
    hilbertsfc = pytest.importorskip("hilbertsfc")
    cells = cells_of(order, 2)
    found = hilbertsfc.hilbert_encode_2d(*axes_of(cells), nbits=order)
    ours = sfc.curve("hilbert", 2).encode(cells[:, ::-1] if order % 2 else cells, order)
    np.testing.assert_array_equal(found, ours)


@pytest.mark.parametrize(("dim", "order"), [(2, 5), (3, 4)])
def test_hilbertsfc_has_the_same_morton_order(dim, order):
    hilbertsfc = pytest.importorskip("hilbertsfc")
    encode = {2: hilbertsfc.morton_encode_2d, 3: hilbertsfc.morton_encode_3d}[dim]
    cells = cells_of(order, dim)
    np.testing.assert_array_equal(
        encode(*axes_of(cells), nbits=order), sfc.curve("morton", dim).encode(cells, order)
    )


@pytest.mark.parametrize("order", [1, 2, 5, 6])
def test_skillings_curve_in_2d_is_hilberts(order):
    skilling = pytest.importorskip("hilbert")  # of numpy-hilbert-curve
    cells = cells_of(order, 2)
    np.testing.assert_array_equal(
        skilling.encode(cells, 2, order), sfc.curve("hilbert", 2).encode(cells, order)
    )


@pytest.mark.parametrize("order", [2, 3, 4])
def test_skillings_curve_in_3d_is_ours_of_that_name(order):
    skilling = pytest.importorskip("hilbert")  # of numpy-hilbert-curve
    cells = cells_of(order, 3)
    np.testing.assert_array_equal(
        skilling.encode(cells, 3, order), sfc.curve("skilling", 3).encode(cells, order)
    )


@pytest.mark.parametrize("name", ["hilbert", "butz"])
def test_skillings_curve_in_3d_is_another(name):
    skilling = pytest.importorskip("hilbert")  # of numpy-hilbert-curve
    assert not is_a_symmetry_of_a_curve(skilling.encode(cells_of(2, 3), 3, 2), 2, 3, name)


@pytest.mark.parametrize("name", ["hilbert", "butz"])
def test_the_curve_of_hilbertsfc_in_3d_is_another(name):
    hilbertsfc = pytest.importorskip("hilbertsfc")
    found = hilbertsfc.hilbert_encode_3d(*axes_of(cells_of(2, 3)), nbits=2)
    assert not is_a_symmetry_of_a_curve(found, 2, 3, name)


def test_a_symmetry_is_found():
    cells = cells_of(2, 3)
    index = sfc.curve("butz", 3).encode(np.where((True, False, False), 3 - cells, cells)[:, [2, 0, 1]], 2)
    assert is_a_symmetry_of_a_curve(63 - index.astype(np.int64), 2, 3, "butz")
    assert not is_a_symmetry_of_a_curve(index, 2, 3, "hilbert")


@pytest.mark.parametrize("level", [1, 4, 5])
@pytest.mark.parametrize("face", range(6))
def test_odd_faces_of_s2_swap_the_axes(face, level):
    s2sphere = pytest.importorskip("s2sphere")
    cells = cells_of(level, 2)
    leaves = s2sphere.CellId.MAX_LEVEL - level
    found = [
        s2sphere.CellId.from_face_ij(face, i << leaves, j << leaves).parent(level).pos() >> (2 * leaves + 1)
        for i, j in cells.tolist()
    ]
    ours = sfc.curve("hilbert", 2).encode(cells[:, ::-1] if face % 2 else cells, level)
    np.testing.assert_array_equal(np.array(found, np.uint64), ours)
