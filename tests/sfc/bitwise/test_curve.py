"""`BitwiseCurve`: what it refuses, and that it travels."""

import pickle

import numba
import numpy as np
import pytest

import sfc
from sfc.bitwise import BitwiseCurve
from sfc.curves.morton import decode, encode
from tests.tiers import full


@pytest.mark.quick
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"name": 3}, TypeError, "name = 3"),
        ({"name": ""}, ValueError, "name = ''"),
        ({"dim": 2.0}, TypeError, "dim = 2.0"),
        ({"dim": 0}, ValueError, "dim = 0; allowed: an integer of at least 1, up to 64"),
        ({"dim": 65}, ValueError, "dim = 65; allowed: an integer of at least 1, up to 64"),
        ({"encode": "encode"}, TypeError, r"encode = .*a function of \(cells, order, masks, index\)"),
        ({"decode": None}, TypeError, r"decode = .*a function of \(index, order, masks, cells\)"),
        ({"encode": numba.njit(parallel=True)(encode.py_func)}, ValueError, "encode = .* has parallel loops"),
        ({"is_continuous": 1}, TypeError, "is_continuous = 1"),
        ({"is_closed": None}, TypeError, "is_closed = None"),
    ],
)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        BitwiseCurve(**({"name": "own", "dim": 2, "encode": encode, "decode": decode} | given))


@pytest.mark.quick
def test_a_curve_of_one_s_own_is_used_as_any_other():
    own = BitwiseCurve("own", 3, encode, decode)
    morton = sfc.curve("morton", 3)
    assert not own.is_continuous
    assert np.array_equal(own.traversal(3), morton.traversal(3))
    points = np.random.default_rng(0).random((500, 3))
    assert np.array_equal(sfc.keys(points, own), sfc.keys(points, morton))
    ordering = sfc.ordering(own, (3, 5, 2))
    sfc.testing.check_ordering(ordering)
    assert np.array_equal(ordering.traversal(), sfc.ordering(morton, (3, 5, 2)).traversal())
    sfc.testing.check_curve(own, continuous=False, closed=False)


def test_a_false_promise_is_found_by_check_curve():
    with pytest.raises(AssertionError, match="own in 3D, order 1: a step is not one cell"):
        sfc.testing.check_curve(BitwiseCurve("own", 3, encode, decode, is_continuous=True))
    with pytest.raises(AssertionError, match="own in 3D, order 1: the ends do not meet"):
        sfc.testing.check_curve(BitwiseCurve("own", 3, encode, decode, is_closed=True))


@pytest.mark.parametrize("name", ["skilling", full("hilbert"), full("gray"), full("morton")])
def test_a_pickled_curve_is_the_same_curve(name):
    curve = sfc.curve(name, 9)
    again = pickle.loads(pickle.dumps(curve))
    assert (again.name, again.dim, again.base, again.grammar) == (name, 9, 2, None)
    assert (again.is_continuous, again.is_closed) == (curve.is_continuous, curve.is_closed)
    assert np.array_equal(again.decode(np.arange(999), 7), curve.decode(np.arange(999), 7))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.uint64, ">i4"])
def test_given_arrays_are_filled_whatever_their_dtype_and_layout(dtype):
    curve = sfc.curve("skilling", 10)
    cells = curve.decode(np.arange(200), 2)
    index = curve.encode(cells, 2)
    for out in (np.zeros((200, 10), dtype), np.zeros((10, 200), dtype).T, np.zeros((200, 20), dtype)[:, ::2]):
        assert curve.decode(index, 2, out=out) is out
        assert np.array_equal(out, cells)
    if np.dtype(dtype).itemsize > 1:
        for out in (np.zeros(200, f"{np.dtype(dtype).byteorder}u8"), np.zeros(400, np.uint64)[::2]):
            assert curve.encode(cells, 2, out=out) is out
            assert np.array_equal(out, index)
    same = cells.copy()
    assert np.array_equal(curve.encode(same, 2, out=same[:, 0]), index)
