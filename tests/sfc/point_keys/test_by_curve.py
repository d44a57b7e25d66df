"""Keys of points, and their order along a curve."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import sfc
from sfc.point_keys.grid import CHUNK
from sfc.radix_sort import FEW, argsort_of_keys
from tests.tiers import full


def cells_of(points, bits, low, high, base=2, stretch=False):
    """The cells of points by the definition, in plain numpy."""
    points, low, high = (np.asarray(values, np.float64) for values in (points, low, high))
    width = high - low if stretch else np.full(len(low), (high - low).max())
    width[width == 0] = 1
    return np.minimum(np.floor((points - low) / width * base**bits), base**bits - 1).astype(np.uint64)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint16, np.int64, ">f8"])
@pytest.mark.parametrize(
    ("name", "dim", "bits"), [("hilbert", 2, 16), ("hilbert", 3, 5), ("morton", 4, 3), ("peano", 2, 4)]
)
def test_a_key_is_the_index_of_the_cell_in_the_box(dtype, name, dim, bits):
    points = np.random.default_rng(1).uniform(0, 100, (500, dim)).astype(dtype)
    curve, low, high = sfc.curve(name, dim), [-10.0] * dim, [101.0 + k for k in range(dim)]
    cells = cells_of(points, bits, low, high, curve.base)
    expected = curve.encode(cells, bits)
    for curve_or_name in (name, curve):
        found = sfc.keys(points, curve_or_name, bits, (low, high))
        assert found.dtype == np.uint64
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(sfc.keys(points[::-1], name, bits, (low, high)), expected[::-1])
    np.testing.assert_array_equal(sfc.keys(np.asfortranarray(points), name, bits, (low, high)), expected)
    assert len(np.unique(expected)) > 30


def test_without_a_box_it_is_that_of_the_points_and_bits_fill_the_key():
    points = np.random.default_rng(2).normal(size=(1000, 3))
    low, high = points.min(axis=0), points.max(axis=0)
    expected = sfc.curve("hilbert", 3).encode(cells_of(points, 21, low, high), 21)
    np.testing.assert_array_equal(sfc.keys(points), expected)
    for dim, bits in ((2, 32), (3, 21), (4, 16)):
        some = points.reshape(-1, 1)[: 1000 * dim].reshape(-1, dim)
        np.testing.assert_array_equal(sfc.keys(some, "gray"), sfc.keys(some, "gray", bits))
    flat = points[:, :2]
    np.testing.assert_array_equal(sfc.keys(flat, "peano"), sfc.keys(flat, "peano", 20))
    np.testing.assert_array_equal(sfc.keys(points, "peano"), sfc.keys(points, "peano", 13))


@pytest.mark.parametrize("dim", [1, 5, full(6), 9, 16, 17, 33, 64])
@pytest.mark.parametrize("name", ["hilbert", "skilling", "gray", "morton"])
def test_points_of_many_dims_have_keys(name, dim):
    if dim == 1 and name in ("hilbert", "skilling"):
        return
    points = np.random.default_rng(dim).normal(size=(400, dim))
    curve, low, high = sfc.curve(name, dim), points.min(axis=0), points.max(axis=0)
    bits = min(curve.max_order, 20)
    expected = curve.encode(cells_of(points, bits, low, high), bits)
    np.testing.assert_array_equal(sfc.keys(points, name, bits), expected)
    np.testing.assert_array_equal(sfc.argsort(points, name, bits), np.argsort(expected, kind="stable"))
    assert dim == 1 or np.array_equal(sfc.keys(points, name), expected)
    cells = np.random.default_rng(dim).integers(0, 2, (50, dim))
    np.testing.assert_array_equal(sfc.keys(cells, name), curve.encode(cells, 1))


def test_cells_are_cubes_unless_each_axis_is_stretched():
    points = np.array([[0.0, 0.0], [8.0, 2.0], [4.0, 1.0], [7.9, 0.1]])
    for stretch in (False, True):
        cells = cells_of(points, 3, [0, 0], [8, 2], stretch=stretch)
        assert cells[1].tolist() == ([7, 7] if stretch else [7, 2])
        expected = sfc.curve("hilbert", 2).encode(cells, 3)
        np.testing.assert_array_equal(sfc.keys(points, bits=3, stretch=stretch), expected)


def test_integers_without_a_box_are_cells():
    curve, cells = sfc.curve("hilbert", 2), np.random.default_rng(3).integers(0, 1000, (300, 2))
    cells[0] = 1000
    expected = curve.encode(cells, 10)
    np.testing.assert_array_equal(sfc.keys(cells), expected)
    np.testing.assert_array_equal(sfc.keys(cells, bits=10), expected)
    np.testing.assert_array_equal(sfc.keys(cells, bits=20), curve.encode(cells, 20))
    assert sfc.keys([[0, 0]]).tolist() == [0]
    with pytest.raises(ValueError, match=r"points\[0\] = \[1000, 1000\]; allowed: a cell in the grid of 512"):
        sfc.keys(cells, bits=9)
    with pytest.raises(ValueError, match=r"points\[1\] = \[0, -3\].*give a box, or clip"):
        sfc.keys([[0, 0], [0, -3]])
    with pytest.raises(ValueError, match=r"largest coordinate = 2097152; allowed: up to 2097151"):
        sfc.keys([[0, 0, 2**21]])
    with pytest.warns(UserWarning, match=r"2 of 3 points are outside the grid of 8 cells"):
        found = sfc.keys(np.array([[0, -3], [7, 7], [9, 2]], np.int8), bits=3, clip=True)
    np.testing.assert_array_equal(found, curve.encode([[0, 0], [7, 7], [7, 2]], 3))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 7, CHUNK + 3])
def test_a_point_that_has_no_cell_is_named(wrong, row):
    points = np.full((CHUNK + 10, 2), 0.5)
    points[row, 1] = wrong
    for box in (None, (0, 1)):
        with pytest.raises(ValueError, match=rf"points\[{row}\] = \[0.5, {wrong}\]"):
            sfc.keys(points, box=box)
    if np.isnan(wrong):
        with pytest.raises(ValueError, match=rf"points\[{row}\] = .*allowed: numbers; leave such points out"):
            sfc.keys(points, box=(0, 1), clip=True)
    else:
        with pytest.warns(UserWarning, match=f"1 of {len(points)} points are outside the box"):
            found = sfc.keys(points, bits=4, box=(0, 1), clip=True)
        points[row, 1] = wrong > 0
        np.testing.assert_array_equal(found, sfc.keys(points, bits=4, box=(0, 1)))


def test_a_point_outside_the_box_is_refused_or_clipped():
    points = [[0.5, 0.5], [1.5, -2.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=r"points\[1\] = \[1.5, -2.0\]; allowed: a point in the box"):
        sfc.keys(points, box=(0, 1))
    for make in (sfc.argsort, sfc.sort, sfc.keys):
        with pytest.warns(UserWarning, match="1 of 3 points") as caught:
            found = make(points, bits=4, box=(0, 1), clip=True)
        assert caught[0].filename == __file__
    assert found[1] == found[2]


@given(
    st.data(), st.sampled_from([("hilbert", 2), ("peano", 3), ("gray", 1), ("hindex", 2), ("skilling", 9)])
)
def test_a_warning_counts_the_points_outside_and_does_not_come_without(data, curve):
    (name, dim), low, high = curve, -3.0, 5.0
    dtype = data.draw(st.sampled_from(["f2", "f4", "f8", ">f8", "i1", "i8"]))
    n = data.draw(st.sampled_from([0, 1, 2, 100, CHUNK + 7]))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    points = generator.uniform(low, high, (n, dim)).astype(dtype)
    points[: n // 2] = generator.choice([low, high], (n // 2, dim))  # corners are inside
    assert len(sfc.keys(points, name, box=(low, high), clip=True)) == n
    count = data.draw(st.integers(1, 3))
    for row in generator.permutation(n)[:count]:
        points[row, generator.integers(dim)] = generator.choice([low - 1, high + 1, 100, -100])
    if n:
        said = rf"^{min(count, n)} of {n} points are outside the box from "
        with pytest.warns(UserWarning, match=said) as caught:
            sfc.keys(points, name, box=(low, high), clip=True)
        assert len(caught) == 1


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"points": "ab"}, TypeError, "points = 'ab'"),
        ({"points": [1.0, 2.0]}, ValueError, r"allowed: \(n, dim\)"),
        ({"points": [[True, False]]}, ValueError, "floats of 16 to 64 bits"),
        ({"points": [[1j, 0]]}, ValueError, "floats of 16 to 64 bits"),
        ({"points": np.zeros((2, 2), np.longdouble)}, ValueError, "dtype of points = 'float128'"),
        ({"curve": "nosuch"}, ValueError, "unknown curve 'nosuch'; known in 2D"),
        ({"curve": sfc.curve("hilbert", 3)}, ValueError, "dim of the curve = 3; allowed: 2"),
        ({"bits": 33}, ValueError, "bits of hilbert in 2D = 33; allowed: .* up to 32"),
        ({"bits": 1.5}, TypeError, "bits of hilbert"),
        ({"box": 3}, TypeError, r"box = 3 .*a pair \(low, high\)"),
        ({"box": (0, 1, 2)}, TypeError, r"a pair \(low, high\)"),
        ({"box": ((0, 0, 0), 1)}, ValueError, r"low corner of the box of shape \(3,\)"),
        ({"box": (0, np.nan)}, ValueError, "high corner of the box"),
        ({"box": ((0, 2), 1)}, ValueError, r"high\[1\] of the box = 1; allowed: at least low\[1\] = 2"),
        ({"points": [[-1e308, 0], [1e308, 0]]}, ValueError, "width of the box = .*scale the points"),
        ({"clip": 1}, TypeError, "clip = 1"),
        ({"stretch": None}, TypeError, "stretch = None"),
    ],
)  # fmt: skip
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        sfc.keys(**({"points": [[0.5, 0.5], [1.0, 0.0]]} | given))


def test_points_that_need_no_order():
    for points in (np.empty((0, 2)), np.empty((0, 3), np.int32)):
        assert sfc.keys(points).shape == sfc.argsort(points).shape == (0,)
        assert sfc.sort(points).shape == points.shape
    assert sfc.keys([[3.5, -2.0]]).tolist() == [0]
    assert sfc.keys(np.full((4, 2), 7.5)).tolist() == [0] * 4
    assert sfc.argsort(np.full((4, 2), 7.5)).tolist() == [0, 1, 2, 3]
    line = np.column_stack([np.linspace(0, 1, 9), np.full(9, 4.0)])
    assert sfc.argsort(line, "morton").tolist() == list(range(9))
    tiny = np.array([[0.0, 0.0], [5e-324, 0.0], [5e-324, 5e-324]])
    assert len(set(sfc.keys(tiny, bits=1).tolist())) == 3


@settings(deadline=None, max_examples=60)
@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 40), st.integers(2, 3)), elements=st.floats(-1e6, 1e6, width=32)
    ),
    st.integers(1, 8),
)
def test_argsort_is_the_stable_order_of_the_keys(points, bits):
    keys = sfc.keys(points, bits=bits)
    order = sfc.argsort(points, bits=bits)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("bits", [1, 8, 9, 31, 32, 33, 64])
@pytest.mark.parametrize("n", [FEW - 1, 3 * FEW + 1])
def test_keys_of_any_length_are_sorted_stably(bits, n):
    keys = np.random.default_rng(bits).integers(0, 2**bits - 1, n, dtype=np.uint64, endpoint=True)
    keys[::3] = keys[0]
    before = keys.copy()
    np.testing.assert_array_equal(argsort_of_keys(keys, bits), np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(keys, before)


def test_arrays_are_sorted_with_the_points():
    rng = np.random.default_rng(5)
    points, mass = rng.random((100, 2)), rng.random(100)
    names, frame = [str(k) for k in range(100)], pd.DataFrame({"m": mass}, index=range(100, 200))
    order = sfc.argsort(points, "morton", 10)
    found = sfc.sort(points, mass, names, frame, frame["m"], curve="morton", bits=10)
    np.testing.assert_array_equal(found[0], points[order])
    np.testing.assert_array_equal(found[1], mass[order])
    assert found[2].tolist() == [names[k] for k in order]
    pd.testing.assert_frame_equal(found[3], frame.iloc[order])
    pd.testing.assert_series_equal(found[4], frame["m"].iloc[order])
    table = pd.DataFrame(points, columns=["x", "y"])
    pd.testing.assert_frame_equal(sfc.sort(table, curve="morton", bits=10), table.iloc[order])
    with pytest.raises(ValueError, match=r"rows of arrays\[1\] = 99; allowed: 100"):
        sfc.sort(points, mass, mass[1:])
    with pytest.raises(TypeError, match=r"arrays\[0\] = 3"):
        sfc.sort(points, 3)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ("abc", TypeError, r"arrays\[1\] = 'abc' of class str; allowed: an array, .*; convert it by numpy"),
        (range(3), TypeError, r"arrays\[1\] = range\(0, 3\) of class range"),
        ({0: 1, 1: 2, 2: 3}, TypeError, r"arrays\[1\] = .* of class dict"),
        (memoryview(b"abc"), TypeError, r"arrays\[1\] = .* of class memoryview"),
        (np.array(3), ValueError, r"shape of arrays\[1\] = \(\); allowed: an array of 3 rows"),
        ([[1], [1, 2], [3]], ValueError, r"arrays\[1\] = \[\[1\], .*give rows of one length"),
    ],
)
def test_what_cannot_be_sorted_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        sfc.sort([[0.1, 0.2], [0.9, 0.1], [0.2, 0.9]], [1, 2, 3], values)


def test_a_box_is_any_pair_in_order():
    points = np.random.default_rng(6).random((50, 2))
    expected = sfc.keys(points, bits=8, box=(0, (1.0, 2.0)))
    for box in ([0, [1, 2]], np.array([[0, 0], [1, 2]]), pd.DataFrame([[0, 0], [1, 2]], columns=["x", "y"])):
        np.testing.assert_array_equal(sfc.keys(points, bits=8, box=box), expected)
    for box in ({0, 1}, frozenset({0, 1}), {0: 1, 1: 2}, np.array(3.0)):
        with pytest.raises(TypeError, match=r"box = .* of class .*; allowed: a pair \(low, high\)"):
            sfc.keys(points, box=box)


def test_the_error_of_encode_names_keys():
    with pytest.raises(ValueError, match=r"sfc\.keys"):
        sfc.curve("hilbert", 2).encode([[0.5, 0.5]], 3)
