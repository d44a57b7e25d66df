"""What is taken for an order, for cells, indices and ranks, and how much is listed."""

import tracemalloc

import numpy as np
import pytest

import sfc
from tests.strategies import INTEGER_DTYPES
from tests.tiers import product

BOXES = [("hilbert", (4, 4)), ("hilbert", (4, 3)), ("row", (4, 3)), ("gilbert", (4, 3)), ("peano", (9, 9))]


@pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
@pytest.mark.parametrize("name", ["hilbert", "peano"])
def test_an_order_of_any_integer_dtype_is_taken(name, dtype):
    curve = sfc.curve(name, 2)
    cells = curve.traversal(3)
    order = dtype.type(3)
    assert np.array_equal(curve.traversal(order), cells)
    assert np.array_equal(curve.encode(cells, order), np.arange(len(cells)))
    assert np.array_equal(curve.decode(np.arange(len(cells)), order), cells)
    assert curve.side(order) == curve.base**3


@pytest.mark.parametrize(
    ("name", "shape", "dtype"), product(BOXES, [np.float16, np.float32, float, *INTEGER_DTYPES], every=3)
)
def test_nothing_of_any_real_dtype_gives_nothing(name, shape, dtype):
    none = np.empty((0, 2), dtype)
    ordering = sfc.ordering(name, shape)
    assert (ordering.rank(none).shape, ordering.rank(none).dtype) == ((0,), np.uint64)
    if ordering.is_dense:
        assert (ordering.cells(none[:, 0]).shape, ordering.cells(none[:, 0]).dtype) == ((0, 2), np.int64)
    if ordering.curve:
        curve, order = ordering.curve
        assert (curve.encode(none, order).shape, curve.encode(none, order).dtype) == ((0,), np.uint64)
        assert curve.decode([], order).shape == (0, 2)


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [complex, object, "U3"])
def test_nothing_of_another_dtype_is_refused(dtype):
    with pytest.raises(ValueError, match=r"cells of dtype .*; allowed: any integer dtype"):
        sfc.curve("hilbert", 2).encode(np.empty((0, 2), dtype), 3)


@pytest.mark.parametrize(("dim", "order"), [(3, 21), (2, 32), (2, 19)])
def test_a_traversal_that_no_memory_holds_is_refused_with_the_remedy(dim, order):
    count = 2 ** (dim * order)
    message = rf"order {order}, {count} cells: {8 * dim * count:,} bytes .*; allowed: up to .* bytes .*chunks"
    with pytest.raises(ValueError, match=message):
        sfc.curve("hilbert", dim).traversal(order)


def peak_of(call) -> tuple[int, np.ndarray]:
    """Bytes held at most while something is made, and that."""
    tracemalloc.start()
    try:
        made = call()
        return tracemalloc.get_traced_memory()[1], made
    finally:
        tracemalloc.stop()


@pytest.mark.quick
def test_a_traversal_is_made_in_place():
    curve = sfc.curve("hilbert", 2)
    curve.traversal(3)
    peak, made = peak_of(lambda: curve.traversal(11))
    assert peak < 1.2 * made.nbytes
