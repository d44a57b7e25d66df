"""What the scans of a box take, and what they make of it."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests.strategies import all_cells, shapes


@pytest.mark.quick
@given(shape=st.sampled_from([1, 2, 3, 4]).flatmap(lambda dim: shapes(dim, 7)), tile=st.integers(1, 5))
def test_tiled_is_row_major_over_tiles_and_inside_them(shape, tile):
    cells = all_cells(shape)
    keys = [column for axis in range(len(shape)) for column in (cells[:, axis] % tile,)]
    keys += [cells[:, axis] // tile for axis in range(len(shape))]
    assert np.array_equal(sfc.ordering("tiled", shape, tile=tile).traversal(), cells[np.lexsort(keys)])
    assert np.array_equal(
        sfc.ordering("tiled", shape, tile=(tile,) * len(shape)).traversal(), cells[np.lexsort(keys)]
    )


@pytest.mark.parametrize("tile", [0, -1, (2, 2, 2), (2, 0), ()])
def test_a_tile_that_is_none_is_refused(tile):
    with pytest.raises(
        ValueError, match=r"tile(\[1\])? = .*; allowed: (an integer of at least 1|.* 2 integers)"
    ):
        sfc.ordering("tiled", (5, 5), tile=tile)


@pytest.mark.parametrize("tile", [2.0, True, "22", None, {2: 2}, (2, 2.0), np.timedelta64(2, "s")])
def test_a_tile_of_a_wrong_class_is_refused(tile):
    with pytest.raises(TypeError, match=r"tile(\[1\])? = .* of class .*; allowed: an integer of at least 1"):
        sfc.ordering("tiled", (5, 5), tile=tile)


def test_a_box_of_too_many_cells_for_a_scan_is_refused():
    with pytest.raises(ValueError, match=r"allowed: less than 2\*\*63"):
        sfc.ordering("row", (2**32, 2**31))


@pytest.mark.parametrize("tile", [2**61 + 1, 2**70, np.uint64(2**63 + 1), (2, 2**61), (2**70, 2)])
def test_a_tile_longer_than_the_box_is_as_long(tile):
    shape = (8, 5)
    as_long = np.minimum(np.broadcast_to(np.array(tile, object), 2), shape).tolist()
    expected = sfc.ordering("tiled", shape, tile=tuple(as_long)).traversal()
    ordering = sfc.ordering("tiled", shape, tile=tile)
    assert np.array_equal(ordering.traversal(), expected)
    assert np.array_equal(ordering.rank(expected), np.arange(40))
    far = np.array([[2**20 - 1, 2**20 - 1], [1, 0], [0, 1]])
    assert sfc.ordering("tiled", (2**20, 2**20), tile=2**44).rank(far).tolist() == [2**40 - 1, 1, 2**20]


@pytest.mark.parametrize("tile", [[2, 3], np.array([2, 3]), range(2, 4)])
def test_a_tile_may_be_any_sequence_of_integers(tile):
    expected = sfc.ordering("tiled", (5, 7), tile=(2, 3)).traversal()
    assert np.array_equal(sfc.ordering("tiled", (5, 7), tile=tile).traversal(), expected)


@pytest.mark.parametrize(
    ("seed", "error"),
    [(-1, ValueError), (1.5, TypeError), (None, TypeError), (True, TypeError), ("1", TypeError)],
)
def test_a_seed_that_is_none_is_refused(seed, error):
    with pytest.raises(error, match=rf"seed = {seed!r}.*; allowed: an integer of at least 0"):
        sfc.ordering("random", (4, 4), seed=seed)


def test_a_random_order_takes_no_more_memory_to_make_than_to_hold():
    tracemalloc.start()
    try:
        ordering = sfc.ordering("random", (2**18,))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ordering.size * 8 <= peak < 1.5 * ordering.size * 8
