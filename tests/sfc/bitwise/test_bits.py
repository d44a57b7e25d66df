"""Bits interleaved and separated, and Gray codes, against plain Python."""

import numpy as np
import pytest

from sfc.bitwise.bits import (
    gray_code,
    gray_number,
    interleaved,
    is_inside,
    last_key,
    masks_of,
    ones,
    separate,
)
from sfc.compile import kernel

CASES = [(1, 62), (2, 32), (3, 21), (5, 1), (5, 12), (7, 9), (13, 4), (32, 2), (33, 1), (64, 1), (4, 0)]


@kernel
def both(cells, order, masks, keys, again):
    for i in range(len(cells)):
        keys[i] = interleaved(cells, i, masks)
        separate(keys[i], masks, again, i)


@kernel
def gray_and_back(numbers, codes, again):
    for i in range(len(numbers)):
        codes[i] = gray_code(numbers[i])
        again[i] = gray_number(codes[i])


@kernel
def counted(numbers, found):
    for i in range(len(numbers)):
        found[i] = ones(numbers[i])


@kernel
def inside(cells, order, found):
    for i in range(len(cells)):
        found[i] = is_inside(cells, i, order)
    return last_key(cells.shape[1], order)


@pytest.mark.parametrize(("dim", "order"), CASES)
def test_bit_b_of_axis_k_is_bit_k_of_group_b(dim, order):
    last = 2**order - 1
    cells = np.random.default_rng(dim).integers(0, last, (50, dim), dtype=np.uint64, endpoint=True)
    cells[0], cells[1] = 0, last
    keys, again = np.empty(50, np.uint64), np.empty_like(cells)
    both(cells, order, masks_of(dim, order), keys, again)
    assert np.array_equal(again, cells)
    for cell, key in zip(cells.tolist(), keys.tolist(), strict=True):
        assert key == sum((cell[k] >> b & 1) << b * dim + k for b in range(order) for k in range(dim))


def test_masks_spread_a_coordinate_by_halves():
    masks = [0b001001001001, 0b000011000011, 0b1111]
    assert masks_of(3, 4).tolist() == masks
    assert masks_of(64, 1).tolist() == [1]
    assert masks_of(3, 0).tolist() == [0]


def test_a_gray_code_changes_one_bit_at_a_step():
    numbers = np.array([*range(100), 2**63, 2**64 - 1], np.uint64)
    codes, again = np.empty_like(numbers), np.empty_like(numbers)
    gray_and_back(numbers, codes, again)
    assert np.array_equal(again, numbers)
    assert codes.tolist()[:4] == [0, 1, 3, 2]
    assert all((int(codes[k]) ^ int(codes[k + 1])).bit_count() == 1 for k in range(99))


def test_ones_are_counted():
    numbers = np.random.default_rng(0).integers(0, 2**64 - 1, 200, np.uint64, endpoint=True)
    numbers[:3] = 0, 1, 2**64 - 1
    numbers[3:67] = np.uint64(1) << np.arange(64, dtype=np.uint64)
    found = np.empty(200, np.int64)
    counted(numbers, found)
    assert found.tolist() == [number.bit_count() for number in numbers.tolist()]


@pytest.mark.parametrize(("dim", "order"), CASES)
def test_a_cell_is_inside_below_two_to_the_order(dim, order):
    side = 2**order
    cells = np.zeros((4, dim), np.uint64)
    cells[1], cells[2, -1], cells[3, 0] = side - 1, side, 2**64 - 1
    found = np.empty(4, bool)
    assert int(inside(cells, order, found)) == side**dim - 1
    assert found.tolist() == [True, True, False, False]
