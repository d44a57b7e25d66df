"""Contract of every registered curve: a bijection that refines itself, at every order and integer dtype."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests import tiers
from tests.strategies import CURVES, INTEGER_DTYPES, MANY_DIMS, cells_of, indices_of
from tests.tiers import nightly, product

ORDERS = (1, 2, 3, 4, 5, 6)


CELLS = 2**17
REFUSING = [("hilbert", 3), ("peano", 2), ("skilling", 5), ("hindex", 2)]  # one of each class, and of base 3
FROM_A_SIDE = {"betaomega", "haverkort_f"}  # open curves that start inside a side


every_curve = pytest.mark.parametrize(("name", "dim"), CURVES)
any_dim = pytest.mark.parametrize(
    ("name", "dim"), tiers.by_default(CURVES + MANY_DIMS, lambda *curve: curve != ("hilbert", 6), tiers.full)
)


def orders_of(curve: sfc.Curve) -> list[int]:
    """Orders at which all cells are looked at."""
    return [k for k in ORDERS if curve.base ** (curve.dim * k) <= CELLS]


def numbers(cells: np.ndarray, side: int) -> np.ndarray:
    return cells @ (side ** np.arange(cells.shape[1]))


@every_curve
class TestEveryOrderExhaustively:
    def test_the_traversal_visits_every_cell_once(self, name, dim):
        curve = sfc.curve(name, dim)
        for order in orders_of(curve):
            side = curve.base**order
            cells = curve.traversal(order)
            assert cells.shape == (side**dim, dim)
            assert cells.min() == 0, order
            assert cells.max() == side - 1, order
            assert np.array_equal(np.sort(numbers(cells, side)), np.arange(side**dim)), order

    def test_encode_and_decode_are_inverse(self, name, dim):
        curve = sfc.curve(name, dim)
        for order in orders_of(curve):
            index = np.arange(curve.base ** (dim * order))
            cells = curve.traversal(order)
            assert np.array_equal(curve.decode(index, order), cells), order
            assert np.array_equal(curve.encode(cells, order), index), order

    def test_a_continuous_curve_steps_by_one_and_another_jumps(self, name, dim):
        curve = sfc.curve(name, dim)
        assert (curve.first_jump() is None) == curve.is_continuous
        for order in orders_of(curve):
            steps = np.abs(np.diff(curve.traversal(order), axis=0)).sum(axis=1)
            if curve.is_continuous or order > 1:  # the Gray code's own first order does not jump
                assert (steps == 1).all() == curve.is_continuous, order

    def test_a_closed_curve_ends_adjacent_to_its_start_at_every_order(self, name, dim):
        curve = sfc.curve(name, dim)
        ends = [curve.traversal(order)[[0, -1]] for order in (1, 2, 3)]
        closes = [np.abs(np.diff(pair, axis=0)).sum() == 1 for pair in ends]
        assert all(closes) == curve.is_closed

    def test_it_starts_at_the_origin_or_at_a_side(self, name, dim):
        curve = sfc.curve(name, dim)
        for order in orders_of(curve):
            first = curve.traversal(order)[0]
            at_a_side = curve.is_closed or name in FROM_A_SIDE
            assert not first.all() if at_a_side else not first.any(), order

    def test_a_coarser_order_ranks_the_parents(self, name, dim):
        curve = sfc.curve(name, dim)
        for order in orders_of(curve):
            cells = curve.traversal(order)
            parents = curve.encode(cells // curve.base, order - 1)
            assert np.array_equal(parents, curve.encode(cells, order) // curve.base**dim), order

    def test_order_zero_is_one_cell(self, name, dim):
        assert sfc.curve(name, dim).traversal(0).tolist() == [[0] * dim]

    @pytest.mark.parametrize("cells", [CELLS, nightly(2**20)])
    def test_check_curve_finds_no_fault(self, name, dim, cells):
        sfc.testing.check_curve(sfc.curve(name, dim), cells=cells)


@any_dim
class TestAnyDtypeAndOrder:
    @pytest.mark.quick
    @tiers.examples(5)
    @given(data=st.data())
    def test_decode_after_encode_is_the_identity(self, name, dim, data):
        curve = sfc.curve(name, dim)
        cells, order = data.draw(cells_of(curve))
        index = curve.encode(cells, order)
        assert index.dtype == np.uint64
        assert all(int(i) < curve.base ** (dim * order) for i in index)
        assert np.array_equal(curve.decode(index, order), cells)

    @tiers.examples(5)
    @given(data=st.data())
    def test_encode_after_decode_is_the_identity(self, name, dim, data):
        curve = sfc.curve(name, dim)
        index, order = data.draw(indices_of(curve))
        cells = curve.decode(index, order)
        assert cells.shape == (len(index), dim)
        assert (cells < curve.base**order).all()
        assert np.array_equal(curve.encode(cells, order), index.astype(np.uint64))

    def test_many_points_at_the_largest_order_come_back(self, name, dim):
        curve = sfc.curve(name, dim)
        side = curve.base**curve.max_order
        cells = np.random.default_rng(0).integers(0, side, (50_000, dim))
        index = curve.encode(cells, curve.max_order)
        assert len(np.unique(index)) == len(cells)
        assert np.array_equal(curve.decode(index, curve.max_order), cells)

    def test_the_memory_layout_of_the_cells_does_not_matter(self, name, dim):
        curve = sfc.curve(name, dim)
        cells = curve.decode(np.arange(2000) if dim > 4 else np.arange(curve.side(3) ** dim), 3)
        wide = np.zeros((len(cells), 2 * dim), np.int64)
        wide[:, ::2] = cells
        reversed_twice = np.ascontiguousarray(cells[::-1])[::-1]
        frozen = cells.copy()
        frozen.flags.writeable = False
        for view in (np.asfortranarray(cells), wide[:, ::2], reversed_twice, frozen):
            assert np.array_equal(curve.encode(view, 3), np.arange(len(cells)))


@pytest.mark.parametrize(("name", "dim", "dtype"), product(CURVES, INTEGER_DTYPES, every=4))
def test_every_integer_dtype_gives_the_same_index(name, dim, dtype):
    curve = sfc.curve(name, dim)
    cells = curve.traversal(2)
    assert np.array_equal(curve.encode(cells.astype(dtype), 2), np.arange(len(cells)))
    few = np.arange(len(cells))[:100]
    assert np.array_equal(curve.decode(few.astype(dtype), 2), cells[:100])


@any_dim
class TestRefusals:
    """A cell and an index that are not on the curve, of each curve."""

    def test_a_cell_outside_the_grid_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        side = curve.base**2
        for wrong in (side, -1):
            cells = np.zeros((3, dim), np.int64)
            cells[1, dim - 1] = wrong
            with pytest.raises(ValueError, match=rf"{wrong}\].*row 1.*0 <= cell < {side}"):
                curve.encode(cells, 2)

    def test_an_index_past_the_end_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        count = curve.base ** (2 * dim)
        for wrong in (count, -1):
            with pytest.raises(ValueError, match=rf"index {wrong} .*0 <= index < {count}"):
                curve.decode(np.array([0, wrong]), 2)


@pytest.mark.parametrize(
    ("name", "dim"), tiers.by_default(CURVES + MANY_DIMS, lambda *curve: curve in REFUSING, tiers.full)
)
class TestRefusalsOfAnyCurve:
    """What `AnyCurve` refuses, which all curves share."""

    def test_an_unsigned_cell_over_the_signed_range_is_refused(self, name, dim):
        cells = np.full((1, dim), 2**63 + 1, np.uint64)
        with pytest.raises(ValueError, match=str(2**63 + 1)):
            sfc.curve(name, dim).encode(cells, 3)

    def test_a_dtype_that_is_no_integer_is_refused_with_the_remedy(self, name, dim):
        curve = sfc.curve(name, dim)
        for dtype in (float, np.float32, complex, bool, object):
            expected = (
                rf"dtype {np.dtype(dtype)}; allowed: any integer dtype; .*scale .* and floor them: np\."
            )
            with pytest.raises(ValueError, match=expected):
                curve.encode(np.zeros((1, dim), dtype), 2)
            with pytest.raises(ValueError, match=expected):
                curve.decode(np.zeros(1, dtype), 2)

    def test_a_wrong_dim_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        for shape in ((2, dim + 1), (2, dim - 1), (dim,), (1, 2, dim)):
            with pytest.raises(ValueError, match=rf"shape \({shape[0]},.*\(n, {dim}\)"):
                curve.encode(np.zeros(shape, np.int64), 2)
        with pytest.raises(ValueError, match=r"shape \(2, 1\).*\(n,\)"):
            curve.decode(np.zeros((2, 1), np.int64), 2)

    def test_an_order_over_64_bits_or_below_zero_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        assert curve.base ** (dim * curve.max_order) <= 2**64
        for wrong in (curve.max_order + 1, -1):
            expected = rf"order of {name} in {dim}D = {wrong};.* up to {curve.max_order}; .*64 bits"
            with pytest.raises(ValueError, match=expected):
                curve.encode(np.zeros((1, dim), np.int64), wrong)
            with pytest.raises(ValueError, match=expected):
                curve.decode(np.zeros(1, np.int64), wrong)
            with pytest.raises(ValueError, match=expected):
                curve.traversal(wrong)

    def test_an_order_that_is_no_integer_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        for order in (1.5, True, "2", None, np.timedelta64(2, "s")):
            kind = type(order).__name__
            message = rf"order of {name} in {dim}D = .* of class {kind}; allowed: an integer of"
            for call in (
                curve.side,
                curve.traversal,
                lambda k: curve.encode(np.zeros((1, dim), np.int64), k),
            ):
                with pytest.raises(TypeError, match=message):
                    call(order)
