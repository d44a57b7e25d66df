"""Sort-Tile-Recursive is that of a plain recursion over sorted lists."""

from itertools import count, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests.strategies import INTEGER_DTYPES

NAME = "str"
FLOATS = [np.dtype(one) for one in ("f2", "f4", "f8", ">f4", ">f8")]
streams = st.integers(0, 2**32).map(np.random.default_rng)
sizes = st.one_of(st.integers(0, 9), st.integers(10, 200))
capacities = st.one_of(st.integers(1, 4), st.integers(5, 40), st.just(2**70))


def by_lists(points, capacity):
    """Rows of points, cut by one axis after the other."""

    def ordered(rows, axis):
        rows, axes = sorted(rows, key=lambda row: points[row][axis]), len(points[0]) - axis
        if axes == 1:
            return rows
        tiles = -(-len(rows) // capacity)
        run = capacity * next(k for k in count(1) if k**axes >= tiles ** (axes - 1))
        return [
            row for start in range(0, len(rows), run) for row in ordered(rows[start : start + run], axis + 1)
        ]

    return ordered(range(len(points)), 0) if len(points) else []


@given(streams, sizes, st.integers(1, 5), capacities, st.sampled_from(FLOATS), st.booleans())
def test_floats_are_in_the_order_of_a_plain_recursion(stream, n, dim, capacity, dtype, is_tied):
    points = stream.normal(0, 3, (n, dim)).astype(dtype)
    if is_tied:
        ends = np.finfo(dtype)
        few = [-0.0, 0.0, 1.5, -1.5, ends.max, ends.min, ends.smallest_subnormal, -ends.smallest_subnormal]
        points = stream.choice(np.array(few, dtype), (n, dim))
    found = sfc.argsort(points, NAME, capacity=capacity)
    assert (type(found), found.dtype) == (np.ndarray, np.int64)
    assert found.tolist() == by_lists(points.tolist(), capacity)


@pytest.mark.quick
@given(streams, sizes, st.integers(1, 5), capacities, st.sampled_from(INTEGER_DTYPES), st.booleans())
def test_integers_are_in_the_order_of_a_plain_recursion(stream, n, dim, capacity, dtype, is_tied):
    ends = np.iinfo(dtype)
    points = stream.integers(ends.min, ends.max, (n, dim), dtype, endpoint=True)
    if is_tied:
        points = stream.choice(np.array([ends.min, ends.max, 0, 1], dtype), (n, dim))
    found = sfc.argsort(points, NAME, capacity=capacity)
    assert found.tolist() == by_lists(points.tolist(), capacity)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8"])
def test_many_points_are_ordered_as_few(dtype):
    """More than are sorted by numpy; numbers and parts fit 64 bits together, or do not."""
    stream = np.random.default_rng(1)
    points = stream.normal(0, 100, (20_011, 3)).astype("f4" if dtype == "f4" else "f8")
    if dtype != points.dtype:
        points = np.abs(points * (2**54 if dtype == "u8" else 1)).astype(dtype)
    points[stream.integers(0, len(points), 5000), stream.integers(0, 3, 5000)] = 7
    for capacity in (1, 32):
        expected = by_lists(points.tolist(), capacity)
        assert sfc.argsort(points, NAME, capacity=capacity).tolist() == expected
    assert sfc.argsort(points, NAME).tolist() == expected
    assert sfc.argsort(np.asfortranarray(points), NAME).tolist() == expected


@pytest.mark.quick
def test_slabs_strips_and_tiles_have_as_many_points_and_follow_each_other():
    side, capacity = 4, 6
    points = np.random.default_rng(2).random((side**3 * capacity, 3))
    tiles = points[sfc.argsort(points, NAME, capacity=capacity)].reshape(side, side, side, capacity, 3)
    for axis in range(3):
        # parts that differ in this axis alone
        for parts in tiles.reshape(side**axis, side, -1, 3)[..., axis]:
            for part, following in pairwise(parts):
                assert part.max() < following.min()


def test_the_last_slab_and_the_last_tile_have_what_is_left():
    """Of 23 points, 8 tiles of 3: slabs of ceil(8^(1 / 2)) tiles; the last has two tiles, of 3 and 2."""
    points = np.random.default_rng(3).random((23, 2))
    order = sfc.argsort(points, NAME, capacity=3)
    by_x = np.argsort(points[:, 0])
    for slab in (slice(0, 9), slice(9, 18), slice(18, 23)):
        assert set(order[slab]) == set(by_x[slab])
        assert (np.diff(points[order[slab], 1]) > 0).all()


@pytest.mark.parametrize(
    ("n", "dim", "slab", "strip"),
    [(999, 3, 100, 10), (1000, 3, 100, 10), (1001, 3, 101, 11), (32, 5, 16, 8), (2, 3, 2, 2), (1, 3, 1, 1)],
)
def test_runs_are_powers_of_tiles_rounded_up_exactly(n, dim, slab, strip):
    """In floats 32^(4 / 5) is above 16."""
    points = np.random.default_rng(4).random((n, dim))
    ordered = points[sfc.argsort(points, NAME, capacity=1)]
    for start in range(0, n, slab):
        part = ordered[start : start + slab]
        assert {*part[:, 0]} == {*np.sort(points[:, 0])[start : start + slab]}
        if start + slab <= n:
            assert {*part[:strip, 1]} == {*np.sort(part[:, 1])[:strip]}


def test_a_tile_of_all_points_is_sorted_by_the_last_axis_and_then_by_those_before():
    points = np.random.default_rng(5).integers(0, 3, (100, 3))
    for capacity in (100, 2**70):
        assert np.array_equal(sfc.argsort(points, NAME, capacity=capacity), np.lexsort(points.T))


@pytest.mark.parametrize("dim", [1, 2, 64])
def test_equal_and_few_points_keep_their_order(dim):
    for n in (0, 1, 2, 100):
        for values in (np.full((n, dim), 7.5), np.zeros((n, dim), np.int8)):
            found = sfc.argsort(values, NAME, capacity=3)
            assert (found.dtype, found.tolist()) == (np.int64, [*range(n)])


def test_points_on_a_line_are_sorted():
    points = np.random.default_rng(6).normal(size=(500, 1)).round(1)
    expected = np.argsort(points[:, 0], kind="stable")
    assert np.array_equal(sfc.argsort(points, NAME), expected)
    assert np.array_equal(sfc.argsort(points, NAME, capacity=1), expected)


def test_arrays_are_sorted_with_the_points():
    points = np.random.default_rng(7).random((60, 3))
    order = sfc.argsort(points, NAME, capacity=4)
    found, rows = sfc.sort(points, np.arange(60), curve=NAME, capacity=4)
    np.testing.assert_array_equal(found, points[order])
    np.testing.assert_array_equal(rows, order)
    table = pd.DataFrame(points, columns=["x", "y", "z"])
    pd.testing.assert_frame_equal(sfc.sort(table, curve=NAME, capacity=4), table.iloc[order])
    points.flags.writeable = False
    assert sfc.argsort(points, NAME, capacity=np.int8(4)).tolist() == order.tolist()
    assert sfc.argsort(points.tolist(), NAME, capacity=4).tolist() == order.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_point_that_is_not_finite_is_refused_with_its_row(value, dtype):
    points = np.ones((9, 2), dtype)
    points[[4, 6], 1] = value
    message = rf"points\[4\] = \[1.0, {value}\]; allowed: finite numbers; leave such points out$"
    for call in (sfc.argsort, sfc.sort):
        with pytest.raises(ValueError, match=message):
            call(points, curve=NAME)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"capacity": 0}, ValueError, r"capacity = 0; allowed: an integer of at least 1 \(points of a tile"),
        ({"capacity": -3}, ValueError, "capacity = -3"),
        ({"capacity": 2.0}, TypeError, "capacity = 2.0"),
        ({"capacity": None}, TypeError, "capacity = None"),
        ({"capacity": True}, TypeError, "capacity = True"),
        ({"bits": 3}, ValueError, r"'str' does not take \['bits'\]; allowed: capacity$"),
        ({"box": (0, 1)}, ValueError, r"'str' does not take \['box'\]"),
        ({"clip": True}, ValueError, r"'str' does not take \['clip'\]"),
        ({"stretch": True, "cells": 3}, ValueError, r"'str' does not take \['cells', 'stretch'\]"),
        ({"points": "ab"}, TypeError, "points = 'ab'"),
        ({"points": [1.0, 2.0]}, ValueError, r"allowed: \(n, dim\)"),
        ({"points": np.zeros((3, 0))}, ValueError, "axes of the points = 0; allowed: an integer"),
        ({"points": np.ones((3, 2), bool)}, ValueError, "points of dtype bool"),
        ({"points": np.ones((3, 2), "g")}, ValueError, "dtype of points = "),
    ],
)  # fmt: skip
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        sfc.argsort(**({"points": [[0.5, 0.5], [1.0, 0.0]], "curve": NAME} | given))
