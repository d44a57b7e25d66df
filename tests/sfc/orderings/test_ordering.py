"""Orderings by name, orderings of one's own, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests import tiers
from tests.strategies import INTEGER_DTYPES, ORDERINGS, all_cells, shapes


@pytest.mark.parametrize("name", ["row", "zigzag", "random", "tiled", "gilbert"])
@tiers.examples(10)
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
@tiers.examples(5)
@given(data=st.data())
def test_a_curve_orders_a_box_as_it_orders_the_cube_around_it(name, dim, data):
    shape = data.draw(shapes(dim))
    curve = sfc.curve(name, dim)
    order = next(k for k in range(9) if curve.base**k >= max(shape))
    cube = curve.traversal(order)
    inside = cube[(cube < np.array(shape)).all(axis=1)]
    assert np.array_equal(sfc.ordering(name, shape).traversal(), inside)
    assert np.array_equal(sfc.ordering(curve, shape).traversal(), inside)


@pytest.mark.quick
def test_a_seed_fixes_random_and_another_changes_it():
    first, again, other = (sfc.ordering("random", (7, 6, 5), seed=s).traversal() for s in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, all_cells((7, 6, 5)))


def test_a_huge_box_is_ranked_without_being_listed():
    ordering = sfc.ordering("row", (2**31, 2**31))
    assert ordering.rank(np.array([[2**31 - 1, 2**31 - 1]])).tolist() == [2**62 - 1]
    assert sfc.ordering("zigzag", (2**31, 2**31)).rank(np.array([[0, 0]])).tolist() == [0]


@pytest.mark.quick
@pytest.mark.parametrize("name", ["row", "hilbert"])
def test_a_cell_outside_the_box_is_refused(name):
    ordering = sfc.ordering(name, (3, 4))
    for wrong in ([3, 0], [0, 4], [-1, 0]):
        with pytest.raises(ValueError, match=rf"{wrong[0]}, {wrong[1]}\] in row 1.*0 <= cell < \(3, 4\)"):
            ordering.rank(np.array([[0, 0], wrong]))
    with pytest.raises(ValueError, match=r"dtype float64; .* \* \(3, 4\)\), 0, \(2, 3\)\)\.astype"):
        ordering.rank(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"shape \(1, 3\).*\(n, 2\)"):
        ordering.rank(np.zeros((1, 3), int))


@pytest.mark.quick
def test_an_unknown_ordering_lists_those_known():
    with pytest.raises(ValueError, match=r"'hilbrt'.*known in 3D: butz, .*hilbert, .*row, .*tiled, zigzag"):
        sfc.ordering("hilbrt", (4, 4, 4))


@pytest.mark.parametrize("side", [0, -1, 2**63])
def test_a_side_out_of_range_is_refused(side):
    for make in (sfc.ordering, sfc.covering):
        with pytest.raises(
            ValueError, match=rf"shape\[1\] = {side}; allowed: an integer of at least 1, up to"
        ):
            make("row", (4, side))
    with pytest.raises(ValueError, match=rf"shape\[1\] = {side}; allowed: an integer of at least 1, up to"):
        sfc.Ordering("own", (3, side), lambda cells: cells[:, 0])


@pytest.mark.parametrize("side", [2.5, True, "3", None, np.timedelta64(3, "s")])
def test_a_side_that_is_no_integer_is_refused(side):
    with pytest.raises(TypeError, match=r"shape\[1\] = .* of class .*; allowed: an integer of at least 1"):
        sfc.ordering("row", (4, side))


@pytest.mark.parametrize("shape", [4, None, 2.5, "44", {4: 4}, {4}])
def test_a_shape_that_is_no_sequence_is_refused(shape):
    with pytest.raises(TypeError, match=r"shape = .* of class .*; allowed: a sequence of integers"):
        sfc.ordering("hilbert", shape)


@pytest.mark.parametrize("shape", [(), (1,) * 65, range(1, 2**62), range(1, 2**70), np.ma.array([4, 4])])
def test_a_shape_of_no_axes_of_too_many_or_of_masked_sides_is_refused(shape):
    with pytest.raises(ValueError, match=r"shape .*; allowed: (1 to 64 axes|a sequence of integers)"):
        sfc.ordering("row", shape)


@pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
def test_a_shape_of_any_integer_dtype_is_kept_as_python_s_integers(dtype):
    ordering = sfc.ordering("row", np.array([100, 100, 2], dtype))
    assert ordering.size == 20000
    assert {type(side) for side in ordering.shape} == {int}


class TestOwnOrderings:
    """What an `Ordering` of one's own is made of."""

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": 3}, "name = 3 of class int; allowed: a str"),
            ({"rank": None}, r"rank = None of class NoneType; allowed: a function of \(n, dim\) cells"),
            ({"cells": 3}, "cells = 3 of class int; allowed: None, or a function of ranks"),
            (
                {"curve": "hilbert"},
                "curve = 'hilbert' of class str; allowed: None, or a pair of an sfc.AnyCurve",
            ),
            ({"curve": ("hilbert", 2)}, r"curve\[0\] = 'hilbert' of class str; allowed: an sfc.AnyCurve"),
            (
                {"curve": (sfc.curve("hilbert", 2), 2.0)},
                r"order of hilbert in 2D = 2\.0 of class float; allowed",
            ),
            ({"around": (4, 4)}, r"around = \(4, 4\) of class tuple; allowed: None, or the sfc.Ordering"),
        ],
    )
    def test_an_argument_of_a_wrong_class_is_refused(self, given, message):
        with pytest.raises(TypeError, match=message):
            sfc.Ordering(**{"name": "own", "shape": (3, 4), "rank": lambda cells: cells[:, 0]} | given)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"curve": (sfc.curve("hilbert", 2), 1)},
                r"curve of a box \(2, 2\); allowed: one that holds the box",
            ),
            ({"curve": (sfc.curve("hilbert", 3), 2)}, r"curve of a box \(4, 4, 4\); allowed: one that holds"),
            ({"around": sfc.ordering("row", (4, 3))}, r"around of a box \(4, 3\); allowed: one that holds"),
        ],
    )
    def test_what_does_not_hold_the_box_is_refused(self, given, message):
        with pytest.raises(ValueError, match=message):
            sfc.Ordering(**{"name": "own", "shape": (3, 4), "rank": lambda cells: cells[:, 0]} | given)


@pytest.mark.parametrize("order", [None, 3, ["row"]])
def test_what_names_no_order_is_refused(order):
    for make in (sfc.ordering, sfc.covering):
        with pytest.raises(
            TypeError, match=r"order = .*; allowed: an sfc.AnyCurve, or one of .*gilbert, .*hilbert"
        ):
            make(order, (4, 4))


@pytest.mark.quick
def test_durations_and_masks_are_no_cells_and_no_ranks():
    ordering = sfc.ordering("row", (3, 4))
    with pytest.raises(ValueError, match=r"cells of dtype timedelta64\[s\]; allowed: any integer dtype"):
        ordering.rank(np.zeros((1, 2), "m8[s]"))
    with pytest.raises(ValueError, match=r"ranks of dtype timedelta64\[s\]; allowed: any integer dtype"):
        ordering.cells(np.zeros(1, "m8[s]"))
    with pytest.raises(ValueError, match=r"cells is a masked array; .*filled"):
        ordering.rank(np.ma.array([[0, 1]], mask=[[False, True]]))
    with pytest.raises(ValueError, match=r"ranks is a masked array; .*filled"):
        ordering.cells(np.ma.array([0, 1], mask=[False, True]))


@pytest.mark.parametrize(
    ("length", "error"),
    [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError), (None, TypeError)],
)
def test_a_length_of_pieces_that_is_none_is_refused_at_once(length, error):
    with pytest.raises(error, match=rf"length = {length}.*; allowed: an integer of at least 1 \(cells\)"):
        sfc.ordering("row", (3, 3)).chunks(length)


def test_an_option_of_another_ordering_is_refused():
    with pytest.raises(ValueError, match=r"'row' does not take \['seed'\]"):
        sfc.ordering("row", (4, 4), seed=1)
    with pytest.raises(ValueError, match=r"'random' does not take \['sed'\]; allowed: seed"):
        sfc.ordering("random", (4, 4), sed=1)


@pytest.mark.parametrize(("dim", "axiom"), [(2, "B"), (3, "B"), (3, "C"), (3, "D")])
def test_each_axiom_of_hilbert_s_grammar_orders_a_box(dim, axiom):
    shape = (5, 8, 3)[:dim]
    ordering = sfc.ordering("hilbert", shape, axiom=axiom)
    sfc.testing.check_ordering(ordering)
    own = sfc.ordering(sfc.curve("hilbert", dim, axiom=axiom), shape)
    assert np.array_equal(ordering.traversal(), own.traversal())
    assert np.array_equal(sfc.covering("hilbert", shape, axiom=axiom).traversal(), own.traversal())
    plain = sfc.ordering("hilbert", shape)
    assert np.array_equal(ordering.traversal(), plain.traversal()) == (dim == 2)  # there B is A mirrored
    with pytest.raises(
        ValueError, match=r"'hilbert-.' does not take \['axiom'\]; allowed: none with a `Curve`"
    ):
        sfc.ordering(own.curve[0], shape, axiom=axiom)


def test_a_curve_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match=r"'hilbert' is 2D.*3D; allowed: a curve in 3D, such as butz, "):
        sfc.ordering(sfc.curve("hilbert", 2), (4, 4, 4))
    with pytest.raises(ValueError, match=r"'hilbert' is 3D.*5D; allowed: a curve in 5D, such as gray"):
        sfc.ordering(sfc.curve("hilbert", 3), (7, 2, 5, 5, 2))


@pytest.mark.parametrize(("name", "shape"), [("hilbert", (2,) * 10), ("skilling", (3, 1, 2, 2, 1, 3, 2))])
def test_a_curve_without_tables_orders_a_box(name, shape):
    ordering = sfc.ordering(name, shape)
    sfc.testing.check_ordering(ordering)
    assert ordering.is_dense == (set(shape) == {2})
    assert not isinstance(ordering.curve[0], sfc.Curve)


def test_cells_repeated_that_no_memory_holds_are_refused():
    endless = np.broadcast_to(np.int64(1), (2**40, 3))
    for call in (sfc.ordering("row", (4, 4, 4)).rank, lambda cells: sfc.curve("hilbert", 3).encode(cells, 2)):
        with pytest.raises(
            ValueError, match=r"cells: .* are needed; allowed: up to .*; give fewer at a time"
        ):
            call(endless)
    for call in (sfc.cache.lru, lambda slots: sfc.cache.addresses(slots, "soa", 3, 8, 9)):
        with pytest.raises(ValueError, match=r"(items|slots): .* are needed; allowed: up to .*; give fewer"):
            call(endless[:, 0])


def test_a_box_whose_cube_needs_more_than_64_bits_is_refused_with_the_remedy():
    message = r"\(4194304, 2, 2\).*64 bits; allowed: sides up to 2097152; use a scan"
    with pytest.raises(ValueError, match=message):
        sfc.ordering("hilbert", (2**22, 2, 2))
    with pytest.raises(ValueError, match="64 bits; allowed: sides up to 2097152; use a scan"):
        sfc.covering(sfc.curve("moore", 3), (8, 3, 2**53 + 1))


def test_a_table_of_more_cells_than_32_bits_count_is_refused():
    with pytest.raises(ValueError, match=rf"{2**40} cells.*2\*\*32"):
        sfc.ordering("row", (2**20, 2**20)).dense_ranks()


def test_what_no_memory_holds_is_refused_with_the_remedy():
    huge = sfc.ordering("row", (2**20, 2**20, 2))
    with pytest.raises(
        ValueError, match=rf"traversal of .* {2**41} cells: {3 * 2**44:,} bytes .*; allowed.*`chunks`"
    ):
        huge.traversal()
    with pytest.raises(ValueError, match=rf"ranks of .* {2**41} cells: {2**44:,} bytes .*; allowed.*`rank`"):
        huge.ranks()
    with pytest.raises(
        ValueError, match=rf"piece of {2**41} cells: {3 * 2**44:,} bytes .*; allowed.* shorter"
    ):
        huge.chunks(2**62)


@pytest.mark.quick
def test_what_this_machine_cannot_hold_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("sfc.checks.SMALL", 0)
    ordering = sfc.ordering("row", (2**8, 2**8))
    for bytes_a_cell, list_cells in (
        (16, ordering.traversal),
        (16, sfc.curve("hilbert", 2).traversal),
        (16, ordering.chunks),
        (12, ordering.dense_ranks),
        (8, ordering.ranks),
        (8, lambda *_: sfc.ordering("random", (2**8, 2**8))),
    ):
        arguments = (8,) if getattr(list_cells, "__self__", None) is sfc.curve("hilbert", 2) else ()
        monkeypatch.setattr("sfc.checks.host_memory", lambda size=bytes_a_cell * 2**16 - 1: size)
        with pytest.raises(ValueError, match=rf": {bytes_a_cell * 2**16:,} bytes .*; allowed: up to "):
            list_cells(*arguments)
        monkeypatch.setattr("sfc.checks.host_memory", lambda size=bytes_a_cell * 2**16: size)
        list_cells(*arguments)


@pytest.mark.parametrize("side", [2**32, 2**32 - 1])
def test_ranks_over_63_bits_have_no_cells_and_that_is_said(side):
    with pytest.raises(ValueError, match=rf"has {side**2} cells; allowed: less than 2\*\*63.*smaller box"):
        sfc.ordering("hilbert", (side, side)).cells(np.array([0]))


def test_a_traversal_too_large_to_hold_is_streamed():
    """The first piece of boxes of 2**45 cells."""
    for name, shape in (("hilbert", (2**15,) * 3), ("gilbert", (2**20, 2**15, 2**10)), ("row", (2**45,))):
        ordering = sfc.ordering(name, shape)
        pieces = ordering.chunks(1000)
        first = next(pieces)
        assert np.array_equal(ordering.rank(first), np.arange(1000))
