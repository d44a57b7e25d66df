"""Paths that fit their box: gilbert and the pancake take unit steps only."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfc
from tests.strategies import shapes_filled_by


def steps(path: np.ndarray) -> np.ndarray:
    return np.abs(np.diff(path, axis=0)).sum(axis=1)


def assert_a_path_by_unit_steps(name: str, shape: tuple[int, ...]) -> None:
    ordering = sfc.ordering(name, shape)
    path = ordering.traversal()
    numbers = path @ np.cumprod([1, *shape[:-1]])
    assert np.array_equal(np.sort(numbers), np.arange(ordering.size)), shape
    assert (steps(path) == 1).all(), shape
    assert np.array_equal(ordering.rank(path), np.arange(ordering.size)), shape


@pytest.mark.parametrize("nx", range(1, 13))
def test_gilbert_fills_every_box_of_up_to_12_cubed_by_unit_steps(nx):
    for ny, nz in itertools.product(range(1, 13), repeat=2):
        assert_a_path_by_unit_steps("gilbert", (nx, ny, nz))


def test_gilbert_fills_every_rectangle_of_up_to_40_squared_without_a_diagonal():
    for shape in itertools.product(range(1, 41), repeat=2):
        assert_a_path_by_unit_steps("gilbert", shape)


@settings(max_examples=25)
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


@pytest.mark.parametrize("shape", [(64, 64, 8), (128, 128, 4), (512, 512, 16)])
def test_the_pancake_takes_unit_steps(shape):
    path = sfc.ordering("pancake", shape).traversal()
    assert len(path) == np.prod(shape)
    assert (steps(path) == 1).all()


@settings(max_examples=40)
@given(shape=shapes_filled_by("pancake", 3))
def test_the_pancake_fills_its_box_by_unit_steps(shape):
    assert_a_path_by_unit_steps("pancake", shape)


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
