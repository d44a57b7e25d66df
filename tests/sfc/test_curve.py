"""Every curve is a bijection that refines itself, at every order and from every integer dtype."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from tests import tiers
from tests.strategies import CURVES, INTEGER_DTYPES, cells_of, indices_of
from tests.tiers import nightly, product

ORDERS = (1, 2, 3, 4, 5, 6)
CELLS = 2**17
every_curve = pytest.mark.parametrize(("name", "dim"), CURVES)
every_order = pytest.mark.parametrize(
    ("name", "dim", "order"),
    [(*c, k) for c in CURVES for k in ORDERS if sfc.curve(*c).base ** (c[1] * k) <= CELLS],
)


def numbers(cells: np.ndarray, side: int) -> np.ndarray:
    return cells @ (side ** np.arange(cells.shape[1]))


class TestEveryOrderExhaustively:
    @every_order
    def test_the_traversal_visits_every_cell_once(self, name, dim, order):
        curve = sfc.curve(name, dim)
        side = curve.base**order
        cells = curve.traversal(order)
        assert cells.shape == (side**dim, dim)
        assert cells.min() == 0
        assert cells.max() == side - 1
        assert np.array_equal(np.sort(numbers(cells, side)), np.arange(side**dim))

    @every_order
    def test_encode_and_decode_are_inverse(self, name, dim, order):
        curve = sfc.curve(name, dim)
        index = np.arange(curve.base ** (dim * order))
        cells = curve.traversal(order)
        assert np.array_equal(curve.decode(index, order), cells)
        assert np.array_equal(curve.encode(cells, order), index)

    @every_order
    def test_a_continuous_curve_steps_by_one_and_another_jumps(self, name, dim, order):
        curve = sfc.curve(name, dim)
        steps = np.abs(np.diff(curve.traversal(order), axis=0)).sum(axis=1)
        if curve.is_continuous or order > 1:  # the Gray code's own first order does not jump
            assert (steps == 1).all() == curve.is_continuous
        assert (curve.first_jump() is None) == curve.is_continuous

    @every_curve
    def test_a_closed_curve_ends_beside_its_start_at_every_order(self, name, dim):
        curve = sfc.curve(name, dim)
        ends = [curve.traversal(order)[[0, -1]] for order in (1, 2, 3)]
        closes = [np.abs(np.diff(pair, axis=0)).sum() == 1 for pair in ends]
        assert all(closes) == curve.is_closed

    @every_order
    def test_it_starts_at_the_origin_or_if_it_is_closed_at_a_side(self, name, dim, order):
        first = sfc.curve(name, dim).traversal(order)[0]
        assert not first.all() if sfc.curve(name, dim).is_closed else not first.any()

    @every_order
    def test_a_coarser_order_ranks_the_parents(self, name, dim, order):
        curve = sfc.curve(name, dim)
        cells = curve.traversal(order)
        parents = curve.encode(cells // curve.base, order - 1)
        assert np.array_equal(parents, curve.encode(cells, order) // curve.base**dim)

    @every_curve
    def test_order_zero_is_one_cell(self, name, dim):
        assert sfc.curve(name, dim).traversal(0).tolist() == [[0] * dim]

    @every_curve
    @pytest.mark.parametrize("cells", [CELLS, nightly(2**20)])
    def test_check_curve_finds_no_fault(self, name, dim, cells):
        sfc.testing.check_curve(sfc.curve(name, dim), cells=cells)


@every_curve
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
        cells = curve.traversal(3)
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


@every_curve
class TestRefusals:
    def test_a_cell_outside_the_grid_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        side = curve.base**2
        for wrong in (side, -1):
            cells = np.zeros((3, dim), np.int64)
            cells[1, dim - 1] = wrong
            with pytest.raises(ValueError, match=rf"{wrong}\].*row 1.*0 <= cell < {side}"):
                curve.encode(cells, 2)

    def test_an_unsigned_cell_over_the_signed_range_is_refused(self, name, dim):
        cells = np.full((1, dim), 2**63 + 1, np.uint64)
        with pytest.raises(ValueError, match=str(2**63 + 1)):
            sfc.curve(name, dim).encode(cells, 3)

    def test_an_index_past_the_end_is_refused(self, name, dim):
        curve = sfc.curve(name, dim)
        count = curve.base ** (2 * dim)
        for wrong in (count, -1):
            with pytest.raises(ValueError, match=rf"index {wrong} .*0 <= index < {count}"):
                curve.decode(np.array([0, wrong]), 2)

    @pytest.mark.parametrize("dtype", [float, nightly(np.float32), nightly(complex), bool, nightly(object)])
    def test_a_dtype_that_is_no_integer_is_refused_with_the_remedy(self, name, dim, dtype):
        curve = sfc.curve(name, dim)
        expected = rf"dtype {np.dtype(dtype)}; allowed: any integer dtype; scale .* and floor them: np\."
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

    @pytest.mark.parametrize("order", [1.5, True, "2", nightly(None), np.timedelta64(2, "s")])
    def test_an_order_that_is_no_integer_is_refused(self, name, dim, order):
        curve = sfc.curve(name, dim)
        message = rf"order of {name} in {dim}D = .* of class {type(order).__name__}; allowed: an integer of"
        for call in (curve.side, curve.traversal, lambda k: curve.encode(np.zeros((1, dim), np.int64), k)):
            with pytest.raises(TypeError, match=message):
                call(order)


@pytest.mark.quick
def test_max_order_is_the_largest_that_fits_64_bits():
    assert [sfc.curve("hilbert", dim).max_order for dim in (2, 3)] == [32, 21]
    assert sfc.curve("peano", 2).max_order == 20


@pytest.mark.quick
def test_an_unknown_curve_lists_those_known():
    with pytest.raises(
        ValueError, match=r"'hilbrt'; known in 3D: butz, compact, gray, hilbert, moore, morton, peano"
    ):
        sfc.curve("hilbrt", 3)


def test_a_curve_unknown_in_this_dimension_says_where_it_exists():
    with pytest.raises(ValueError, match=r"'moore' exists in 2D and 3D, not in 4D; known in 4D: gray, "):
        sfc.curve("moore", 4)


def test_the_issue_s_curves_are_there():
    assert {"hilbert", "moore", "morton", "peano", "gray"} <= set(sfc.curves(2))
    assert {"hilbert", "butz", "compact", "moore", "morton", "peano", "gray"} <= set(sfc.curves(3))
    assert {"hilbert", "morton", "gray"} <= set(sfc.curves(4))
    assert set(sfc.curves()) == {name for dim in (2, 3, 4) for name in sfc.curves(dim)}
    assert list(sfc.curves()) == sorted(sfc.curves())


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_morton_interleaves_bits_with_axis_0_lowest(dim):
    curve = sfc.curve("morton", dim)
    cells = np.random.default_rng(1).integers(0, 2**curve.max_order, (200, dim))
    for cell, index in zip(cells.tolist(), curve.encode(cells, curve.max_order).tolist(), strict=True):
        bits = [(k, axis) for k in range(curve.max_order) for axis in range(dim)]
        assert index == sum((cell[axis] >> k & 1) << dim * k + axis for k, axis in bits)


def copied(curve: sfc.Curve) -> sfc.Curve:
    return sfc.Curve(curve.name, curve.dim, curve.base, curve.rank.copy(), curve.next.copy(), curve.start)


@pytest.mark.parametrize("all_states", [False, nightly(True)])
@every_curve
@pytest.mark.parametrize("table", ["rank", "next", "cell", "succ"])
def test_one_wrong_table_entry_is_caught_by_check_curve(name, dim, table, all_states):
    states, digits = sfc.curve(name, dim).rank.shape
    sound = copied(sfc.curve(name, dim))
    sfc.testing.check_curve(sound, cells=256, samples=16)
    if states == 1 and table in ("next", "succ"):
        assert not getattr(sound, table).any()
        return
    values = digits if table in ("rank", "cell") else states
    for state in range(states) if all_states else {0, states // 2, states - 1}:
        digit = state % digits
        broken = copied(sfc.curve(name, dim))
        entries = getattr(broken, table).copy()
        entries[state, digit] = (entries[state, digit] + 1) % values
        setattr(broken, table, entries)
        with pytest.raises((AssertionError, ValueError)):
            sfc.testing.check_curve(broken, cells=4096, samples=64)


@pytest.mark.parametrize("all_states", [False, nightly(True)])
@pytest.mark.parametrize(("name", "dim"), [c for c in CURVES if sfc.curve(*c).is_continuous])
def test_a_continuous_curve_built_with_one_wrong_successor_is_seen_to_jump(name, dim, all_states):
    curve = sfc.curve(name, dim)
    states = len(curve.next)
    seen = set()
    for state in range(states) if all_states else range(states % 3, states, 3):
        successors = curve.next.copy()
        successors[state, 0] = (successors[state, 0] + 1) % states
        broken = sfc.Curve("broken", dim, curve.base, curve.rank, successors, curve.start)
        orders = [k for k in (1, 2, 3, 4) if curve.base ** (dim * k) <= 2**15]
        jumps = [np.abs(np.diff(broken.traversal(k), axis=0)).sum(axis=1).max() > 1 for k in orders]
        assert not (broken.is_continuous and any(jumps)), state
        seen.add((broken.is_continuous, any(jumps)))
    assert (False, True) in seen


@pytest.mark.quick
@pytest.mark.parametrize("wrong", [0, 3, 4])
def test_a_rank_that_is_no_permutation_is_refused_with_its_row(wrong):
    ranks = [[0, 1, 2, wrong], [0, 1, 2, 3]] if wrong != 3 else [[0, 1, 2, 3], [0, 1, 2, 2]]
    row = ranks.index(next(r for r in ranks if sorted(r) != [0, 1, 2, 3]))
    with pytest.raises(ValueError, match=rf"rank\[{row}\].*permutation of 0\.\.3"):
        sfc.Curve("broken", 2, 2, ranks, np.zeros((2, 4), int))


def test_a_successor_that_is_no_state_is_refused():
    with pytest.raises(ValueError, match=r"table `next`\[0, 1\] = 1; allowed: values .* up to 0; .* rows"):
        sfc.Curve("broken", 2, 2, [[0, 1, 2, 3]], [[0, 1, 0, 0]])


def test_tables_of_the_wrong_width_are_refused():
    with pytest.raises(ValueError, match=r"table `rank` of shape \(1, 3\); allowed: \(states, 4\)"):
        sfc.Curve("broken", 2, 2, [[0, 1, 2]], [[0, 0, 0]])


def test_tables_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"table `next` of shape \(2, 4\); allowed: \(1, 4\)"):
        sfc.Curve("broken", 2, 2, [[0, 1, 2, 3]], np.zeros((2, 4), int))


@pytest.mark.parametrize("name", [None, 3, b"z", ["z"]])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(TypeError, match=r"name = .* of class .*; allowed: a str; it is what tables"):
        sfc.Curve(name, 2, 2, [[0, 1, 2, 3]], [[0] * 4])
    with pytest.raises(ValueError, match="name = ''; allowed: a str of at least one character"):
        sfc.Curve("", 2, 2, [[0, 1, 2, 3]], [[0] * 4])


@pytest.mark.parametrize("grammar", ["A", {"A": "AFA"}, ("A", {})])
def test_a_grammar_of_another_class_is_refused(grammar):
    with pytest.raises(TypeError, match=r"grammar = .*; allowed: an sfc.automaton.Grammar, or None"):
        sfc.Curve("own", 2, 2, [[0, 1, 2, 3]], [[0] * 4], grammar=grammar)


@pytest.mark.quick
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_durations_are_no_indices_and_no_cells(unit):
    curve = sfc.curve("hilbert", 2)
    with pytest.raises(
        ValueError, match=rf"index of dtype timedelta64\[{unit}\]; allowed: any integer dtype"
    ):
        curve.decode(np.array(["NaT"], f"m8[{unit}]"), 32)
    with pytest.raises(
        ValueError, match=rf"cells of dtype timedelta64\[{unit}\]; allowed: any integer dtype"
    ):
        curve.encode(np.array([[1, 2]], f"m8[{unit}]"), 3)
    with pytest.raises(ValueError, match=r"table `next` of dtype timedelta64.*; allowed: any integer dtype"):
        sfc.Curve("own", 2, 2, [[0, 1, 2, 3]], np.zeros((1, 4), f"m8[{unit}]"))
    with pytest.raises(TypeError, match=r"order of hilbert in 2D = .*timedelta64.*; allowed: an integer"):
        curve.side(np.timedelta64(2, unit))


@pytest.mark.quick
@pytest.mark.parametrize("mask", [[[False, True]], False])
def test_masks_are_not_lost(mask):
    curve = sfc.curve("hilbert", 2)
    masked = np.ma.array([[1, 2]], mask=mask)
    for cells in (masked, list(masked)):
        with pytest.raises(
            ValueError, match=r"cells is a masked array; .*\(n, 2\); fill it with \.filled\(\)"
        ):
            curve.encode(cells, 3)
    with pytest.raises(ValueError, match=r"index is a masked array; .*\(n,\); fill it"):
        curve.decode(masked[0], 3)


@pytest.mark.parametrize("cells", [None, "ab", b"ab", {}, {1, 2}, object(), iter([[1, 2]])])
def test_what_makes_no_array_is_no_cells_and_no_index(cells):
    curve = sfc.curve("hilbert", 2)
    with pytest.raises(
        TypeError, match=r"cells = .*; allowed: an array of any integer dtype, shape \(n, 2\)"
    ):
        curve.encode(cells, 3)
    with pytest.raises(TypeError, match=r"index = .*; allowed: an array of any integer dtype, shape \(n,\)"):
        curve.decode(cells, 3)


@pytest.mark.quick
@pytest.mark.parametrize(("name", "order"), [("hilbert", 3), ("peano", 2), ("hilbert", 0)])
def test_the_remedy_for_points_makes_cells_of_them(name, order):
    """What the message says is run as it stands."""
    curve = sfc.curve(name, 2)
    low, high = np.array([-1.0, 2.0]), np.array([1.0, 5.0])
    points = low + (high - low) * np.array([[0.0, 1.0], [0.5, 0.999], [1.0, 0.0]])
    with pytest.raises(ValueError, match="scale points to the grid and floor them") as refusal:
        curve.encode(points, order)
    remedy = str(refusal.value).partition("floor them: ")[2]
    cells = eval(remedy, {"np": np, "points": points, "low": low, "high": high})
    last = curve.side(order) - 1
    assert cells.tolist() == [[0, last], [curve.side(order) // 2, last], [last, 0]]
    assert cells.dtype == np.int64
    curve.encode(cells, order)


@pytest.mark.parametrize("order", [3, 32])
def test_the_remedy_for_fractions_makes_indices_of_them(order):
    curve = sfc.curve("hilbert", 2)
    fraction = np.array([0.0, 0.5, 1.0 - 2**-53, 1.0])
    with pytest.raises(ValueError, match="scale fractions of the length") as refusal:
        curve.decode(fraction, order)
    index = eval(str(refusal.value).partition("floor them: ")[2], {"np": np, "fraction": fraction})
    assert index.dtype == np.uint64
    assert index[:2].tolist() == [0, 4**order // 2]
    assert index[3] == min(4**order - 1, 2**64 - 2**11)  # the largest float below 2**64
    curve.decode(index, order)


@pytest.mark.parametrize("order", [3, 32])
def test_a_negative_index_is_refused_on_the_longest_curve_too(order):
    with pytest.raises(ValueError, match=r"index -1 in row 1 is negative; allowed: 0 <= index < "):
        sfc.curve("hilbert", 2).decode(np.array([0, -1]), order)


def test_a_curve_is_the_same_object_however_it_is_asked_for():
    assert sfc.curve("hilbert", 3) is sfc.curve(name="hilbert", dim=3)


@pytest.mark.parametrize(
    ("dim", "base"),
    [nightly(1, 3), (1, 5), (2, 3), (2, 4), nightly(2, 7), (3, 3), nightly(3, 5), (4, 4)],
)
def test_any_automaton_is_walked_as_digit_by_digit_at_every_order(dim, base):
    generator = np.random.default_rng(dim + base)
    rank = np.array([generator.permutation(base**dim) for _ in range(5)])
    curve = sfc.Curve("any", dim, base, rank, generator.integers(0, 5, rank.shape), start=3)
    for order in range(curve.max_order + 1):
        last = base ** (dim * order) - 1
        index = generator.integers(0, last, 12, dtype=np.uint64, endpoint=True)
        index[:2] = 0, last
        cells = curve.decode(index, order)
        assert np.array_equal(curve.encode(cells, order), index)
        for cell, position in zip(cells.tolist(), index.tolist(), strict=True):
            state, found = curve.start, 0
            for level in reversed(range(order)):
                digit = sum(c // base**level % base * base**k for k, c in enumerate(cell))
                found = found * base**dim + int(curve.rank[state, digit])
                state = curve.next[state, digit]
            assert found == position


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("hilbert",), {}, TypeError),
        ((None,), {}, TypeError),
        ((sfc.curve("hilbert", 2), 2.0), {}, TypeError),
        ((sfc.curve("hilbert", 2), -1), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, "9"), {}, TypeError),
        ((sfc.curve("hilbert", 2), 64, 2**60), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, 9, -1), {}, ValueError),
        ((sfc.curve("hilbert", 2), 64, 9), {"continuous": 1}, TypeError),
        ((sfc.curve("hilbert", 2), 64, 9), {"closed": "no"}, TypeError),
    ],
)
def test_a_check_of_no_curve_or_by_no_number_is_refused(arguments, options, error):
    with pytest.raises(error, match="; allowed: "):
        sfc.testing.check_curve(*arguments, **options)
    sfc.testing.check_curve(
        sfc.curve("hilbert", 2), np.int8(64), np.uint8(9), np.int16(0), continuous=np.True_, closed=np.False_
    )


@pytest.mark.parametrize("ordering", ["row", None, sfc.curve("hilbert", 2), (4, 4)])
def test_a_check_of_no_ordering_is_refused(ordering):
    with pytest.raises(
        TypeError, match=r"ordering = .*; allowed: an sfc.Ordering; make one with sfc.ordering"
    ):
        sfc.testing.check_ordering(ordering)
