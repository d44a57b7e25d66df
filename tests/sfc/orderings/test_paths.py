"""Paths that fit their box: gilbert and the pancake take unit steps only."""

import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc.orderings import gilbert
from tests import tiers
from tests.strategies import shapes_filled_by
from tests.tiers import nightly


def steps(path: np.ndarray) -> np.ndarray:
    return np.abs(np.diff(path, axis=0)).sum(axis=1)


def assert_a_path_by_unit_steps(name: str, shape: tuple[int, ...]) -> None:
    ordering = sfc.ordering(name, shape)
    path = ordering.traversal()
    numbers = path @ np.cumprod([1, *shape[:-1]])
    assert np.array_equal(np.sort(numbers), np.arange(ordering.size)), shape
    assert (steps(path) == 1).all(), shape
    assert np.array_equal(ordering.rank(path), np.arange(ordering.size)), shape


@pytest.mark.parametrize("nx", [nx if nx in (1, 2, 3, 8, 11, 12) else nightly(nx) for nx in range(1, 13)])
def test_gilbert_fills_every_box_of_up_to_12_cubed_by_unit_steps(nx):
    for ny, nz in itertools.product(range(1, 13), repeat=2):
        assert_a_path_by_unit_steps("gilbert", (nx, ny, nz))


@pytest.mark.parametrize("largest", [20, nightly(40)])
def test_gilbert_fills_every_small_rectangle_without_a_diagonal(largest):
    for shape in itertools.product(range(1, largest + 1), repeat=2):
        assert_a_path_by_unit_steps("gilbert", shape)


@tiers.examples(25)
@given(shape=st.tuples(*[st.integers(1, 64)] * 3))
def test_gilbert_fills_boxes_of_up_to_64_cubed_by_unit_steps(shape):
    assert_a_path_by_unit_steps("gilbert", shape)


@pytest.mark.parametrize("shape", [(1, 200, 3), (301, 4, 6), (5, 999), (1000, 2), (2, 2, 501), (7, 128, 9)])
def test_gilbert_fills_long_boxes_by_unit_steps(shape):
    assert_a_path_by_unit_steps("gilbert", shape)


@pytest.mark.parametrize("order", range(1, 7))
def test_gilbert_on_a_square_of_a_power_of_two_is_hilbert_s_curve(order):
    path = sfc.ordering("gilbert", (2**order,) * 2).traversal()
    hilbert = sfc.curve("hilbert", 2).traversal(order)
    assert np.array_equal(path, hilbert) or np.array_equal(path, hilbert[:, ::-1])


@pytest.mark.parametrize("shape", [(64, 64, 8), (128, 128, 4), nightly((512, 512, 16))])
def test_the_pancake_takes_unit_steps(shape):
    path = sfc.ordering("pancake", shape).traversal()
    assert len(path) == np.prod(shape)
    assert (steps(path) == 1).all()


@tiers.examples(40)
@given(shape=shapes_filled_by("pancake", 3))
def test_the_pancake_fills_its_box_by_unit_steps(shape):
    assert_a_path_by_unit_steps("pancake", shape)


@pytest.mark.quick
def test_the_pancake_walks_cube_by_cube_along_hilbert_s_curve():
    path = sfc.ordering("pancake", (32, 32, 8)).traversal()
    blocks = path[:: 8**3, :2] // 8
    assert np.array_equal(path[:, :2] // 8, np.repeat(blocks, 8**3, axis=0))
    hilbert = sfc.curve("hilbert", 2).traversal(2)
    assert np.array_equal(blocks, hilbert) or np.array_equal(blocks, hilbert[:, ::-1])


@pytest.mark.parametrize("shape", [(64, 64, 10), (60, 64, 8), (64, 4, 8), (8, 64, 64)])
def test_a_shape_that_a_pancake_cannot_fill_is_refused_with_one_it_can(shape):
    height = 2 ** int(np.ceil(np.log2(shape[2])))
    around = tuple(-(-side // height) * height for side in shape[:2])
    with pytest.raises(
        ValueError, match=rf"the smallest that holds this box is \({around[0]}, {around[1]}, {height}\)"
    ):
        sfc.ordering("pancake", shape)
    sfc.ordering("pancake", (*around, height))


@pytest.mark.quick
def test_gilbert_keeps_its_order_in_every_small_box_and_some_larger():
    """Recorded where each cell was found by descending the cuts, without tables."""
    digest = hashlib.sha256()
    large = [(100, 90, 80), (41, 97, 89), (63, 63, 63), (300, 200, 1), (1, 255, 301), (2, 3, 999)]
    for shape in [*itertools.product(range(1, 9), repeat=3), *large]:
        digest.update(sfc.ordering("gilbert", shape).traversal().astype(np.uint16).tobytes())
    assert digest.hexdigest() == "40760a1c8e38e5e4d18ca74c86ad3abd988b7d5ff372d8a941bf52b6de9ba7a8"


@pytest.mark.parametrize(
    "shape",
    [
        (2**61, 3),
        (3, 2**61),
        (2**62 - 1, 2),
        (2**63 - 1, 1, 1),
        (2**21 - 1,) * 3,
        (2**60 + 1, 2, 3),
        (123457, 98765, 543211),
        (3**12, 5**9, 7**7),
        (3037000499, 3037000499),
        (1000, 2**40, 999),
    ],
)
def test_gilbert_walks_huge_boxes_by_unit_steps(shape):
    ordering = sfc.ordering("gilbert", shape)
    ranks = np.random.default_rng(0).integers(0, ordering.size - 1, 1000)
    ranks[:2] = 0, ordering.size - 2
    cells, after = ordering.cells(ranks), ordering.cells(ranks + 1)
    assert ((cells >= 0) & (cells < shape)).all()
    assert (np.abs(after - cells).sum(axis=1) == 1).all()
    assert np.array_equal(ordering.rank(cells), ranks)
    assert np.array_equal(ordering.rank(after), ranks + 1)


@pytest.mark.quick
@pytest.mark.parametrize("shape", [(40, 36, 28), (99, 77), (700, 3, 2)])
def test_gilbert_finds_cells_alike_in_any_order_of_the_ranks(shape):
    ordering = sfc.ordering("gilbert", shape)
    ranks = np.random.default_rng(1).permutation(ordering.size)
    assert np.array_equal(ordering.cells(ranks), ordering.traversal()[ranks])
    backwards = np.asfortranarray(ordering.traversal()[::-1])
    assert np.array_equal(ordering.rank(backwards), np.arange(ordering.size)[::-1])


def test_a_pancake_ranks_by_the_table_of_its_blocks(monkeypatch):
    ordering = sfc.ordering("pancake", (96, 64, 8))
    path = ordering.traversal()
    monkeypatch.setattr(gilbert, "_rank", None)
    assert np.array_equal(ordering.rank(path), np.arange(ordering.size))


@pytest.mark.parametrize("shape", [(2**20, 2**20, 1), (2**30, 2**20, 2**4)])
def test_a_pancake_of_too_many_blocks_is_refused(shape):
    blocks = math.prod(shape[:2]) // shape[2] ** 2
    with pytest.raises(ValueError, match=rf"{blocks} blocks; allowed: up to {2**28}, .* or gilbert"):
        sfc.ordering("pancake", shape)
    sfc.ordering("pancake", (2**20, 2**20, 2**10))
