"""The models of a cache against ones read off their definitions."""

import re
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfc.cache import AccessStream, HitRatio, StackDistances, addresses, block, lru, set_associative
from tests.strategies import INTEGER_DTYPES, access_streams

NOTHING = np.zeros(0, np.int64)


def brute_lru_hits(lines, capacity):
    """Hits of a cache of `capacity` lines, the least recently used of which makes room."""
    held, hits = OrderedDict(), 0
    for line in lines:
        hits += line in held
        held[line] = None
        held.move_to_end(line)
        if len(held) > capacity:
            held.popitem(last=False)
    return hits


def brute_set_hits(numbers, sets, ways):
    """Each set sees its own lines only."""
    return sum(brute_lru_hits([x for x in numbers if x % sets == chosen], ways) for chosen in range(sets))


@st.composite
def item_arrays(draw):
    """Any integers of any dtype: spread over all of it, or few and near one another, at either end too."""
    dtype = draw(st.sampled_from(INTEGER_DTYPES))
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    start = draw(st.sampled_from([low, 0, high - 9]))
    values = st.one_of(st.integers(low, high), st.sampled_from([low, 0, high]))
    values = draw(st.sampled_from([values, st.integers(start, start + 9)]))
    return draw(hnp.arrays(dtype, st.integers(0, 200), elements=values))


@st.composite
def geometries(draw):
    """(addresses, size, line, ways), the number of sets any."""
    line = 1 << draw(st.integers(0, 4))
    ways, sets = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    dtype = draw(st.sampled_from(INTEGER_DTYPES))
    furthest = min(3 * line * ways * sets, int(np.iinfo(dtype).max))
    drawn = draw(hnp.arrays(dtype, st.integers(0, 150), elements=st.integers(0, furthest)))
    return drawn, line * ways * sets, line, ways


@pytest.mark.quick
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
    for capacity in (len(rows), np.uint64(len(rows)), 2**70):
        assert block(stream, capacity).hits == len(stream.reads)


def test_a_large_stream_is_counted_whole():
    n, each = 50_000, 9
    reads = np.random.default_rng(0).integers(0, n, n * each).astype(np.int32)
    stream = AccessStream(np.arange(n + 1, dtype=np.int64) * each, reads)
    expected = int((np.repeat(np.arange(n), each) // 512 == reads // 512).sum())
    assert block(stream, 512) == HitRatio(expected, n * each)


@pytest.mark.quick
@given(items=item_arrays())
def test_lru_equals_a_brute_force_cache_of_every_capacity(items):
    found, capacities = lru(items), range(1, len(items) + 2)
    lines = items.tolist()
    assert found.reads == len(lines)
    assert found.cold == found.distinct == len(found.histogram) == len(set(lines))
    assert found.histogram.dtype == np.int64
    brute = [brute_lru_hits(lines, capacity) for capacity in capacities]
    assert [found.hits(capacity).hits for capacity in capacities] == brute
    if lines:
        assert found.ratios(np.array(capacities)).tolist() == [hits / len(lines) for hits in brute]


@pytest.mark.parametrize("lines", [3, 300, 5000])
def test_lru_equals_a_brute_force_cache_far_beyond_a_word_of_marks(lines):
    items = np.random.default_rng(lines).integers(0, lines, 20_000) ** 2 // lines
    found = lru(items)
    for capacity in (1, lines // 7 + 1, lines // 2, lines - 1):
        assert found.hits(capacity) == HitRatio(brute_lru_hits(items.tolist(), capacity), len(items))


@given(items=item_arrays())
def test_hits_grow_with_capacity_until_only_first_reads_miss(items):
    found = lru(items)
    hits = [found.hits(capacity).hits for capacity in range(1, found.distinct + 2)]
    assert hits == sorted(hits)
    assert hits[-1] == found.reads - found.distinct == found.hits(2**70).hits


@pytest.mark.quick
def test_the_stack_distances_of_a_known_stream():
    found = lru(np.array([ord(letter) for letter in "abcbaddacb"]))
    # a, b, c cold; b 1 (c), a 2 (b, c), d cold, d 0, a 1 (d), c 3 (b, a, d), b 3 (a, d, c)
    assert (found.histogram.tolist(), found.cold, found.reads) == ([1, 2, 1, 2], 4, 10)


@pytest.mark.quick
@pytest.mark.parametrize(("capacity", "faults"), [(3, 12), (4, 8), (5, 7)])
def test_the_page_faults_of_a_textbook_reference_string(capacity, faults):
    # Silberschatz, Galvin and Gagne, Operating System Concepts, on LRU page replacement: 12 at 3 frames.
    pages = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1]
    assert len(pages) - lru(np.array(pages)).hits(capacity).hits == faults


@given(drawn=access_streams())
def test_lru_reads_a_stream_in_its_order(drawn):
    rows, stream = drawn
    found, plain = lru(stream), lru(np.array([slot for row in rows for slot in row], np.int64))
    assert (found.histogram.tolist(), found.cold, found.reads) == (
        plain.histogram.tolist(),
        plain.cold,
        plain.reads,
    )


def test_lru_takes_strided_read_only_and_byte_swapped_items():
    items = np.random.default_rng(1).integers(-20, 20, 500)
    table = np.stack([items, items + 7], axis=1)
    table.flags.writeable = False
    for same in (table[:, 0], items.astype(items.dtype.newbyteorder()), items.tolist(), items * 2**40):
        assert lru(same).histogram.tolist() == lru(items).histogram.tolist()


@pytest.mark.quick
def test_nothing_read_hits_nothing():
    stream = AccessStream(np.array([0]), np.zeros(0, np.int32))
    for found in (lru(NOTHING), lru(stream)):
        assert (found.histogram.tolist(), found.cold, found.distinct, found.reads) == ([], 0, 0, 0)
        assert found.hits(3) == HitRatio(0, 0)
        assert np.isnan(found.ratios(np.array([1, 9]))).all()
    assert set_associative(NOTHING, 64, 16, 2) == HitRatio(0, 0)
    for layout in ("soa", "aos", "aos4"):
        for n in (0, 5):
            assert (
                addresses(NOTHING, layout, 3, 4, n).tolist()
                == addresses(stream, layout, 3, 4, n).tolist()
                == []
            )


def test_ratios_of_capacities_of_a_narrow_dtype_beyond_every_distance():
    found = lru(np.tile(np.arange(1000), 2))
    assert found.ratios(np.array([1, 127], np.int8)).tolist() == [0, 0]
    assert found.ratios(np.array([2**64 - 1, 1000], np.uint64)).tolist() == [0.5, 0.5]


@pytest.mark.quick
@given(drawn=geometries())
def test_set_associative_equals_a_brute_force_cache(drawn):
    places, size, line, ways = drawn
    numbers = [place // line for place in places.tolist()]
    expected = brute_set_hits(numbers, size // (line * ways), ways)
    assert set_associative(places, size, line, ways) == HitRatio(expected, len(numbers))


@given(drawn=geometries())
def test_one_set_equals_lru(drawn):
    places, size, line, _ = drawn
    assert set_associative(places, size, line, size // line) == lru(places // line).hits(size // line)


@given(drawn=geometries())
def test_one_way_equals_a_direct_mapped_cache(drawn):
    places, size, line, _ = drawn
    held, hits = {}, 0
    for place in places.tolist():
        number = place // line
        hits += held.get(number % (size // line)) == number
        held[number % (size // line)] = number
    assert set_associative(places, size, line, 1).hits == hits


@pytest.mark.quick
def test_addresses_of_the_upper_half_are_lines_of_their_own():
    top = np.array([2**64 - 1, 0, 2**64 - 1, 0], np.uint64)
    assert set_associative(top, 2, 1, 2) == HitRatio(2, 4)
    assert set_associative(top, 1, 1, 1) == HitRatio(0, 4)


def plain_addresses(slots, layout, dim, itemsize, n):
    """Of each load of each row."""
    expected = []
    for slot in slots:
        if layout == "soa":
            expected += [(slot + n * axis) * itemsize for axis in range(dim)]
        elif layout == "aos":
            expected += [(dim * slot + axis) * itemsize for axis in range(dim)]
        else:
            expected += range(slot * 4 * itemsize, (slot + 1) * 4 * itemsize, 16)
    return expected


@pytest.mark.quick
@given(data=st.data(), layout=st.sampled_from(["soa", "aos", "aos4"]), itemsize=st.sampled_from([4, 8]))
def test_addresses_equal_a_plain_loop(data, layout, itemsize):
    n = data.draw(st.integers(1, 50))
    dim = data.draw(st.integers(1, 4 if layout == "aos4" else 6))
    dtype = data.draw(st.sampled_from(INTEGER_DTYPES))
    slots = data.draw(hnp.arrays(dtype, st.integers(0, 20), elements=st.integers(0, n - 1)))
    expected = plain_addresses(slots.tolist(), layout, dim, itemsize, n)
    found = addresses(slots, layout, dim, itemsize, n)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    stream = AccessStream(np.array([0, len(slots)]), slots)
    assert addresses(stream, layout, dim, itemsize, n).tolist() == expected


def test_addresses_beyond_32_bits():
    slots = np.array([2**31 - 1], np.int32)
    assert addresses(slots, "soa", 2, 8, 2**31).tolist() == [8 * (2**31 - 1), 8 * (2**32 - 1)]
    assert addresses(slots, "aos4", 3, 8, 2**31).tolist() == [32 * (2**31 - 1), 32 * (2**31 - 1) + 16]


@pytest.mark.parametrize(
    ("capacity", "error"),
    [(0, ValueError), (-1, ValueError)]
    + [(wrong, TypeError) for wrong in (2.0, True, np.True_, "3", None, np.timedelta64(3, "s"))],
)
def test_a_capacity_that_is_no_positive_number_of_lines_or_slots_is_refused(capacity, error):
    message = f"capacity = {re.escape(repr(capacity))}.*; allowed: an integer of at least 1"
    with pytest.raises(error, match=rf"{message} \(lines of the cache\)"):
        lru(np.array([1, 1])).hits(capacity)
    with pytest.raises(error, match=rf"{message} \(slots of a block\)"):
        block(AccessStream(np.array([0, 1]), np.array([0], np.int32)), capacity)


@pytest.mark.parametrize(
    ("capacities", "message"),
    [
        ([3, 0], r"capacities\[1\] = 0; allowed: values of at least 1"),
        ([1.0], "capacities of dtype float64; allowed: any integer dtype; floor floats first, with np.floor"),
        ([True], "capacities of dtype bool; allowed: any integer dtype"),
        (3, r"capacities of shape \(\); allowed: \(n,\); .*ravel"),
    ],
)
def test_capacities_that_are_not_all_positive_are_refused(capacities, message):
    for found in (lru(np.array([1, 1])), lru(NOTHING)):
        with pytest.raises(ValueError, match=message):
            found.ratios(np.array(capacities))


@pytest.mark.parametrize("items", [np.zeros(3), np.zeros((2, 2), int), np.zeros(2, bool), np.array(5)])
@pytest.mark.parametrize(
    ("what", "model"),
    [
        ("items", lru),
        ("addresses", lambda items: set_associative(items, 64, 16, 2)),
        ("slots", lambda items: addresses(items, "soa", 3, 4, 9)),
    ],
)
def test_what_is_no_row_of_integers_is_refused(what, model, items):
    with pytest.raises(
        ValueError, match=rf"{what} of (dtype|shape) .*; allowed: (any integer dtype|\(n,\)); f"
    ):
        model(items)


@pytest.mark.parametrize(
    ("geometry", "error", "message"),
    [
        ((96, 24, 1), ValueError, "line = 24 bytes; allowed: a power of two, as 32"),
        ((100, 16, 2), ValueError, r"size = 100 bytes; allowed: a multiple of line \* ways = 32 bytes"),
        ((0, 16, 2), ValueError, "size = 0; allowed: an integer of at least 1, up to 1099511627776"),
        ((2**41, 16, 2), ValueError, f"size = {2**41}; allowed: an integer of at least 1, up to {2**40}"),
        ((64, 16, 0), ValueError, "ways = 0; allowed: an integer of at least 1"),
        ((64, 16.0, 2), TypeError, r"line = 16\.0 of class float; allowed: an integer of at least 1"),
        ((64, 16, True), TypeError, "ways = True of class bool; allowed: an integer of at least 1"),
        ((None, 16, 2), TypeError, "size = None of class NoneType; allowed: an integer"),
    ],
)
def test_an_impossible_cache_or_address_is_refused(geometry, error, message):
    with pytest.raises(error, match=message):
        set_associative(np.array([0]), *geometry)
    with pytest.raises(ValueError, match=r"addresses\[1\] = -16; allowed: values of at least 0; begin"):
        set_associative(np.array([3, -16]), 64, 16, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], "aos3", 3, 4, 1), "unknown layout 'aos3'; allowed: one of soa, aos, aos4"),
        (([0, 5], "soa", 3, 4, 5), r"slots\[1\] = 5; allowed: values of at least 0, up to 4; let n be"),
        (([0, -1], "soa", 3, 4, 5), r"slots\[1\] = -1; allowed: values of at least 0, up to 4"),
        (([0], "soa", 0, 4, 5), "dim = 0; allowed: an integer of at least 1"),
        (([0], "aos", 3, 0, 5), "itemsize = 0; allowed: an integer of at least 1"),
        (([0], "aos", 3, 4, -1), r"n = -1; allowed: an integer of at least 0, up to 7\d+ \(rows of 12 bytes"),
        (([0], "aos", 2, 4, 2**60), f"n = {2**60}; allowed: an integer of at least 0, up to {2**60 - 1}"),
        (([0], "aos4", 5, 4, 9), "rows of 5 x 4 bytes; aos4 allows 1 to 4 x 4, 8 or 16; else take aos"),
        (([0], "aos4", 3, 2, 9), "rows of 3 x 2 bytes; aos4 allows"),
    ],
)
def test_addresses_that_no_array_has_are_refused(arguments, message):
    slots, *others = arguments
    with pytest.raises(ValueError, match=message):
        addresses(np.array(slots), *others)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], None, 3, 4, 1), "layout = None of class NoneType; allowed: one of soa, aos, aos4"),
        (([0], "soa", 3.0, 4, 1), r"dim = 3\.0 of class float; allowed: an integer"),
        (([0], "soa", 3, "4", 1), "itemsize = '4' of class str; allowed: an integer"),
        (([0], "soa", 3, 4, True), "n = True of class bool; allowed: an integer"),
        ((None, "soa", 3, 4, 1), "slots = None of class NoneType; allowed: an array of any integer dtype"),
    ],
)
def test_an_argument_of_addresses_of_a_wrong_class_is_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        addresses(*arguments)


def test_what_no_memory_holds_is_refused_before_it_is_allocated():
    with pytest.raises(
        ValueError, match=r"1 rows of \d+ loads: \d[\d,]+ bytes .*; allowed: up to .*take fewer"
    ):
        addresses([0], "soa", 2**42, 4, 1)
    with pytest.raises(
        ValueError, match=rf"a cache of {2**40} lines: \d[\d,]+ bytes .*; allowed: .*longer lines"
    ):
        set_associative([0], 2**40, 1, 1)


def test_rows_that_this_machine_cannot_hold_are_refused(monkeypatch):
    monkeypatch.setattr("sfc.checks.host_memory", lambda: 2**30)
    with pytest.raises(
        ValueError, match=r"1 rows of 4294967296 loads: 68,719,476,752 bytes .*; allowed: up to 1,"
    ):
        addresses([0], "soa", 2**32, 1, 1)
    assert len(addresses([0], "soa", 2**16, 1, 1)) == 2**16


@pytest.mark.parametrize(
    ("histogram", "cold", "reads", "error"),
    [
        ([1, 0], 2, 3, None),
        ([1, 0], 2, 4, ValueError),
        ([1], 2, 3, ValueError),
        ([-1, 2], 2, 3, ValueError),
        ([1.0, 0.0], 2, 3, ValueError),
        (None, 2, 3, TypeError),
        ([1, 0], 2.0, 3, TypeError),
        ([1, 0], 2, "3", TypeError),
    ],
)
def test_distances_that_do_not_add_up_are_refused(histogram, cold, reads, error):
    if error is None:
        assert StackDistances(histogram, np.int8(cold), np.uint8(reads)).hits(1) == HitRatio(1, 3)
        return
    with pytest.raises(error, match="allowed: "):
        StackDistances(histogram, cold, reads)
