"""Curves on a device give the host's indices and cells, and refuse what the host refuses."""

import numpy as np
import pytest

import sfc
from tests.strategies import CURVES, INTEGER_DTYPES, MANY_DIMS, ORDERINGS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed", exc_type=ImportError)
    if not cupy.cuda.is_available():
        pytest.skip("no CUDA device is visible")
    return cupy


WITH_TABLES = [place for place in MANY_DIMS if isinstance(sfc.curve(*place), sfc.Curve)]


@pytest.mark.parametrize(("name", "dim"), CURVES + WITH_TABLES)
def test_encode_and_decode_are_the_hosts(cupy, name, dim):
    curve = sfc.curve(name, dim)
    generator = np.random.default_rng(0)
    for order in (0, 1, 2, 5, curve.max_order):
        length = curve.side(order) ** dim
        index = generator.integers(0, length - 1, 1000, dtype=np.uint64, endpoint=True)
        cells = curve.decode(index, order)
        assert np.array_equal(cupy.asnumpy(sfc.device.decode(curve, cupy.asarray(index), order)), cells)
        assert np.array_equal(cupy.asnumpy(sfc.device.encode(curve, cupy.asarray(cells), order)), index)


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_every_integer_dtype_is_taken(cupy, dtype):
    curve = sfc.curve("hilbert", 3)
    cells = curve.traversal(2)
    found = sfc.device.encode(curve, cupy.asarray(cells.astype(dtype)), 2)
    assert np.array_equal(cupy.asnumpy(found), np.arange(64))


@pytest.mark.quick
def test_what_the_host_refuses_is_refused_alike(cupy):
    curve = sfc.curve("hilbert", 2)
    bad = np.array([[0, 1], [0, 4], [-1, 0]])
    for call, where in ((curve.encode, np), (lambda c, o: sfc.device.encode(curve, c, o), cupy)):
        with pytest.raises(ValueError, match=r"cell \[0, 4\] in row 1 .* 0 <= cell < 4"):
            call(where.asarray(bad), 2)
    with pytest.raises(ValueError, match=r"index 16 in row 0 .* 0 <= index < 16"):
        sfc.device.decode(curve, cupy.asarray([16]), 2)
    for call, where in ((curve.decode, np), (lambda i, o: sfc.device.decode(curve, i, o), cupy)):
        with pytest.raises(ValueError, match=r"index -1 in row 1 is negative; allowed: 0 <= index < 16"):
            call(where.asarray([0, -1]), 2)
    with pytest.raises(ValueError, match="dtype float64"):
        sfc.device.encode(curve, cupy.zeros((2, 2)), 2)
    with pytest.raises(ValueError, match=r"cells of shape \(2, 3\); allowed: \(n, 2\)"):
        sfc.device.encode(curve, cupy.zeros((2, 3), int), 2)


def test_no_cells_give_no_index(cupy):
    curve = sfc.curve("peano", 2)
    assert len(sfc.device.encode(curve, cupy.zeros((0, 2), int), 3)) == 0
    assert sfc.device.decode(curve, cupy.zeros(0, int), 3).shape == (0, 2)


SHAPES = {1: (37,), 2: (13, 7), 3: (8, 12, 4), 4: (3, 5, 4, 2)}


@pytest.mark.parametrize(("name", "dim"), ORDERINGS)
def test_rank_is_the_hosts(cupy, name, dim):
    ordering = sfc.covering(name, SHAPES[dim])
    cells = np.stack(np.unravel_index(np.arange(ordering.size), ordering.shape), axis=1)
    found = sfc.device.rank(ordering, cupy.asarray(cells))
    assert found.dtype == np.uint64
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells))


def test_a_curve_without_tables_is_ranked_by_a_table_of_the_box(cupy):
    ordering = sfc.ordering("hilbert", (2,) * 9 + (3,))
    cells = np.stack(np.unravel_index(np.arange(ordering.size), ordering.shape), axis=1)
    found = sfc.device.rank(ordering, cupy.asarray(cells))
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells))


@pytest.mark.parametrize("name", ["hilbert", "row", "pancake"])
@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_rank_takes_every_integer_dtype_and_part_of_an_array(cupy, name, dtype):
    ordering = sfc.ordering(name, (8, 12, 4))
    cells = np.random.default_rng(0).integers(0, (8, 12, 4), (50, 3)).astype(dtype)
    found = sfc.device.rank(ordering, cupy.asarray(cells)[::2])
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells[::2]))


@pytest.mark.parametrize("name", ["hilbert", "zigzag"])
@pytest.mark.parametrize("cell", [[0, 7], [13, 0], [-1, 3], [2**40, 0]])
def test_rank_refuses_a_cell_outside_as_the_host_does(cupy, name, cell):
    ordering = sfc.ordering(name, (13, 7))
    cells = np.array([[0, 0], cell])
    for call, where in ((ordering.rank, np), (lambda c: sfc.device.rank(ordering, c), cupy)):
        with pytest.raises(ValueError, match=r"in row 1 is outside the box; allowed: 0 <= cell < \(13, 7\)"):
            call(where.asarray(cells))


def test_rank_of_no_cells_or_of_a_box_too_large_for_a_table(cupy):
    ordering = sfc.ordering("row", (2**20, 2**20))
    assert len(sfc.device.rank(sfc.ordering("row", (3, 4)), cupy.zeros((0, 2), int))) == 0
    with pytest.raises(ValueError, match=r"takes 8,796,093,022,208 bytes .* take a curve"):
        sfc.device.rank(ordering, cupy.zeros((1, 2), int))
