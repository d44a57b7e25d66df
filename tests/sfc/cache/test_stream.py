"""A stream of accesses is well formed, whatever the arrays it is made of; what comes of it is a ratio."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfc.cache import AccessStream, HitRatio, block, lru, set_associative
from tests.strategies import INTEGER_DTYPES


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
@pytest.mark.parametrize("offsets", [[0, 2], [1, 1], [0, 1, 0, 1], [0, 0], [], [0, 100, 1]])
def test_offsets_that_do_not_rise_to_the_number_of_reads_are_refused(offsets, dtype):
    with pytest.raises(ValueError, match="offset"):
        AccessStream(np.array(offsets, dtype), np.array([0]))


@pytest.mark.parametrize("dtype", [*INTEGER_DTYPES, np.dtype(">i4")])
def test_any_integers_make_the_same_stream(dtype):
    stream = AccessStream(np.array([0, 2, 3, 3], dtype), np.array([1, 2, 0], dtype))
    assert stream.offsets.dtype == np.int64
    assert stream.reads.dtype == np.int32
    assert block(stream, 2) == HitRatio(2, 3)
    assert block(stream, 3) == block(stream, 2**64) == HitRatio(3, 3)


@pytest.mark.quick
def test_a_slot_beyond_32_bits_is_kept():
    stream = AccessStream([0, 2], [0, 2**40])
    assert stream.reads.tolist() == [0, 2**40]
    assert block(stream, 1) == HitRatio(1, 2)


@pytest.mark.parametrize("reads", [[0.5], [-1], [[0]], [2**63]])
def test_what_is_no_slot_is_refused(reads):
    with pytest.raises(ValueError, match=r"reads(\[0\])? .*allowed"):
        AccessStream(np.array([0, 1]), np.array(reads))


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_a_reader_may_be_any_slot(dtype):
    assert AccessStream([0, 2, 3], [1, 2, 0]).readers.tolist() == [0, 1]
    stream = AccessStream([0, 2, 3], [1, 2, 0], np.array([5, 0], dtype))
    assert stream.readers.tolist() == [5, 0]
    assert stream.readers.dtype == np.int32
    assert block(stream, 1) == HitRatio(1, 3)
    assert block(stream, 4) == HitRatio(1, 3)
    assert block(stream, 6) == HitRatio(3, 3)


@pytest.mark.quick
def test_a_block_hits_whatever_the_order_of_the_readers():
    stream = AccessStream([0, 2, 3, 6], [1, 2, 0, 0, 1, 2])
    turned = AccessStream([0, 3, 5, 6], [0, 1, 2, 1, 2, 0], [2, 0, 1])
    assert [block(stream, c) for c in (1, 2, 3)] == [block(turned, c) for c in (1, 2, 3)]


@pytest.mark.parametrize("readers", [[0], [0, 1, 2], [0, -1], [0.0, 1.0], [[0, 1]]])
def test_what_are_no_readers_is_refused(readers):
    with pytest.raises(ValueError, match=r"readers.*allowed"):
        AccessStream([0, 2, 3], [1, 2, 0], np.array(readers))


def test_offsets_that_are_no_integers_are_refused():
    with pytest.raises(ValueError, match=r"offsets of dtype float64; allowed: any integer dtype; floor"):
        AccessStream(np.array([0.0, 1.0]), np.array([0]))


def test_ratio_is_hits_over_reads_and_nan_for_none():
    assert HitRatio(3, 4).ratio == 0.75
    assert math.isnan(HitRatio(0, 0).ratio)


@pytest.mark.quick
def test_speed_up_compares_with_a_cache_that_always_misses():
    assert HitRatio(0, 10).speed_up() == 1
    assert HitRatio(10, 10).speed_up() == 100
    assert HitRatio(5, 10).speed_up(miss_cost=4) == pytest.approx(40 / 25, rel=1e-15)


@pytest.mark.parametrize("cost", [0, -1, np.inf, np.nan])
def test_a_cost_of_a_miss_that_is_none_is_refused(cost):
    with pytest.raises(ValueError, match=rf"miss_cost = {cost}; allowed: a finite number above 0"):
        HitRatio(5, 10).speed_up(cost)


@pytest.mark.parametrize("cost", [None, "3", True, 1j, np.timedelta64(3, "s"), [3], {}])
def test_a_cost_of_a_miss_that_is_no_number_is_refused(cost):
    with pytest.raises(TypeError, match=r"miss_cost = .* of class .*; allowed: a finite number above 0"):
        HitRatio(5, 10).speed_up(cost)


@pytest.mark.parametrize("cost", [np.float16(4), np.int8(4), np.uint64(4), Fraction(4)])
def test_a_cost_of_a_miss_may_be_a_number_of_any_width(cost):
    found = HitRatio(5, 10).speed_up(cost)
    assert (found, type(found)) == (HitRatio(5, 10).speed_up(4.0), float)


@pytest.mark.parametrize(
    ("hits", "reads", "error"),
    [
        (1.0, 2, TypeError),
        (1, None, TypeError),
        (True, 2, TypeError),
        (-1, 2, ValueError),
        (3, 2, ValueError),
    ],
)
def test_hits_that_are_not_of_the_reads_are_refused(hits, reads, error):
    with pytest.raises(error, match=r"(hits|reads) = .*; allowed: an integer"):
        HitRatio(hits, reads)
    assert type(HitRatio(np.uint8(1), np.uint8(200)).reads) is int


def test_nothing_read_is_nothing_hit():
    assert AccessStream([0], []).reads.dtype == np.int32
    assert block(AccessStream([0], []), 4) == HitRatio(0, 0)
    assert lru([]).reads == 0
    assert set_associative([], 64, 16, 2) == HitRatio(0, 0)


def test_what_is_no_stream_is_refused():
    for wrong in (np.array([1, 2]), None, "reads", [0, 1]):
        with pytest.raises(
            TypeError, match=r"stream = .* of class .*; allowed: an sfc.cache.AccessStream; make"
        ):
            block(wrong, 3)


@pytest.mark.parametrize("argument", ["offsets", "reads", "readers"])
def test_durations_and_masks_are_no_slots(argument):
    sound = {"offsets": [0, 1, 2], "reads": [0, 1], "readers": [0, 1]}
    durations = np.array(sound[argument], "m8[s]")
    with pytest.raises(
        ValueError, match=rf"{argument} of dtype timedelta64\[s\]; allowed: any integer dtype"
    ):
        AccessStream(**sound | {argument: durations})
    masked = np.ma.array(sound[argument], mask=[True] + [False] * (len(durations) - 1))
    with pytest.raises(ValueError, match=rf"{argument} is a masked array; .*filled"):
        AccessStream(**sound | {argument: masked})


@pytest.mark.parametrize("wrong", [None, {}, "01", {0, 1}, object()])
def test_what_is_no_array_is_no_stream(wrong):
    for model in (
        lru,
        lambda items: set_associative(items, 64, 16, 2),
        lambda items: AccessStream([0], items),
    ):
        with pytest.raises(TypeError, match=r"= .* of class .*; allowed: an array of any integer dtype"):
            model(wrong)
