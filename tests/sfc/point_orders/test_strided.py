"""The strided orders are those of a plain loop over tiles, turns and cells."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc.point_keys.grid import CHUNK
from sfc.point_orders.strided import TILE
from tests.strategies import INTEGER_DTYPES, shapes

NAMES = ("strided", "tiled_strided")
ALL = 10**9  # cells of a tile that is larger than any grid here


def by_turns(cells, shape, tile):
    """Rows of points: tile after tile, turn after turn, cell after cell."""
    rows = defaultdict(list)
    for row, cell in enumerate(cells):
        rows[sum(x * math.prod(shape[:axis]) for axis, x in enumerate(cell))].append(row)
    order = []
    for first in range(0, math.prod(shape), tile):
        own = range(first, min(first + tile, math.prod(shape)))
        turn = 0
        while own := [cell for cell in own if turn < len(rows.get(cell, ()))]:
            order += [rows[cell][turn] for cell in own]
            turn += 1
    return order


def drawn_tile(data, name, shape):
    """Options of a name, and its cells of a tile."""
    if name == "strided":
        return {}, ALL
    tile = data.draw(st.one_of(st.none(), st.integers(1, math.prod(shape) + 2)))
    return ({}, TILE) if tile is None else ({"tile": tile}, tile)


grids = st.integers(1, 4).flatmap(lambda dim: shapes(dim, 5))
every_name = pytest.mark.parametrize("name", NAMES)


@every_name
@given(data=st.data(), shape=grids)
def test_floats_are_in_cells_that_fill_the_box_along_each_axis(name, data, shape):
    dim, dtype = len(shape), data.draw(st.sampled_from(["f4", "f8", ">f8"]))
    low = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)), float)
    high = low + data.draw(st.lists(st.sampled_from([0, 1, 3, 7.5]), min_size=dim, max_size=dim))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    points = generator.uniform(low, high, (data.draw(st.integers(0, 60)), dim)).astype(dtype)
    points[:2], points[2:3] = low, high
    options, tile = drawn_tile(data, name, shape)
    width = [extent or 1.0 for extent in (high - low).tolist()]
    cells = [
        [min(int((x - a) / w * side), side - 1) for x, a, w, side in zip(p, low, width, shape, strict=True)]
        for p in points.astype(float).tolist()
    ]
    for stretch in (False, True):
        found = sfc.argsort(points, name, box=(low, high), cells=shape, stretch=stretch, **options)
        assert (type(found), found.dtype) == (np.ndarray, np.int64)
        assert found.tolist() == by_turns(cells, shape, tile)


@pytest.mark.quick
@every_name
@given(data=st.data(), shape=grids, dtype=st.sampled_from(INTEGER_DTYPES))
def test_integers_without_a_box_are_cells(name, data, shape, dtype):
    cell = st.tuples(*[st.integers(0, side - 1) for side in shape])
    cells = data.draw(st.lists(cell, max_size=40))
    options, tile = drawn_tile(data, name, shape)
    points = np.array(cells, dtype).reshape(-1, len(shape))
    assert sfc.argsort(points, name, cells=shape, **options).tolist() == by_turns(cells, shape, tile)
    smallest = tuple(max((cell[k] for cell in cells), default=0) + 1 for k in range(len(shape)))
    assert sfc.argsort(points, name, **options).tolist() == by_turns(cells, smallest, tile)
    power = 1 << (max(shape) - 1).bit_length()
    found = sfc.argsort(points, name, bits=power.bit_length() - 1, **options)
    assert found.tolist() == by_turns(cells, (power,) * len(shape), tile)


@every_name
@given(data=st.data(), shape=st.tuples(st.sampled_from([1, 3, 49, 2**48]), st.sampled_from([1, 7, 2**16])))
def test_cells_of_integers_in_a_box_are_exact(name, data, shape):
    width = data.draw(st.tuples(*[st.sampled_from([0, 3, 49, 10**6, 2**53 + 1, 2**63])] * 2))
    low = data.draw(st.tuples(*[st.sampled_from([0, -7, -(2**62)])] * 2))
    if max(a + w for a, w in zip(low, width, strict=True)) >= 2**63:
        low = (-(2**63) + 5, -9)
    high = tuple(min(a + w, 2**63 - 1) for a, w in zip(low, width, strict=True))
    points = [[data.draw(st.integers(a, b)) for a, b in zip(low, high, strict=True)] for _ in range(12)]
    ends = zip(low, high, shape, strict=True)
    firsts = [
        [a + -(-c * (b - a) // side) for c in (0, 1 % side, side // 2, side - 1)] for a, b, side in ends
    ]
    points += [list(pair) for pair in zip(*firsts, strict=True)]  # the first number of some cells
    cells = [
        [
            min(int(Fraction(x - a, (b - a) or 1) * side), side - 1)
            for x, a, b, side in zip(*axes, strict=True)
        ]
        for axes in ((point, low, high, shape) for point in points)
    ]
    numbers = [x + y * shape[0] for x, y in cells]
    tile = {"strided": 2**96, "tiled_strided": TILE}[name]
    turn = [numbers[:row].count(number) for row, number in enumerate(numbers)]
    expected = sorted(range(len(points)), key=lambda row: (numbers[row] // tile, turn[row], numbers[row]))
    assert sfc.argsort(np.array(points), name, box=(low, high), cells=shape).tolist() == expected


@pytest.mark.parametrize("side", [49, 98, 103, 107])
def test_each_integer_has_the_cell_that_floats_would_round_away(side):
    """In floats 1 / 49 * 49 is below 1."""
    numbers = np.arange(side + 1)[:, None]
    assert sfc.argsort(numbers, "strided", box=(0, side), cells=side).tolist() == [*range(side + 1)]


@every_name
@pytest.mark.parametrize("stretch", [False, True])
def test_bits_give_the_grid_of_keys(name, stretch):
    points = np.random.default_rng(1).normal(size=(300, 3)) * [1, 5, 2]
    for bits in (0, 1, 2):
        cells = sfc.curve("morton", 3).decode(sfc.keys(points, "morton", bits, stretch=stretch), bits)
        found = sfc.argsort(points, name, bits, stretch=stretch)
        tile = TILE if name == "tiled_strided" else 2 ** (3 * bits)
        assert found.tolist() == by_turns(cells.tolist(), (2**bits,) * 3, tile)


@every_name
def test_many_points_are_ordered_as_few(name):
    """More than are sorted by numpy, and than a thread takes at a time; many of them in one cell."""
    generator = np.random.default_rng(2)
    points = generator.random((CHUNK + 3000, 2)) ** 2
    points[generator.integers(0, len(points), 5000)] = 0.25
    cells = np.minimum((points * [700, 300]).astype(int), [699, 299])
    found = sfc.argsort(points, name, box=(0, 1), cells=(700, 300))
    assert found.tolist() == by_turns(cells.tolist(), (700, 300), TILE if name == "tiled_strided" else ALL)
    assert np.array_equal(found, sfc.argsort(np.asfortranarray(points), name, box=(0, 1), cells=(700, 300)))


@pytest.mark.quick
def test_neighbours_are_of_successive_cells():
    cells = np.repeat(np.arange(100), 3)[:, None]
    order = sfc.argsort(cells, "strided")
    assert cells[order, 0].tolist() == [*range(100)] * 3
    assert order.tolist() == [3 * cell + turn for turn in range(3) for cell in range(100)]
    tiled = cells[sfc.argsort(cells, "tiled_strided"), 0]
    assert tiled[:96].tolist() == [*range(32)] * 3
    assert tiled[-12:].tolist() == [*range(96, 100)] * 3


def test_a_tile_of_one_cell_sorts_by_cell_and_one_of_all_is_strided():
    points = np.random.default_rng(3).random((500, 2))
    call = {"box": (0, 1), "cells": (7, 5)}
    cells = (points * [7, 5]).astype(int)
    by_cell = np.argsort(cells[:, 0] + 7 * cells[:, 1], kind="stable")
    np.testing.assert_array_equal(sfc.argsort(points, "tiled_strided", tile=1, **call), by_cell)
    strided = sfc.argsort(points, "strided", **call)
    for tile in (35, np.int64(36), 2**70):
        np.testing.assert_array_equal(sfc.argsort(points, "tiled_strided", tile=tile, **call), strided)


@every_name
def test_arrays_are_sorted_with_the_points(name):
    points, call = np.random.default_rng(4).random((60, 3)), {"cells": 3, "box": (0, 1)}
    order = sfc.argsort(points, name, **call)
    found, rows = sfc.sort(points, np.arange(60), curve=name, **call)
    np.testing.assert_array_equal(found, points[order])
    np.testing.assert_array_equal(rows, order)
    table = pd.DataFrame(points, columns=["x", "y", "z"])
    pd.testing.assert_frame_equal(sfc.sort(table, curve=name, **call), table.iloc[order])
    assert sfc.argsort(points.tolist(), name, **call).tolist() == order.tolist()


@every_name
def test_few_points_have_an_order(name):
    for n in (0, 1):
        assert sfc.argsort(np.zeros((n, 2)), name, cells=3).tolist() == [*range(n)]
        assert sfc.argsort(np.zeros((n, 2), int), name).tolist() == [*range(n)]
    assert sfc.argsort(np.full((5, 2), 7.5), name, cells=4).tolist() == [*range(5)]


@every_name
def test_numbers_of_cells_fill_64_bits(name):
    top = 2**64 - 1
    for points in ([[top], [0], [top - 1], [0]], [[0, 0, top], [0, 0, 0], [0, 0, top - 1], [0, 0, 0]],
                   [[top, 0], [0, 0], [top - 1, 0], [0, 0]]):  # fmt: skip
        found = sfc.argsort(np.array(points, np.uint64), name)
        assert found.tolist() == ([1, 2, 0, 3] if name == "strided" else [1, 3, 2, 0])
    sfc.argsort([[0.5, 0.5]], name, cells=(2**48, 2**16))
    with pytest.raises(ValueError, match=r"cells of the grid \(281474976710656, 65537\) = .*up to 2\*\*64"):
        sfc.argsort([[0.5, 0.5]], name, cells=(2**48, 2**16 + 1))
    with pytest.raises(ValueError, match=r"cells of the grid .* = .*; allowed: up to 2\*\*64"):
        sfc.argsort(np.array([[top, 1]], np.uint64), name)


@every_name
def test_a_point_outside_is_refused_or_clipped(name):
    points = [[0.5, 0.5], [1.5, -2.0], [1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=r"points\[1\] = \[1.5, -2.0\]; allowed: a point in the box"):
        sfc.argsort(points, name, box=(0, 1), cells=2)
    for make in (sfc.argsort, sfc.sort):
        with pytest.warns(UserWarning, match="1 of 4 points are outside the box") as caught:
            found = make(points, curve=name, box=(0, 1), cells=2, clip=True)
        assert caught[0].filename == __file__
    np.testing.assert_array_equal(found, np.array(points)[[1, 0, 2, 3]])
    cells = np.array([[0, 1], [2, 7], [2, 6], [2, 1], [-1, 1]], np.int8)
    where = r"allowed: a cell in the grid of \(3, 8\) cells"
    with pytest.raises(ValueError, match=rf"points\[4\] = \[-1, 1\]; {where}; give a box, or clip"):
        sfc.argsort(cells, name, cells=(3, 8))
    with pytest.raises(ValueError, match=r"points\[0\] = \[3, 1\].*; take a larger grid, give a box, or"):
        sfc.argsort([[3, 1]], name, cells=(3, 8))
    with pytest.warns(UserWarning, match=r"2 of 5 points are outside the grid of \(3, 7\)") as caught:
        found = sfc.argsort(cells, name, cells=(3, 7), clip=True)
    assert caught[0].filename == __file__
    assert found.tolist() == by_turns([[0, 1], [2, 6], [2, 6], [2, 1], [0, 1]], (3, 7), ALL)
    with pytest.raises(ValueError, match=r"points\[0\] = \[nan, 1.0\]"):
        sfc.argsort([[np.nan, 1.0]], name, cells=2)


@every_name
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"cells": None}, ValueError, "bits = None beside cells = None; allowed: one of them, .*cutoff"),
        ({"bits": 3}, ValueError, "bits = 3 beside cells = 4; allowed: one of them"),
        ({"points": np.zeros((2, 2), int), "bits": 3}, ValueError, "bits = 3 beside cells = 4"),
        ({"points": np.zeros((2, 2), int), "cells": None, "box": (0, 1)}, ValueError, "bits = None beside"),
        ({"cells": None, "bits": 33}, ValueError, "bits = 33; allowed: .* up to 32"),
        ({"cells": None, "bits": 1.5}, TypeError, "bits = 1.5"),
        ({"cells": 0}, ValueError, "cells = 0; allowed: an integer of at least 1"),
        ({"cells": 2.5}, TypeError, "cells = 2.5 .*allowed: an integer of at least 1.*, or 2 of them"),
        ({"cells": (2, 3, 4)}, ValueError, r"cells = \(2, 3, 4\) has 3 entries"),
        ({"cells": 2**48 + 1}, ValueError, "cells = 281474976710657; allowed: .* up to 281474976710656"),
        ({"box": 3}, TypeError, r"box = 3 .*a pair \(low, high\)"),
        ({"box": ((0, 2), 1)}, ValueError, r"high\[1\] of the box = 1"),
        ({"clip": 1}, TypeError, "clip = 1"),
        ({"stretch": None}, TypeError, "stretch = None"),
        ({"points": "ab"}, TypeError, "points = 'ab'"),
        ({"points": [1.0, 2.0]}, ValueError, r"allowed: \(n, dim\)"),
        ({"points": np.zeros((3, 0))}, ValueError, "axes of the points = 0; allowed: an integer"),
        ({"points": [[-1e308, 0], [1e308, 0]]}, ValueError, "width of the box = .*scale the points"),
    ],
)  # fmt: skip
def test_what_is_refused(name, given, error, message):
    with pytest.raises(error, match=message):
        sfc.argsort(**({"points": [[0.5, 0.5], [1.0, 0.0]], "curve": name, "cells": 4} | given))


def test_a_tile_that_is_none_is_refused():
    for tile, error in (
        (0, ValueError),
        (-3, ValueError),
        (2.0, TypeError),
        (None, TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match=r"tile = .*; allowed: an integer of at least 1 \(cells\)"):
            sfc.argsort([[0.5, 0.5]], "tiled_strided", cells=4, tile=tile)
