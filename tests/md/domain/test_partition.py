"""Chunks of cells along an ordering, the cells around some, and the region of a rank."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import md
from md import backend
from md.domain.partition import Partition, around
from md.domain.region import Region
from md.particles.cell_grid import CellGrid


def partition_of(ranks, order="hilbert", lengths=(20.0, 14.0, 9.0)):
    grid = CellGrid(md.Box(lengths), 1.5, np.dtype(float), backend.get("cpu"))
    return Partition(order, grid, ranks)


@pytest.mark.parametrize("order", ["row", "hilbert", "gilbert"])
@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
def test_each_rank_owns_a_chunk_of_equal_weight(order, ranks):
    found = partition_of(ranks, order)
    weights = np.random.default_rng(ranks).gamma(1.0, size=found.grid.size)
    found.cut(weights)
    along = np.empty_like(found.owner)
    along[found.place] = found.owner
    assert (np.diff(along) >= 0).all()
    sums = np.bincount(found.owner, weights, ranks)
    assert abs(sums - weights.sum() / ranks).max() <= weights.max()


@pytest.mark.parametrize("heavy", [0, 17, -1])
def test_each_rank_owns_a_cell_wherever_the_weight_is(heavy):
    found = partition_of(6)
    weights = np.zeros(found.grid.size)
    weights[heavy] = 1
    found.cut(weights)
    assert set(found.owner) == set(range(6))


def test_more_ranks_than_cells_are_refused():
    with pytest.raises(ValueError, match=r"9 ranks for 8 cells .* allowed: up to 8 ranks"):
        partition_of(9, lengths=(3.1, 3.1, 3.1))


@pytest.mark.parametrize("shape", [(5, 4, 3), (2, 1, 4), (6, 3), (1, 1, 1)])
def test_cells_around_some_are_those_on_faces_edges_and_corners(shape):
    random = np.random.default_rng(0)
    places = list(itertools.product(*(range(count) for count in shape[::-1])))  # axis 0 the fastest
    for periodic in itertools.product((False, True), repeat=len(shape)):
        cells = random.random(len(places)) < 0.1
        cells[0] = True
        right = np.zeros(len(places), bool)
        for (k, one), (j, other) in itertools.product(enumerate(places), repeat=2):
            apart = np.abs(np.subtract(one, other))[::-1]
            apart = [
                min(a, n - a) if wraps else a for a, n, wraps in zip(apart, shape, periodic, strict=True)
            ]
            right[k] |= cells[j] and max(apart) <= 1
        assert np.array_equal(around(cells, shape, periodic), right)


def test_few_ranks_of_a_cube_have_slabs_and_many_have_chunks_of_a_curve():
    def best(ranks):
        return min(("row", "hilbert"), key=lambda order: partition_of(ranks, order, (48.0,) * 3).ghosts)

    assert [best(2), best(32)] == ["row", "hilbert"]


@pytest.mark.parametrize("cutoff", [0.9, 1.5, 2.3, 4.1])
@pytest.mark.parametrize("periodic", [True, False])
def test_a_region_is_of_all_cells_that_overlap_those_within_two_of_the_own(cutoff, periodic):
    box = md.Box((23.0, 9.0, 31.0), periodic)
    coarse, fine = (CellGrid(box, width, np.dtype(float), backend.get("cpu")) for width in (1.5, cutoff))
    partition = Partition("hilbert", coarse, 20)
    near = partition.owner == 4
    for _ in range(2):
        near = around(near, coarse.shape, (periodic,) * 3)

    def overlapping(axis: int, cell: int) -> list[int]:
        of, among = fine.shape[axis], coarse.shape[axis]
        ends = Fraction(cell, of), Fraction(cell + 1, of)
        return [k for k in range(among) if Fraction(k, among) < ends[1] and Fraction(k + 1, among) > ends[0]]

    spans = [[overlapping(axis, cell) for cell in range(fine.shape[axis])] for axis in range(3)]
    near = near.reshape(coarse.shape[::-1])
    right = [near[np.ix_(z, y, x)].any() for z, y, x in itertools.product(*spans[::-1])]
    assert any(right)
    assert not all(right)
    np.testing.assert_array_equal(Region(partition, 4).cells_of(fine), right)
