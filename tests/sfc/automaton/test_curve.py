"""A `Curve` of any tables: continuity, what it refuses, and its walk against the automaton digit by digit."""

import numpy as np
import pytest

import sfc
from tests.strategies import CURVES
from tests.tiers import by_default, full, nightly


@pytest.mark.quick
def test_max_order_is_the_largest_that_fits_64_bits():
    assert [sfc.curve("hilbert", dim).max_order for dim in (2, 3)] == [32, 21]
    assert sfc.curve("peano", 2).max_order == 20


@pytest.mark.parametrize("all_states", [False, nightly(True)])
@pytest.mark.parametrize(
    ("name", "dim"),
    by_default([c for c in CURVES if sfc.curve(*c).is_continuous], lambda _, dim: dim < 4, full),
)
def test_a_continuous_curve_built_with_one_wrong_successor_is_seen_to_jump(name, dim, all_states):
    curve = sfc.curve(name, dim)
    states = len(curve.next)
    seen = set()
    for state in range(states) if all_states else range(states % 3, states, 3):
        successors = curve.next.copy()
        successors[state, 0] = (successors[state, 0] + 1) % states
        broken = sfc.Curve("broken", dim, curve.base, curve.rank, successors, curve.start)
        orders = [k for k in (1, 2, 3, 4) if k < 4 or curve.base ** (dim * k) <= 2**13]
        jumps = [np.abs(np.diff(broken.traversal(k), axis=0)).sum(axis=1).max() > 1 for k in orders]
        assert not (broken.is_continuous and any(jumps)), state
        seen.add((broken.is_continuous, any(jumps)))
    assert (False, True) in seen


def pairs_of_states(curve: sfc.Curve) -> bool:
    """Whether a curve is continuous, by following every pair of successive sub-cubes to all orders."""

    def corner(state: int, position: int) -> list[int]:
        digit = int(curve.cell[state, position])
        return [digit // curve.base**k % curve.base for k in range(curve.dim)]

    pending = [(curve.start, None, None)]  # a state alone, or two with the step between them
    seen = set(pending)
    while pending:
        a, b, step = pending.pop()
        if b is None:
            last = curve.base**curve.dim - 1
            found = [(int(child), None, None) for child in curve.succ[a]]
            for at in range(last):
                across = tuple(np.subtract(corner(a, at + 1), corner(a, at)).tolist())
                found.append((int(curve.succ[a, at]), int(curve.succ[a, at + 1]), across))
        else:
            crossing = np.add(corner(b, 0), curve.base * np.array(step)) - corner(a, -1)
            found = [(int(curve.succ[a, -1]), int(curve.succ[b, 0]), tuple(crossing.tolist()))]
        for one in found:
            if one[2] is not None and sum(map(abs, one[2])) != 1:
                return False
            if one not in seen:
                seen.add(one)
                pending.append(one)
    return True


@pytest.mark.parametrize(("name", "dim"), CURVES)
def test_continuity_is_that_of_every_pair_of_states(name, dim):
    curve = sfc.curve(name, dim)
    assert curve.is_continuous == pairs_of_states(curve)


@pytest.mark.parametrize("states", [2, 3, 4])
def test_continuity_of_any_automaton_of_one_dimension_is_that_of_every_pair_of_states(states):
    generator = np.random.default_rng(states)
    found = set()
    for _ in range(1000):
        rank = generator.permuted(np.tile([0, 1], (states, 1)), axis=1)
        curve = sfc.Curve("any", 1, 2, rank, generator.integers(0, states, (states, 2)))
        assert curve.is_continuous == pairs_of_states(curve)
        found.add(curve.is_continuous)
    assert found == {False, True}


def test_the_first_jump_is_named_by_its_state_and_position():
    assert sfc.curve("morton", 2).first_jump() == (0, 1)
    hilbert = sfc.curve("hilbert", 2)
    assert hilbert.first_jump() is None
    along, across = 0, hilbert.succ[0, 0]  # from the origin along axis 0, and along axis 1
    rank, next = [*hilbert.rank, [0, 1, 3, 2]], [*hilbert.next, [along, across, across, along]]
    broken = sfc.Curve("broken", 2, 2, rank, next, start=4)
    assert broken.first_jump() == (4, 2)  # the same two states as at the first step, in the other direction


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


def walked(curve: sfc.Curve, cell: list[int], order: int) -> int:
    """Index of a cell, digit by digit."""
    state, found, base = curve.start, 0, curve.base
    for level in reversed(range(order)):
        digit = sum(c // base**level % base * base**k for k, c in enumerate(cell))
        found = found * base**curve.dim + int(curve.rank[state, digit])
        state = curve.next[state, digit]
    return found


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
        assert [walked(curve, cell, order) for cell in cells.tolist()] == index.tolist()
