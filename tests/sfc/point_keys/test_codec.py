"""`sfc.encode` and `sfc.decode`: cells and indices of a curve in one call."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests.strategies import CURVES, MANY_DIMS, cells_of, indices_of

ANY_CURVE = st.sampled_from([*CURVES, *MANY_DIMS]).map(lambda pair: sfc.curve(*pair))


@pytest.mark.quick
@given(data=st.data(), curve=ANY_CURVE)
def test_every_door_gives_the_index_of_the_curve(data, curve):
    cells, order = data.draw(cells_of(curve))
    expected = curve.encode(cells, order)
    for call in ({"bits": order}, {"order": order}, {"bits": order, "order": np.int8(order)}):
        np.testing.assert_array_equal(sfc.encode(cells, curve=curve, **call), expected)
    np.testing.assert_array_equal(sfc.encode(cells, bits=order, curve=curve.name), expected)
    np.testing.assert_array_equal(curve.encode(cells, bits=order), expected)
    if curve.dim > 1:
        found = sfc.encode(*cells.T, bits=order, curve=curve)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.uint64
    for cell, index in zip(cells, expected.tolist(), strict=True):
        for one in (sfc.encode(cell, bits=order, curve=curve), sfc.encode(*cell, bits=order, curve=curve)):
            assert (type(one), one) == (int, index)


@given(data=st.data(), curve=ANY_CURVE)
def test_decode_undoes_encode_for_every_shape(data, curve):
    index, order = data.draw(indices_of(curve))
    expected = curve.decode(index, order)
    np.testing.assert_array_equal(sfc.decode(index, order, curve), expected)
    np.testing.assert_array_equal(curve.decode(index, bits=order), expected)
    assert sfc.decode(index.tolist(), order, curve.name, curve.dim).tolist() == expected.tolist()
    table = sfc.decode(index[:, None], bits=order, curve=curve)
    assert table.shape == (len(index), 1, curve.dim)
    np.testing.assert_array_equal(table[:, 0], expected)
    np.testing.assert_array_equal(sfc.encode(table[:, 0], bits=order, curve=curve), index)
    for one, cell in zip(index, expected.tolist(), strict=True):
        assert sfc.decode(one, order=order, curve=curve).tolist() == cell
        assert sfc.decode(np.array(one), order=order, curve=curve).tolist() == cell


@given(
    data=st.data(),
    curve=st.sampled_from([("hilbert", 2), ("peano", 3), ("morton", 1), ("skilling", 9)]),
    stretch=st.booleans(),
)
def test_a_centre_is_within_half_a_cell_of_the_point_and_has_its_key(data, curve, stretch):
    name, dim = curve
    bits = data.draw(st.integers(0, min(sfc.curve(name, dim).max_order, 12)))
    side = sfc.curve(name, dim).side(bits)
    low = np.array(data.draw(st.lists(st.floats(-50, 50), min_size=dim, max_size=dim)))
    extent = np.array(data.draw(st.lists(st.floats(0.1, 90), min_size=dim, max_size=dim)))
    box = (low, low + extent)
    points = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(*box, (20, dim))
    keys = sfc.keys(points, name, bits, box, stretch=stretch)
    centres = sfc.decode(keys, bits, name, dim, box=box, stretch=stretch)
    assert centres.dtype == np.float64
    width = (extent if stretch else np.full(dim, extent.max())) / side
    assert (np.abs(centres - points) <= width / 2 * (1 + 1e-9)).all()
    inside = (centres <= box[1]).all(axis=1)  # of a box that is no cube, the last cells reach beyond
    again = sfc.keys(centres[inside], name, bits, box, stretch=stretch)
    np.testing.assert_array_equal(again, keys[inside])
    one = sfc.decode(int(keys[0]), bits, name, dim, box=box, stretch=stretch)
    np.testing.assert_array_equal(one, centres[0])


def test_centres_of_a_small_grid():
    found = sfc.decode([0, 1, 2, 3], bits=1, curve="morton", dim=2, box=((0, 10), (8, 14)))
    assert found.tolist() == [[2.0, 12.0], [6.0, 12.0], [2.0, 16.0], [6.0, 16.0]]
    found = sfc.decode([3], bits=1, curve="morton", dim=2, box=((0, 10), (8, 14)), stretch=True)
    assert found.tolist() == [[6.0, 13.0]]


def test_coordinates_of_any_shape_and_mixed_dtypes():
    x, y = np.mgrid[0:4, 0:8].astype(np.int64)
    found = sfc.encode(x, y.astype(np.uint64), bits=3)
    assert found.shape == (4, 8)
    flat = np.column_stack([x.ravel(), y.ravel()])
    np.testing.assert_array_equal(found.ravel(), sfc.encode(flat, bits=3))
    np.testing.assert_array_equal(sfc.decode(found, bits=3, dim=2), np.stack([x, y], axis=-1))
    assert sfc.encode([1, 2], [3, 4], bits=3).tolist() == sfc.encode([[1, 3], [2, 4]], bits=3).tolist()
    assert sfc.encode((1, 3), bits=3) == sfc.encode(1, np.uint8(3), bits=3)
    assert sfc.encode(np.empty((0, 2), int), bits=3).shape == sfc.encode([], [], bits=3).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sfc.encode(bits=3), TypeError, r"no cells; allowed: an \(n, dim\) array"),
        (lambda: sfc.encode([[1, 2]]), TypeError, "bits of hilbert in 2D = None .*allowed: an integer"),
        (lambda: sfc.encode([[1, 2]], 4), ValueError, "shapes of the coordinates .* bits by name: bits="),
        (lambda: sfc.encode([1, 2], [1], bits=4), ValueError, "shapes of the coordinates .*one shape"),
        (lambda: sfc.encode(1, 2, bits=3, order=4), ValueError, "order = 4 beside bits = 3; allowed: one of"),
        (lambda: sfc.encode(1, 2, bits=33), ValueError, "bits of hilbert in 2D = 33; allowed: .* up to 32"),
        (lambda: sfc.encode(1, 8, bits=3), ValueError, r"cells\[1\] = 8; allowed: .* up to 7"),
        (lambda: sfc.encode(1, -1, bits=3), ValueError, r"cells\[1\] = -1"),
        (lambda: sfc.encode([1], [8], bits=3), ValueError, r"cells\[1\]\[0\] = 8; allowed: .* up to 7"),
        (lambda: sfc.encode([[1, 8]], bits=3), ValueError, r"cell \[1, 8\] in row 0 is outside"),
        (lambda: sfc.encode(0.5, 0.5, bits=3), TypeError, r"cells\[0\] = 0.5 of class float"),
        (lambda: sfc.encode([0.5, 0.5], bits=3), TypeError, r"cells\[0\] = 0.5 .*, or sfc.keys"),
        (lambda: sfc.encode([], bits=3), ValueError, r"cells of shape \(0,\); allowed: \(n, dim\)"),
        (lambda: sfc.encode(np.zeros(65, int), bits=1), ValueError, r"cells of shape \(65,\)"),
        (lambda: sfc.encode([[0.5, 0.5]], bits=3), ValueError, "float64; allowed: any integer dtype"),
        (lambda: sfc.encode([[1], [1, 2]], bits=3), ValueError, "makes no array"),
        (lambda: sfc.encode([[1], [1, 2]], [1], bits=3), ValueError, r"cells\[0\] = .* makes no array"),
        (lambda: sfc.encode("ab", bits=3), TypeError, "cells = 'ab'"),
        (lambda: sfc.encode([[1, 2]], bits=3, curve="row"), ValueError, "'row': this is an ordering"),
        (lambda: sfc.encode([[1, 2]], bits=3, curve=sfc.curve("hilbert", 3)), ValueError, "dim of the"),
        (lambda: sfc.decode(3, bits=2), TypeError, "dim = None .*give the number of axes"),
        (lambda: sfc.decode(3, dim=2), TypeError, "bits of hilbert in 2D = None"),
        (lambda: sfc.decode(16, 2, dim=2), ValueError, "index 16 in row 0 is past the end"),
        (lambda: sfc.decode(-1, 2, dim=2), ValueError, "index -1 in row 0 is negative"),
        (lambda: sfc.decode(1.5, 2, dim=2), ValueError, "index of dtype float64"),
        (lambda: sfc.decode([1], 2, dim=2, order=3), ValueError, "order = 3 beside bits = 2"),
        (lambda: sfc.decode([1], 2, dim=2, stretch=True), ValueError, "stretch = True; allowed: False"),
        (lambda: sfc.decode([1], 2, dim=2, box=3), TypeError, r"box = 3 .*a pair \(low, high\)"),
        (lambda: sfc.decode([1], 2, sfc.curve("hilbert", 3), 2), ValueError, "dim of the curve = 3"),
        (lambda: sfc.curve("hilbert", 2).encode([[1, 2]], 3, bits=4), ValueError, "order = 3 beside bits"),
        (lambda: sfc.curve("hilbert", 2).encode([[1, 2]]), TypeError, "order of hilbert in 2D = None"),
        (lambda: sfc.curve("hilbert", 2).decode([1], bits=2.0), TypeError, "order of hilbert in 2D = 2.0"),
        (lambda: sfc.curve("hilbert", 2).traversal(2, bits=True), TypeError, "bits = True"),
        (lambda: sfc.curve("hilbert", 2).side(), TypeError, "order of hilbert in 2D = None"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_bits_are_another_name_of_the_order():
    curve = sfc.curve("peano", 2)
    assert curve.side(bits=2) == curve.side(2, bits=2) == 9
    np.testing.assert_array_equal(curve.traversal(bits=2), curve.traversal(2))
