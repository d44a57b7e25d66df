"""Keys and orders of points by an ordering of cells: rows, tiles, paths that fit a box."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfc
from sfc.point_keys.by_ordering import near_cubes
from sfc.point_keys.grid import CHUNK
from sfc.registry import ORDERINGS
from tests.strategies import INTEGER_DTYPES, shapes

NAMES = [(name, dim) for name, entry in sorted(ORDERINGS.items()) for dim in (1, 2, 3) if dim in entry.dims]
POINTS = np.random.default_rng(0).random((500, 3))


def cells_filling(points, shape, low, high):
    """The cells of points that fill a box along each axis, in plain numpy."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    width = np.where(high > low, high - low, 1.0)
    cells = np.floor((points.astype(float) - low) / width * np.array(shape))
    return np.minimum(cells, np.array(shape) - 1).astype(np.int64)


@pytest.mark.quick
@given(data=st.data(), name_and_dim=st.sampled_from(NAMES))
def test_a_key_is_the_rank_of_the_cell_that_holds_the_point(data, name_and_dim):
    name, dim = name_and_dim
    shape = data.draw(shapes(dim))
    low = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)), float)
    high = low + data.draw(st.lists(st.sampled_from([0, 1, 3, 7.5]), min_size=dim, max_size=dim))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(["f4", "f8", ">f8"]))
    points = generator.uniform(low, high, (data.draw(st.integers(0, 40)), dim)).astype(dtype)
    points[:2], points[2:3] = low, high
    expected = sfc.covering(name, shape).rank(cells_filling(points, shape, low, high))
    found = sfc.keys(points, name, box=(low, high), cells=shape)
    assert found.dtype == np.uint64
    np.testing.assert_array_equal(found, expected)
    order = sfc.argsort(points, name, box=(low, high), cells=shape)
    np.testing.assert_array_equal(order, np.argsort(expected, kind="stable"))
    if ORDERINGS[name].covering is None:
        ordering = sfc.ordering(name, shape)
        np.testing.assert_array_equal(sfc.keys(points, ordering, box=(low, high)), expected)


@given(data=st.data(), name_and_dim=st.sampled_from(NAMES), dtype=st.sampled_from(INTEGER_DTYPES))
def test_integers_without_a_box_are_cells(data, name_and_dim, dtype):
    name, dim = name_and_dim
    shape = data.draw(shapes(dim))
    cell = st.tuples(*[st.integers(0, side - 1) for side in shape])
    cells = np.array(data.draw(st.lists(cell, max_size=30)), dtype).reshape(-1, dim)
    expected = sfc.covering(name, shape).rank(cells)
    np.testing.assert_array_equal(sfc.keys(cells, name, cells=shape), expected)
    smallest = tuple((cells.max(axis=0) + 1).tolist()) if len(cells) else (1,) * dim
    np.testing.assert_array_equal(sfc.keys(cells, name), sfc.covering(name, smallest).rank(cells))
    np.testing.assert_array_equal(sfc.keys(cells, name, 4), sfc.covering(name, (16,) * dim).rank(cells))


@given(
    extent=st.lists(st.sampled_from([0.0, 0.1, 1.0, 1.5, 10.0, 1e9]), min_size=1, max_size=8),
    n=st.integers(0, 10**7),
)
@example(extent=[1.0, 1.5], n=20)
def test_cells_made_here_are_near_cubes_with_two_points_at_most_and_no_finer(extent, n):
    sides, widest = near_cubes(extent, n), max(extent)
    if n < 2 or not widest:
        assert math.prod(sides) == 1
        return
    along = max(sides)
    assert math.prod(sides) >= max(2, n / 2)
    assert sides == tuple(max(1, round(along * one / widest)) for one in extent)
    coarser = math.prod(max(1, round((along - 1) * one / widest)) for one in extent)
    assert coarser < max(2, n / 2)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["row", "tiled", "gilbert", "zigzag", "random", "pancake"])
def test_without_cells_neighbours_in_the_order_are_near_and_each_point_is_there_once(name):
    order = sfc.argsort(POINTS, name)
    assert sorted(order.tolist()) == [*range(500)]
    low, high = POINTS.min(axis=0), POINTS.max(axis=0)
    cells = near_cubes((high - low).tolist(), 500)
    np.testing.assert_array_equal(sfc.keys(POINTS, name), sfc.keys(POINTS, name, cells=cells))
    step = np.linalg.norm(np.diff(POINTS[order], axis=0), axis=1).mean()
    apart = np.linalg.norm(np.diff(POINTS, axis=0), axis=1).mean()
    assert step < (0.7 if name == "random" else 0.5) * apart
    assert math.prod(cells) >= 250


def test_bits_give_the_grid_of_keys_and_stretch_fills_the_box():
    points = POINTS * [1, 5, 2]
    for stretch in (False, True):
        for bits in (0, 1, 3):
            cells = sfc.curve("morton", 3).decode(sfc.keys(points, "morton", bits, stretch=stretch), bits)
            expected = sfc.ordering("gilbert", (2**bits,) * 3).rank(cells)
            np.testing.assert_array_equal(sfc.keys(points, "gilbert", bits, stretch=stretch), expected)


def test_options_of_an_ordering_reach_it():
    cells = np.random.default_rng(1).integers(0, 12, (300, 2))
    for name, options in (("tiled", {"tile": (3, 2)}), ("random", {"seed": 5})):
        expected = sfc.ordering(name, (12, 13), **options).rank(cells)
        np.testing.assert_array_equal(sfc.keys(cells, name, cells=(12, 13), **options), expected)
        assert (expected != sfc.keys(cells, name, cells=(12, 13))).any()


def test_integers_in_a_box_have_exact_cells():
    low, last = -(2**62), 2**62
    points = np.array([[low], [-1], [0], [last]], np.int64)
    assert sfc.keys(points, "row", box=(low, last), cells=2).tolist() == [0, 0, 1, 1]
    assert sfc.keys(points, "row", box=(low, last)).tolist() == [0, 0, 1, 1]


def test_many_points_are_ordered_as_few():
    points = np.random.default_rng(2).random((CHUNK + 3000, 2)) ** 2
    expected = sfc.ordering("tiled", (70, 30)).rank(cells_filling(points, (70, 30), (0, 0), (1, 1)))
    np.testing.assert_array_equal(sfc.keys(points, "tiled", box=(0, 1), cells=(70, 30)), expected)


def test_arrays_are_sorted_with_the_points():
    order = sfc.argsort(POINTS, "row")
    found, rows = sfc.sort(POINTS, np.arange(500), curve="row")
    np.testing.assert_array_equal(found, POINTS[order])
    np.testing.assert_array_equal(rows, order)
    table = pd.DataFrame(POINTS, columns=["x", "y", "z"])
    pd.testing.assert_frame_equal(sfc.sort(table, curve="row"), table.iloc[order])


def test_few_points_and_flat_ones_have_an_order():
    for n in (0, 1):
        assert sfc.argsort(np.zeros((n, 2)), "row").tolist() == [*range(n)]
        assert sfc.keys(np.zeros((n, 2), int), "row").tolist() == [0] * n
    assert sfc.argsort([[0.9, 7.0], [0.1, 7.0]], "row").tolist() == [1, 0]
    assert sfc.argsort(np.full((5, 2), 7.5), "gilbert").tolist() == [*range(5)]
    line = np.linspace(0, 1, 99)[::-1, None] * [0.0, 1.0, 0.0]
    assert (np.abs(sfc.argsort(line, "row") - np.arange(99)[::-1]) <= 1).all()  # by cells of two
    deep = np.random.default_rng(3).random((40, 64))
    assert sorted(sfc.argsort(deep, "row").tolist()) == [*range(40)]


def test_a_point_outside_is_refused_or_clipped():
    points = [[0.5, 0.5], [1.5, -2.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=r"points\[1\] = \[1.5, -2.0\]; allowed: a point in the box"):
        sfc.argsort(points, "row", box=(0, 1))
    with pytest.warns(UserWarning, match="1 of 3 points are outside the box") as caught:
        found = sfc.keys(points, "row", box=(0, 1), cells=2, clip=True)
    assert (found.tolist(), caught[0].filename) == ([3, 1, 1], __file__)
    with pytest.raises(ValueError, match=r"points\[0\] = \[3, 1\].*; take a larger grid, give a box, or"):
        sfc.keys([[3, 1]], "row", cells=(3, 8))
    with pytest.raises(ValueError, match=r"points\[0\] = \[nan, 1.0\]"):
        sfc.argsort([[np.nan, 1.0]], "row")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"stretch": True}, ValueError, "stretch = True for 'row' without bits; allowed: beside bits"),
        ({"cells": 4, "stretch": True}, ValueError, "stretch = True for 'row' without bits"),
        ({"cells": 4, "bits": 2}, ValueError, "bits = 2 beside cells = 4; allowed: one of them, or none"),
        ({"seed": 4}, ValueError, r"'row' does not take \['seed'\]; allowed: bits, box, clip, .*cells$"),
        ({"curve": "tiled", "capacity": 4}, ValueError, r"not take \['capacity'\]; allowed: .*cells, tile$"),
        ({"curve": "tiled", "tile": 0}, ValueError, "tile = 0; allowed: an integer of at least 1"),
        ({"cells": (2, 3, 4)}, ValueError, r"cells = \(2, 3, 4\) has 3 entries"),
        ({"cells": 0}, ValueError, "cells = 0; allowed: an integer of at least 1"),
        ({"cells": 2**32}, ValueError, r"cells of the grid .* = 184.*; allowed: less than 2\*\*63"),
        ({"bits": 33}, ValueError, "bits = 33; allowed: .* up to 32"),
        ({"curve": "pancake"}, ValueError, "unknown ordering 'pancake' for a box in 2D; known in 2D: .*row"),
        ({"curve": sfc.ordering("row", (3,))}, ValueError, "dim of the ordering = 1; allowed: 2"),
        ({"curve": sfc.ordering("row", (3, 4)), "bits": 2}, ValueError, r"not take \['bits'\]; allowed:"),
        ({"clip": 1}, TypeError, "clip = 1"),
        ({"points": np.zeros((3, 0))}, ValueError, "axes of the points = 0"),
        ({"points": [1.0, 2.0]}, ValueError, r"allowed: \(n, dim\)"),
    ],
)  # fmt: skip
def test_what_is_refused(given, error, message):
    for call in (sfc.keys, sfc.argsort):
        with pytest.raises(error, match=message):
            call(**({"points": [[0.5, 0.5], [1.0, 0.0]], "curve": "row"} | given))


def test_errors_name_the_orderings():
    with pytest.raises(ValueError, match=r"unknown curve 'rows'; .*also take gilbert, .*row, .*strided"):
        sfc.argsort(POINTS, "rows")
    with pytest.raises(ValueError, match=r"curve 'row': this is an ordering of a box; .*sfc.ordering with"):
        sfc.curve("row", 3)
    with pytest.raises(ValueError, match=r"'hilbert' does not take \['cells'\]; .*those of gilbert, .*row"):
        sfc.keys(POINTS, cells=3)


def test_an_ordering_of_ones_own_sorts_points(monkeypatch):
    monkeypatch.setattr("sfc.registry.ORDERINGS", ORDERINGS)
    monkeypatch.setitem(ORDERINGS, "backwards", ORDERINGS["row"]._replace(build=_backwards))
    cells = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    assert sfc.argsort(cells, "backwards").tolist() == [3, 2, 1, 0]
    assert sfc.argsort(cells.astype(float), "backwards", cells=2).tolist() == [3, 2, 1, 0]


def _backwards(shape):
    scan, last = ORDERINGS["row"].build(shape), math.prod(shape) - 1
    return scan._replace(
        rank=lambda cells: np.uint64(last) - scan.rank(cells), cells=lambda ranks: scan.cells(last - ranks)
    )
