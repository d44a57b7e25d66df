"""The block model of a cache against one read off its definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfc.cache import AccessStream, HitRatio, block
from tests.strategies import access_streams


@given(drawn=access_streams(), capacity=st.integers(1, 30))
def test_block_equals_a_brute_force_count(drawn, capacity):
    rows, stream = drawn
    hits = sum(reader // capacity == slot // capacity for reader, row in enumerate(rows) for slot in row)
    assert block(stream, capacity) == HitRatio(hits, sum(map(len, rows)))


@given(drawn=access_streams(), capacity=st.integers(1, 10), factor=st.integers(1, 5))
def test_hits_grow_with_capacity_where_blocks_merge(drawn, capacity, factor):
    _, stream = drawn
    assert block(stream, factor * capacity).hits >= block(stream, capacity).hits


@given(drawn=access_streams())
def test_a_cache_that_holds_everything_serves_every_read(drawn):
    rows, stream = drawn
    assert block(stream, len(rows)).hits == len(stream.reads)


def test_a_large_stream_is_counted_whole():
    n, each = 50_000, 9
    reads = np.random.default_rng(0).integers(0, n, n * each).astype(np.int32)
    stream = AccessStream(np.arange(n + 1, dtype=np.int64) * each, reads)
    expected = int((np.repeat(np.arange(n), each) // 512 == reads // 512).sum())
    assert block(stream, 512) == HitRatio(expected, n * each)


def test_ratio_is_hits_over_reads_and_nan_for_none():
    assert HitRatio(3, 4).ratio == 0.75
    assert math.isnan(HitRatio(0, 0).ratio)


def test_speed_up_compares_with_a_cache_that_always_misses():
    assert HitRatio(0, 10).speed_up() == 1
    assert HitRatio(10, 10).speed_up() == 100
    assert HitRatio(5, 10).speed_up(miss_cost=4) == pytest.approx(40 / 25, rel=1e-15)


@pytest.mark.parametrize("capacity", [0, -3])
def test_a_capacity_below_one_is_refused(capacity):
    with pytest.raises(ValueError, match=rf"capacity {capacity} .*at least 1"):
        block(AccessStream(np.array([0, 1]), np.array([0], np.int32)), capacity)


@pytest.mark.parametrize("offsets", [[0, 2], [1, 1], [0, 2, 1], [0, 0]])
def test_offsets_that_do_not_rise_to_the_number_of_reads_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets must"):
        AccessStream(np.array(offsets), np.array([0], np.int32))
