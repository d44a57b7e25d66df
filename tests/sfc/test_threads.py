"""Two threads compute the bits of one; other tests run on one."""

import numba
import numpy as np
import pytest

import sfc
from sfc import locality
from sfc.automaton import registers
from sfc.compile.threads import MANY as N
from sfc.locality.sections import MANY_ROWS
from sfc.orderings.ordering import CHUNK as ORDERING_CHUNK
from sfc.point_keys.grid import CHUNK
from sfc.radix_sort import MANY
from tests.threaded_kernels import assert_two_threads_end_with_the_bits_of_one, not_called_by
from tests.tiers import nightly

SHAPES = {
    "hilbert": (64, 64, 64),
    "peano": (729, 729),
    "gilbert": (50, 48, 32),
    "pancake": (64, 64, 32),
}


def ranked(name: str):
    def work():
        order = sfc.ordering(name, SHAPES[name])
        ranks = np.random.default_rng(0).permutation(order.size)[: N + 1]
        cells = order.cells(ranks)
        assert np.array_equal(order.rank(cells), ranks)
        return cells, order.rank(cells)

    return work


@pytest.mark.parametrize(("curve", "dim"), [("hilbert", 3), nightly("peano", 2)])
def test_the_first_row_outside_is_named_by_any_number_of_threads(curve, dim):
    numba.set_num_threads(2)
    curve, cells = sfc.curve(curve, dim), np.zeros((N, dim), np.int64)
    cells[[N // 2 + 7, N // 2 + 8, N - 1]] = 10**6
    ranks = np.where(cells[:, 0] > 0, 10**12, 0)
    for refused, values in (
        (lambda v: curve.encode(v, 4), cells),
        (lambda v: curve.decode(v, 4), ranks),
        (sfc.ordering(curve, (curve.base**2,) * dim).rank, cells),
        (sfc.ordering(curve, (curve.base**2,) * dim).cells, ranks),
    ):
        with pytest.raises(ValueError, match=rf"\b{N // 2 + 7}\b"):
            refused(values)


def test_the_first_row_outside_a_box_is_named_by_any_number_of_threads():
    numba.set_num_threads(2)
    cells = np.zeros((N, 3), np.int64)
    cells[[N // 2 + 7, N - 1], 1] = 8
    with pytest.raises(ValueError, match=rf"cell \[0, 8, 0\] in row {N // 2 + 7} "):
        sfc.ordering("row", (9, 8, 9)).rank(cells)


def test_the_first_point_outside_is_named_by_any_number_of_threads():
    numba.set_num_threads(2)
    points = np.full((4 * CHUNK, 2), 0.5)
    points[[CHUNK + 7, 2 * CHUNK + 1, 4 * CHUNK - 1]] = 1.5
    with pytest.raises(ValueError, match=rf"points\[{CHUNK + 7}\]"):
        sfc.keys(points, box=(0, 1))
    with pytest.warns(UserWarning, match=rf"\b3 of {4 * CHUNK} points"):
        sfc.keys(points, box=(0, 1), clip=True)


def measured(samples):
    def work():
        order = sfc.ordering("hilbert", (8, 8, 8) if samples is None else (16, 16, 16))
        assert order.size >= 2 * MANY_ROWS
        found = locality.dilation(order, samples=samples), locality.bounding_box(order, samples=samples)
        return [np.array([measure.mean, measure.worst]) for measure in found]

    return work


def block_hits():
    n, each = N + 1, 9
    reads = np.random.default_rng(0).integers(0, n, n * each).astype(np.int32)
    stream = sfc.cache.AccessStream(np.arange(0, n * each + 1, each), reads)
    return [np.array([sfc.cache.block(stream, 1000).hits])]


def sorted_points():
    points = np.random.default_rng(0).random((max(3 * CHUNK, MANY), 2))
    cells = np.random.default_rng(1).integers(0, 2**8, points.shape)
    return [sfc.argsort(points), sfc.keys(points, "peano"), sfc.keys(cells, "hilbert")]


def many_cells():
    curve, index = sfc.curve("hilbert", 2), np.arange(registers.FEWEST, dtype=np.uint32) % 2**18
    cells = curve.decode(index, 9, out=np.empty((len(index), 2), np.uint16))
    return [cells, curve.encode(cells, 9, out=np.empty_like(index))]


def many_dims():
    index = np.random.default_rng(0).integers(0, 2**63, N + 1).astype(np.uint64)
    cells = [sfc.curve(name, 9).decode(index, 7) for name in ("hilbert", "morton", "gray", "skilling")]
    return [*cells, *(sfc.curve("skilling", 9).encode(own, 7) for own in cells)] + [
        sfc.curve(name, 9).encode(cells[0], 7) for name in ("hilbert", "morton", "gray")
    ]


def h_index():
    curve, index = sfc.curve("hindex", 2), np.arange(N)
    cells = curve.decode(index, 8)
    return [cells, curve.encode(cells, 8)]


def ranks_of_a_box():
    order = sfc.covering("hilbert", (2**8, 2**6, 2**6 + 1))
    assert order.size > ORDERING_CHUNK
    return [order.ranks(), order.dense_ranks()]


WORKS = {
    **{name: ranked(name) for name in SHAPES},
    "measured": measured(None),
    "measured by samples": measured(N),
    "block": block_hits,
    "sorted": sorted_points,
    "many cells": many_cells,
    "many dims": many_dims,
    "H-index": h_index,
    "ranks of a box": ranks_of_a_box,
}


@pytest.mark.parametrize("work", WORKS)
def test_two_threads_end_with_the_bits_of_one(work):
    assert_two_threads_end_with_the_bits_of_one(WORKS[work])


def test_no_parallel_kernel_is_left_out():
    assert not_called_by(WORKS.values(), "sfc") == set()
