"""The H-index: triangles that refine themselves, a closed path, the published dilation."""

import math

import numpy as np
import pytest

import md
import sfc
from tests.tiers import nightly


def square(order: int) -> sfc.Ordering:
    return sfc.ordering("hindex", (2**order, 2**order))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, nightly(9)])
def test_it_grows_from_four_triangles_and_two_of_them_are_the_square(order):
    triangle, side = np.array([[0, 0], [0, 1]]), 2
    while side < 2**order:
        x, y = triangle[::-1].T
        over, aside = np.stack([x, 2 * side - 1 - y], 1), np.stack([side - 1 - x, side + y], 1)
        triangle = np.concatenate([triangle, over, aside, triangle + side])
        side *= 2
    assert np.array_equal(square(order).traversal(), np.concatenate([triangle, side - 1 - triangle]))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_it_is_a_closed_path_of_unit_steps_from_the_origin(order):
    path = square(order).traversal()
    assert path[0].tolist() == [0, 0]
    assert (np.abs(path - np.roll(path, 1, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_its_first_half_is_a_triangle(order):
    path = square(order).traversal()
    x, y = path[: len(path) // 2].T
    assert ((x < y) | ((x == y) & (y % 2 == 0))).all()


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_a_third_of_the_squares_of_its_grid_is_passed_twice(size):
    """So no automaton that reads a digit of each coordinate describes it."""
    count = 64 // size
    ranks = square(6).dense_ranks().astype(int).reshape(count, size, count, size)
    runs = (np.diff(np.sort(ranks.swapaxes(1, 2).reshape(count**2, -1)), axis=1) > 1).sum(axis=1) + 1
    assert np.bincount(runs)[1:].tolist() == [count**2 - count**2 // 3, count**2 // 3]


@pytest.mark.parametrize(("norm", "published"), [(1, 8), (2, 4), (math.inf, 4)])
def test_its_dilation_rises_to_the_published_value(norm, published):
    """Niedermeier, Reinhardt and Sanders (2002); Haverkort and van Walderveen (2010)."""
    worst = np.array([sfc.locality.dilation(square(order), norm).worst for order in range(1, 7)])
    below = published - worst
    assert (below > 0).all()
    assert (below[1:] < below[:-1]).all()
    assert below[-1] < 0.04 * published


@pytest.mark.parametrize("order", [31, 32])
def test_the_longest_keys_come_back(order):
    curve, side = sfc.curve("hindex", 2), 2**order
    index = np.random.default_rng(0).integers(0, side**2 - 1, 1000, np.uint64, endpoint=True)
    cells = curve.decode(index, order)
    assert cells.max() < side
    assert np.array_equal(curve.encode(cells, order), index)
    ends = curve.decode(np.array([0, side**2 // 2 - 1, side**2 // 2, side**2 - 1], np.uint64), order)
    assert ends.tolist() == [[0, 0], [side - 2, side - 1], [side - 1, side - 1], [1, 0]]


def test_its_orders_do_not_refine_each_other_and_the_check_of_curves_knows():
    curve = sfc.curve("hindex", 2)
    assert not curve.refines
    assert sfc.curve("hilbert", 2).refines
    assert not np.array_equal(curve.traversal(3)[::4] // 2, curve.traversal(2))
    sfc.testing.check_curve(curve)


def test_what_needs_tables_refuses_it():
    curve = sfc.curve("hindex", 2)
    with pytest.raises(TypeError, match=r"an sfc\.Curve"):
        sfc.locality.limit_dilation(curve)
    with pytest.raises(ValueError, match=r"a tree in 2D along 'hindex'; allowed: .*with tables"):
        md.search.bvh.curve_keys.curve_of("hindex", 2)


def test_the_diagonal_is_numbered_as_another_program_does():
    """Its even cells, of the first of two triangles; Math::PlanePath by Ryde, manual page of HIndexing."""
    even = np.arange(0, 16, 2)
    assert square(4).rank(np.stack([even, even], 1)).tolist() == [0, 6, 24, 30, 96, 102, 120, 126]
