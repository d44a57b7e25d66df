"""An ordering ranks every cell of any box once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests.strategies import ORDERINGS, shapes

every_ordering = pytest.mark.parametrize(("name", "dim"), ORDERINGS)


def all_cells(shape: tuple[int, ...]) -> np.ndarray:
    """Every cell, axis 0 fastest."""
    return np.stack([axis.ravel(order="F") for axis in np.indices(shape)], axis=1)


@every_ordering
@given(data=st.data())
def test_any_box_is_visited_once_in_the_order_of_the_ranks(name, dim, data):
    shape = data.draw(shapes(dim))
    ordering = sfc.ordering(name, shape)
    sfc.testing.check_ordering(ordering)
    cells = ordering.traversal()
    assert sorted(map(tuple, cells.tolist())) == sorted(map(tuple, all_cells(shape).tolist()))
    ranks = ordering.rank(cells)
    assert ranks.dtype == np.uint64
    assert (ranks[1:] > ranks[:-1]).all()


@every_ordering
@given(data=st.data())
def test_dense_ranks_number_the_traversal_without_gaps(name, dim, data):
    shape = data.draw(shapes(dim))
    ordering = sfc.ordering(name, shape)
    cells = ordering.traversal()
    row_numbers = cells @ np.cumprod([1, *shape[:-1]])
    dense = ordering.dense_ranks()
    assert dense.dtype == np.uint32
    assert np.array_equal(dense[row_numbers], np.arange(ordering.size))


@pytest.mark.parametrize("name", ["row", "zigzag", "random"])
@given(shape=st.sampled_from([2, 3]).flatmap(shapes))
def test_a_scan_ranks_densely(name, shape):
    ordering = sfc.ordering(name, shape)
    assert ordering.size == math.prod(shape)
    assert np.array_equal(np.sort(ordering.rank(all_cells(shape))), np.arange(ordering.size))


@given(shape=st.sampled_from([2, 3]).flatmap(shapes))
def test_zigzag_takes_unit_steps(shape):
    cells = sfc.ordering("zigzag", shape).traversal()
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()


@given(shape=shapes(3))
def test_row_is_x_plus_nx_times_y_plus_ny_times_z(shape):
    nx, ny, _ = shape
    x, y, z = all_cells(shape).T
    assert np.array_equal(sfc.ordering("row", shape).rank(all_cells(shape)), x + nx * (y + ny * z))


@pytest.mark.parametrize(("name", "dim"), [c for c in ORDERINGS if c[0] in sfc.curves(c[1])])
@given(data=st.data())
def test_a_curve_orders_a_box_as_it_orders_the_cube_around_it(name, dim, data):
    shape = data.draw(shapes(dim))
    curve = sfc.curve(name, dim)
    order = next(k for k in range(9) if curve.base**k >= max(shape))
    cube = curve.traversal(order)
    inside = cube[(cube < np.array(shape)).all(axis=1)]
    assert np.array_equal(sfc.ordering(name, shape).traversal(), inside)
    assert np.array_equal(sfc.ordering(curve, shape).traversal(), inside)


def test_a_seed_fixes_random_and_another_changes_it():
    first, again, other = (sfc.ordering("random", (7, 6, 5), seed=s).traversal() for s in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, all_cells((7, 6, 5)))


def test_a_huge_box_is_ranked_without_being_listed():
    ordering = sfc.ordering("row", (2**31, 2**31))
    assert ordering.rank(np.array([[2**31 - 1, 2**31 - 1]])).tolist() == [2**62 - 1]
    assert sfc.ordering("zigzag", (2**31, 2**31)).rank(np.array([[0, 0]])).tolist() == [0]


@pytest.mark.parametrize("key", [lambda c: c[:, 0], lambda c: c[:, 0] * 0 + 7], ids=["rows alike", "one"])
def test_check_ordering_catches_cells_that_share_a_rank(key):
    broken = sfc.Ordering("broken", (3, 4), lambda cells: key(cells).astype(np.uint64))
    with pytest.raises(AssertionError):
        sfc.testing.check_ordering(broken)


def test_the_issue_s_orderings_are_there():
    for dim in (2, 3):
        assert {"row", "zigzag", "random", *sfc.curves(dim)} <= set(sfc.orderings(dim))
    assert list(sfc.orderings()) == sorted(sfc.orderings())


@pytest.mark.parametrize("name", ["row", "hilbert"])
def test_a_cell_outside_the_box_is_refused(name):
    ordering = sfc.ordering(name, (3, 4))
    for wrong in ([3, 0], [0, 4], [-1, 0]):
        with pytest.raises(ValueError, match=rf"{wrong[0]}, {wrong[1]}\] in row 1.*0 <= cell < \(3, 4\)"):
            ordering.rank(np.array([[0, 0], wrong]))
    with pytest.raises(ValueError, match=r"dtype float64; allowed: any integer dtype"):
        ordering.rank(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"shape \(1, 3\).*\(n, 2\)"):
        ordering.rank(np.zeros((1, 3), int))


def test_an_unknown_ordering_lists_those_known():
    with pytest.raises(ValueError, match=r"'hilbrt'.*known in 3D: hilbert, morton, .*row, zigzag"):
        sfc.ordering("hilbrt", (4, 4, 4))


@pytest.mark.parametrize("shape", [(4, 0), (4, -1), (4, 2.5)])
def test_a_side_below_one_or_no_integer_is_refused(shape):
    with pytest.raises(ValueError, match=rf"side {shape[1]}; allowed: integers of at least 1"):
        sfc.ordering("row", shape)


def test_an_option_of_another_ordering_is_refused():
    with pytest.raises(ValueError, match=r"'row' does not take \['seed'\]"):
        sfc.ordering("row", (4, 4), seed=1)
    with pytest.raises(ValueError, match=r"'random' does not take \['sed'\]; allowed: seed"):
        sfc.ordering("random", (4, 4), sed=1)


def test_a_curve_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match=r"'hilbert' is 2D.*3D"):
        sfc.ordering(sfc.curve("hilbert", 2), (4, 4, 4))


def test_a_box_whose_cube_needs_more_than_64_bits_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"\(4194304, 2, 2\).*64 bits; use a scan"):
        sfc.ordering("hilbert", (2**22, 2, 2))


def test_a_table_of_more_cells_than_32_bits_count_is_refused():
    with pytest.raises(ValueError, match=rf"{2**40} cells.*2\*\*32"):
        sfc.ordering("row", (2**20, 2**20)).dense_ranks()
