"""Curves of 1 to 64 dims: operations on bits against tables, and both against definitions in plain Python."""

from itertools import product

import numpy as np
import pytest

import sfc
from sfc.curves import butz, gray, morton, skilling
from tests.tiers import by_default, full

FAMILIES = {"butz": butz, "gray": gray, "morton": morton, "skilling": skilling}
BOTH = [(name, dim) for name in FAMILIES for dim in range(2, FAMILIES[name].TABLE_DIM + 1)]
DIMS = (5, 6, 10, 21, 32, 64)
NAMES = "hilbert", "skilling", "gray", "morton"


def is_kept(name: str, dim: int) -> bool:
    """Whether it is by default: a walk through tables is compiled for each dim, and 5 is by default."""
    return dim != 6 or name == "skilling"


in_many_dims = pytest.mark.parametrize(
    ("name", "dim"), by_default(product(NAMES, DIMS), lambda name, dim: is_kept(name, dim), full)
)
EXHAUSTIVE = [(5, 3), (6, 2), (10, 1), (16, 1)]  # dim and order of up to 2**16 cells


def some_indices(curve, order: int, count: int = 500) -> np.ndarray:
    """Indices at random, and those at both ends and beside every power of two."""
    last = 2 ** (curve.dim * order) - 1
    drawn = np.random.default_rng(curve.dim).integers(0, last, count, dtype=np.uint64, endpoint=True).tolist()
    edges = [2**k + beside for k in range(curve.dim * order) for beside in (-1, 0)]
    return np.array([*drawn, *edges, last], np.uint64)


@pytest.mark.parametrize(
    ("name", "dim"),
    by_default(
        [("gray", 1), ("morton", 1), *BOTH], lambda *curve: curve[1] < 6 or curve == ("butz", 8), full
    ),
)
def test_operations_on_bits_give_the_indices_of_the_tables(name, dim):
    by_tables, by_bits = FAMILIES[name].automaton(dim), FAMILIES[name].bitwise(dim)
    assert isinstance(by_tables, sfc.Curve)
    assert by_tables.max_order == by_bits.max_order
    assert by_tables.is_continuous == by_bits.is_continuous
    assert by_tables.is_closed == by_bits.is_closed
    for order in {*range(0, by_bits.max_order, 4), 1, by_bits.max_order}:
        index = some_indices(by_bits, order, 100)
        cells = by_tables.decode(index, order)
        assert np.array_equal(by_bits.decode(index, order), cells)
        assert np.array_equal(by_bits.encode(cells, order), index)


@pytest.mark.parametrize(
    ("name", "dim", "order"),
    by_default(
        [(name, *case) for name, case in product(NAMES, EXHAUSTIVE)],
        lambda name, dim, _: is_kept(name, dim),
        full,
    ),
)
def test_every_cell_is_visited_once(name, dim, order):
    curve = sfc.curve(name, dim)
    cells = curve.traversal(order)
    assert cells.min() == 0
    assert cells.max() == 2**order - 1
    assert len(np.unique(cells @ 2 ** (order * np.arange(dim)))) == len(cells) == 2 ** (dim * order)
    assert np.array_equal(curve.encode(cells, order), np.arange(len(cells)))
    steps = np.abs(np.diff(cells, axis=0)).sum(axis=1)
    assert (steps == 1).all() == curve.is_continuous or (name, order) == ("gray", 1)


@in_many_dims
def test_the_longest_keys_come_back_and_no_cell_is_outside(name, dim):
    curve = sfc.curve(name, dim)
    for order in range(curve.max_order + 1):
        index = some_indices(curve, order)
        cells = curve.decode(index, order)
        assert cells.min() >= 0
        assert cells.max() < 2**order
        assert np.array_equal(curve.encode(cells, order), index)
    cells = np.random.default_rng(0).integers(0, curve.side(order), (20_000, dim))
    index = curve.encode(cells, order)
    assert np.array_equal(curve.decode(index, order), cells)
    assert len(np.unique(index)) == len(np.unique(cells, axis=0))


@in_many_dims
def test_steps_are_of_one_cell_if_it_is_continuous(name, dim):
    curve = sfc.curve(name, dim)
    assert curve.is_continuous == (name in ("hilbert", "skilling"))
    longest = []
    for order in range(1, curve.max_order + 1):
        index = some_indices(curve, order)
        index = index[index < 2 ** (dim * order) - 1]
        steps = curve.decode(index + np.uint64(1), order) - curve.decode(index, order)
        longest.append(np.abs(steps).sum(axis=1).max())
    assert (max(longest) == 1) == (curve.is_continuous or (name, curve.max_order) == ("gray", 1))


@in_many_dims
def test_a_coarser_order_ranks_the_parents(name, dim):
    curve = sfc.curve(name, dim)
    for order in range(1, curve.max_order + 1):
        index = some_indices(curve, order)
        parents = np.array([int(i) >> dim for i in index], np.uint64)
        assert np.array_equal(curve.encode(curve.decode(index, order) // 2, order - 1), parents)


@pytest.mark.parametrize("name", NAMES)
def test_cells_outside_and_indices_past_the_end_are_refused_in_64d(name):
    curve = sfc.curve(name, 64)
    cells = np.zeros((3, 64), np.int64)
    for wrong in (2, -1):
        cells[1, 63] = wrong
        with pytest.raises(ValueError, match=rf"{wrong}\] in row 1 is outside .*; allowed: 0 <= cell < 2;"):
            curve.encode(cells, 1)
    with pytest.raises(ValueError, match=rf"index -1 in row 1 is negative; allowed: 0 <= index < {2**64}"):
        curve.decode([0, -1], 1)
    with pytest.raises(ValueError, match=r"index 1 in row 0 is past the end of the curve of order 0"):
        curve.decode([1], 0)
    with pytest.raises(ValueError, match=rf"order of {name} in 64D = 2; allowed: .* up to 1; .*64 bits"):
        curve.encode(cells, 2)
    with pytest.raises(ValueError, match=r"are needed; allowed: up to .*, which are free"):
        curve.traversal(1)


@pytest.mark.parametrize("dim", by_default([2, 3, 4, 8, 9, *DIMS], lambda dim: dim not in (6, 8), full))
def test_butz_s_curve_is_made_of_turned_and_mirrored_copies(dim):
    curve = butz.butz(dim)
    for order in {1, min(2, curve.max_order), curve.max_order}:
        index = some_indices(curve, order, 20)
        turned = [butz_cell(int(i), order, dim) for i in index]
        assert curve.decode(index, order).tolist() == [
            [cell[axis - 1] for axis in range(dim)] for cell in turned
        ]


def butz_cell(index: int, order: int, dim: int) -> list[int]:
    """Cell of an index in axes turned by one, from the smallest cubes outwards."""
    if order == 0:
        return [0] * dim
    w, rest = divmod(index, 2 ** (dim * (order - 1)))
    even = max(0, w - 1) & ~1  # the sub-cube is entered at the corner of its Gray code
    step = w - 1 if w % 2 == 0 else w
    along = len(bin(step)) - len(bin(step).rstrip("1")) if w else 0  # and left along the step's axis
    inner, half = butz_cell(rest, order - 1, dim), 2 ** (order - 1)
    cell = []
    for axis in range(dim):
        coordinate = inner[(axis - along - 1) % dim]
        if (even ^ even >> 1) >> axis & 1:
            coordinate = half - 1 - coordinate
        cell.append(coordinate + half * ((w ^ w >> 1) >> axis & 1))
    return cell


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 10, 21, 32, 64])
def test_skilling_s_curve_is_his_transposition(dim):
    curve = skilling.skilling(dim)
    for order in range(1, curve.max_order + 1):
        index = some_indices(curve, order, 20)
        assert curve.decode(index, order).tolist() == [transposed(int(i), order, dim) for i in index]


def transposed(index: int, order: int, dim: int) -> list[int]:
    """Axes of an index: its bits transposed, Gray-decoded, and the excess turns undone from below."""
    bits = [index >> k & 1 for k in reversed(range(order * dim))]
    axes = [int("".join(str(b) for b in bits[k::dim]), 2) for k in range(dim)]
    carry = axes[-1] >> 1
    for k in range(dim - 1, 0, -1):
        axes[k] ^= axes[k - 1]
    axes[0] ^= carry
    level = 2
    while level < 1 << order:
        mask = level - 1
        for k in range(dim - 1, -1, -1):
            if axes[k] & level:
                axes[0] ^= mask
            else:
                swapped = (axes[0] ^ axes[k]) & mask
                axes[0] ^= swapped
                axes[k] ^= swapped
        level <<= 1
    return axes


@pytest.mark.parametrize("dim", [2, 3, 10, *map(full, (5, 6, 21, 32, 64))])
def test_skilling_s_curve_is_that_of_numpy_hilbert_curve(dim):
    """Compared with version 1.0.1, whose axis 0 is ours."""
    hilbert = pytest.importorskip("hilbert", reason="numpy-hilbert-curve is not installed")
    curve = skilling.skilling(dim)
    for order in {1, min(2, curve.max_order), curve.max_order}:
        index = some_indices(curve, order)
        cells = curve.decode(index, order)
        assert np.array_equal(hilbert.decode(index, dim, order), cells)
        assert np.array_equal(hilbert.encode(cells, dim, order), index)
