"""Contract of every registered ordering: each cell of any box is ranked once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests import tiers
from tests.strategies import ORDERINGS, all_cells, shapes, shapes_filled_by

every_ordering = pytest.mark.parametrize(("name", "dim"), ORDERINGS)


@pytest.mark.quick
@every_ordering
@tiers.examples(5)
@given(data=st.data())
def test_any_box_is_visited_once_in_the_order_of_the_ranks(name, dim, data):
    shape = data.draw(shapes_filled_by(name, dim))
    ordering = sfc.ordering(name, shape)
    sfc.testing.check_ordering(ordering)
    cells = ordering.traversal()
    assert sorted(map(tuple, cells.tolist())) == sorted(map(tuple, all_cells(shape).tolist()))
    ranks = ordering.rank(cells)
    assert ranks.dtype == np.uint64
    assert (ranks[1:] > ranks[:-1]).all()


@every_ordering
@tiers.examples(5)
@given(data=st.data())
def test_dense_ranks_number_the_traversal_without_gaps(name, dim, data):
    shape = data.draw(shapes_filled_by(name, dim))
    ordering = sfc.ordering(name, shape)
    cells = ordering.traversal()
    row_numbers = cells @ np.cumprod([1, *shape[:-1]])
    dense = ordering.dense_ranks()
    assert dense.dtype == np.uint32
    assert np.array_equal(dense[row_numbers], np.arange(ordering.size))


@every_ordering
@tiers.examples(5)
@given(data=st.data())
def test_a_dense_order_gives_back_the_cell_of_a_rank(name, dim, data):
    ordering = sfc.ordering(name, data.draw(shapes_filled_by(name, dim)))
    if ordering.is_dense:
        ranks = np.arange(ordering.size)
        assert np.array_equal(ordering.rank(ordering.cells(ranks)), ranks)
        assert np.array_equal(ordering.cells(ranks[::-1].astype(np.uint32)), ordering.traversal()[::-1])
        for wrong in (-1, ordering.size):
            with pytest.raises(ValueError, match=rf"rank {wrong} at 1; allowed: 0 <= rank < {ordering.size}"):
                ordering.cells(np.array([0, wrong]))
    else:
        assert name in sfc.curves(dim)
        with pytest.raises(ValueError, match=r"have gaps.*the curve's own cube"):
            ordering.cells(np.array([0]))


@every_ordering
def test_no_cells_have_no_ranks(name, dim):
    ordering = sfc.ordering(name, (4,) * dim)
    assert ordering.rank(np.empty((0, dim), np.int8)).shape == (0,)
    if ordering.is_dense:
        assert ordering.cells(np.empty(0, np.int64)).shape == (0, dim)


@every_ordering
@tiers.examples(5)
@given(data=st.data())
def test_a_traversal_in_pieces_is_the_traversal(name, dim, data):
    ordering = sfc.ordering(name, data.draw(shapes_filled_by(name, dim)))
    length = data.draw(st.integers(1, 50))
    pieces = list(ordering.chunks(length))
    assert max(map(len, pieces)) <= length
    assert np.array_equal(np.concatenate(pieces), ordering.traversal())


@pytest.mark.parametrize("name", sfc.orderings(3))
@tiers.examples(5)
@given(shape=shapes(3))
def test_a_covering_ranks_any_box_as_a_part_of_one_that_can_be_filled(name, shape):
    ordering = sfc.covering(name, shape)
    assert ordering.shape == shape
    sfc.testing.check_ordering(ordering)
    if name == "pancake":
        height = 2 ** int(np.ceil(np.log2(shape[2])))
        whole = sfc.ordering(name, (*(-(-side // height) * height for side in shape[:2]), height)).traversal()
        assert np.array_equal(ordering.traversal(), whole[(whole < np.array(shape)).all(axis=1)])
    else:
        assert np.array_equal(ordering.traversal(), sfc.ordering(name, shape).traversal())
