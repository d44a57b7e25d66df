"""Divisions of cells: bricks, bisection and METIS beside chunks of orders, and the faces that they cut."""

import itertools
import math
import pickle

import numpy as np
import pytest

import md
import sfc
from experiments.prediction.divided.divisions import (
    BISECTION,
    BRICKS,
    METIS,
    OTHERS,
    bisection,
    bricks,
    cut_faces,
    factors,
    has_metis,
    known,
    neighbours_of,
    on_many_ranks,
    owners_of,
)
from md.domain.partition import around, checked_owners

SHAPE = (6, 5, 4)
NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(not has_metis(), reason="pymetis is not installed"))
    if name == METIS else name for name in ("row", "hilbert", *OTHERS)
]  # fmt: skip


def box_of(shape, periodic=True) -> md.Box:
    return md.Box(tuple(2.0 * side for side in shape), periodic)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ranks", [1, 2, 6, 8])
def test_each_cell_has_an_owner_and_each_rank_about_its_weight(name, ranks):
    shape = (8, 8, 8)
    weights = 1 + np.random.default_rng(3).random(512)
    found = checked_owners(owners_of(name)(shape, box_of(shape), weights, ranks), 512, ranks)
    sums = np.bincount(found, weights)
    assert sums.max() < (1.6 if name == BRICKS else 1.15) * sums.mean()  # bricks of 6 ranks: 3 or 2 layers


@pytest.mark.parametrize("name", NAMES)
def test_empty_cells_leave_no_rank_without_a_cell(name):
    weights = np.zeros(math.prod(SHAPE))
    weights[[3, 50]] = 10.0
    checked_owners(owners_of(name)(SHAPE, box_of(SHAPE), weights, 12), math.prod(SHAPE), 12)


def test_bricks_are_boxes_of_the_most_cubic_factors():
    assert factors((8, 8, 8), 8) == (2, 2, 2)
    assert factors((8, 8, 2), 4) == (2, 2, 1)
    assert factors((6, 5, 4), 12) == (3, 2, 2)
    found = bricks((4, 4, 2), box_of((4, 4, 2)), np.ones(32), 4)
    assert found.tolist() == 2 * [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    with pytest.raises(ValueError, match=r"7 ranks as bricks of 6 x 5 x 4 cells; allowed: a product"):
        bricks(SHAPE, box_of(SHAPE), np.ones(120), 7)


def test_bisection_cuts_the_longest_axis_where_half_the_weight_is():
    weights = np.ones((2, 3, 8))  # axis 0 is the last
    weights[:, :, 0] = 7.0
    found = bisection((8, 3, 2), box_of((8, 3, 2)), weights.reshape(-1), 2).reshape(2, 3, 8)
    assert (found == np.array([0, 1, 1, 1, 1, 1, 1, 1])).all()
    with pytest.raises(ValueError, match="3 ranks by bisection of 2 cells"):
        bisection((2, 1, 1), box_of((2, 1, 1)), np.ones(2), 3)


def test_parts_of_a_bisection_are_boxes():
    weights = np.random.default_rng(0).random(120)
    found = bisection(SHAPE, box_of(SHAPE), weights, 7).reshape(SHAPE[::-1])
    for rank in range(7):
        inside = np.argwhere(found == rank)
        assert len(inside) == np.prod(np.ptp(inside, axis=0) + 1)


@pytest.mark.skipif(not has_metis(), reason="pymetis is not installed")
def test_metis_cuts_fewer_edges_than_a_random_order():
    shape = (8, 8, 8)
    first, neighbours = neighbours_of(shape, (True,) * 3)
    cells = np.repeat(np.arange(512), np.diff(first))

    def cut(name):
        owner = owners_of(name)(shape, box_of(shape), np.ones(512), 8)
        return (owner[cells] != owner[neighbours]).sum()

    assert cut(METIS) < 0.7 * cut("random")


@pytest.mark.parametrize("periodic", [(True, True, True), (False, True, False)])
@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 1, 3)])
def test_neighbours_are_the_cells_around_one(shape, periodic):
    first, neighbours = neighbours_of(shape, periodic)
    for cell in range(math.prod(shape)):
        one = np.arange(math.prod(shape)) == cell
        right = np.flatnonzero(around(one, shape, periodic) & ~one)
        assert np.array_equal(neighbours[first[cell] : first[cell + 1]], right)


@pytest.mark.parametrize("name", ["row", "hilbert", "morton", "random"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_cut_faces_are_those_of_the_measure_of_an_order(name, ranks):
    shape = (8, 8, 8)
    found = owners_of(name)(shape, box_of(shape), np.ones(512), ranks)
    right = sfc.locality.partition_cut(sfc.covering(name, shape), ranks)
    assert cut_faces(found, shape) == right.cut


def test_a_division_can_be_compared_and_pickled():
    for name in ("hilbert", *OTHERS):
        assert owners_of(name) == owners_of(name) == pickle.loads(pickle.dumps(owners_of(name)))
    assert owners_of("hilbert") != owners_of("row")
    assert {"hilbert", BRICKS, BISECTION, METIS} <= {*known()}


def test_peers_and_ghosts_of_bricks_on_many_ranks_are_those_of_boxes():
    peers, ghosts = on_many_ranks(BRICKS)
    assert peers == 26
    sides = 6 * [4] + 2 * [3]  # of 8 bricks along an axis of 30 cells
    found = [(np.prod(np.add(own, 2)) - np.prod(own)) for own in itertools.product(sides, repeat=3)]
    assert ghosts == pytest.approx(sum(found) / 30**3)


def test_slabs_of_many_ranks_have_more_ghosts_than_chunks_of_a_curve():
    assert on_many_ranks("row").ghosts > 1.5 * on_many_ranks("hilbert").ghosts
    assert on_many_ranks("row").peers < on_many_ranks("hilbert").peers


@pytest.mark.skipif(not has_metis(), reason="pymetis is not installed")
def test_metis_cuts_where_no_particles_are():
    weights = np.zeros((6, 6, 12))  # axis 0 is the last
    weights[:, :, :5] = weights[:, :, 6:11] = 4.0
    owner = owners_of(METIS)((12, 6, 6), box_of((12, 6, 6)), weights.reshape(-1), 2).reshape(6, 6, 12)
    for half in (owner[:, :, :5], owner[:, :, 6:11]):
        assert (half == half[0, 0, 0]).all()
