"""Loads of warps: from elements of arrays to events, to sectors, and to what the first cache lacks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfc import cache
from sfc.bitwise.bits import mixed
from sfc.cache.loads import ALIGNED, LANES
from sfc.cache.multiprocessor import L1


def events_of(loads: cache.WarpLoads) -> list[list[tuple]]:
    """The events of each warp: addresses, whether it waits, kind."""
    lanes = np.split(loads.address, loads.start[1:-1])
    addresses = map(np.ndarray.tolist, lanes)
    events = [*zip(addresses, loads.waits.tolist(), loads.kind.tolist(), strict=False)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


@st.composite
def streams(draw) -> tuple[cache.LoadStream, list[list[tuple]]]:
    """A stream of random accesses, and the events of all its warps by a plain loop."""
    n, columns = draw(st.integers(1, 150)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from([3, 60, 5000]))
    one = random.integers(-1, most, (n, columns))
    accesses = [
        cache.Access("own", np.arange(n), 16),
        cache.Access("links", one, 4, waits=True),
        cache.Access("others", random.integers(-2, most, (n, columns)), draw(st.sampled_from([1, 8, 16]))),
        cache.Access("own", np.arange(n), 16, "written", waits=draw(st.booleans())),
    ]
    extents = [(("own", 16), n), (("links", 4), one.max() + 1)]
    extents.append((("others", accesses[2].itemsize), accesses[2].element.max() + 1))
    base, start = {}, 0
    for (name, size), count in extents:
        base[name] = start
        start += -(-size * max(0, int(count)) // ALIGNED) * ALIGNED
    order = [(accesses[0], None)]
    loops = [(accesses[1], accesses[2])] if columns > 1 else []
    for k in range(columns if loops else 0):
        order += [(accesses[1], k), (accesses[2], k)]
    if not loops:
        order += [(accesses[1], 0), (accesses[2], 0)]
    order.append((accesses[3], None))
    expected = []
    for first in range(0, n, LANES):
        events = []
        for access, k in order:
            element = access.element[first : first + LANES]
            element = element if k is None else element[:, k]
            found = [base[access.array] + access.itemsize * int(e) for e in element if e >= 0]
            if found:
                events.append((found, access.waits, int(access.kind == "written")))
        expected.append(events)
    block = LANES * draw(st.integers(1, 3))
    return cache.LoadStream.of(accesses, block), expected


@given(streams())
@settings(max_examples=60)
def test_arrays_give_the_events_of_a_plain_loop(case):
    stream, expected = case
    assert events_of(stream.loads_of(np.arange(stream.warps))) == expected
    some = np.arange(stream.warps)[::2]
    assert events_of(stream.loads_of(some)) == [expected[w] for w in some]


@given(streams(), st.sampled_from([16, 32, 128]))
@settings(max_examples=40)
def test_sectors_of_all_warps_are_those_of_sets(case, sector):
    stream, expected = case
    found = cache.warps(stream, sector)
    for kind, estimate in enumerate((found.read, found.written, found.added)):
        count = 0
        for addresses, _, of in itertools.chain(*expected):
            asked: dict[int, list[int]] = {}
            for one in addresses if of == kind else []:
                asked.setdefault(one // sector, []).append(one)
            count += sum(max(map(one.count, one)) if kind == 2 else 1 for one in asked.values())
        assert estimate.mean == pytest.approx(count / stream.items)
        assert estimate.error == 0
    rounds = [1 + sum(waits for _, waits, _ in events[1:]) if events else 0 for events in expected]
    assert found.rounds.mean == pytest.approx(np.mean(rounds))


def test_a_sample_has_the_mean_of_all_within_its_error():
    random = np.random.default_rng(1)
    element = np.where(random.random((2**15, 3)) < 0.5, 0, random.integers(0, 2**15, (2**15, 3)))
    element = np.sort(element, axis=0)
    stream = cache.LoadStream.of([cache.Access("x", element, 4)])
    everything = cache.warps(stream, sample=stream.warps).read
    found = [cache.warps(stream, sample=100, seed=seed).read for seed in range(40)]
    off = [(one.mean - everything.mean) / one.error for one in found]
    assert 0.5 < np.std(off) < 1.5
    assert max(map(abs, off)) < 4


def rounds_of(events: list[tuple], sector: int) -> list[list[list[int]]]:
    """The rounds of a warp, of each the loads, of each the sectors."""
    groups: list[list] = []
    begins = True
    for addresses, waits, kind in events:
        begins = begins or waits
        if kind == 0:
            if begins:
                groups.append([])
            groups[-1].append([*dict.fromkeys(a // sector for a in addresses)])
            begins = False
    return groups


class OneSet:
    """A set of lines: of two that are drawn the one used earlier is replaced."""

    def __init__(self, first: L1):
        self.first = first
        self.lines: list[tuple[int, set] | None] = [None] * first.ways
        self.used = [0] * first.ways
        self.looked = self.missed = 0

    def ask(self, sector: int) -> None:
        number = sector // (self.first.line // self.first.sector)
        self.looked += 1
        tags = [one and one[0] for one in self.lines]
        if number in tags:
            place = tags.index(number)
        elif None in tags:
            place = len(tags) - 1 - tags[::-1].index(None)
        else:
            word = int(mixed(np.uint64(self.looked)))
            drawn = word % 2**32 % len(tags), (word >> 32) % len(tags)
            place = drawn[1] if self.used[drawn[1]] < self.used[drawn[0]] else drawn[0]
        if number not in tags:
            self.lines[place] = (number, set())
        self.used[place] = self.looked
        there = self.lines[place][1]
        self.missed += sector not in there
        there.add(sector)


def missed_by_loop(stream: cache.LoadStream, first: L1, expected: list[list[tuple]]) -> tuple[int, int]:
    """Sectors looked up and missed on all multiprocessors: warps take turns, eight of them load by load."""
    each, found = stream.block // LANES, []
    rounds = [rounds_of(events, first.sector) for events in expected]
    for number in range(first.multiprocessors):
        found.append(OneSet(first))
        blocks = [
            rounds[b * each : (b + 1) * each] for b in range(number, stream.blocks, first.multiprocessors)
        ]
        places = [blocks.pop(0) for _ in range(min(len(blocks), first.threads // stream.block))]
        while any(any(block) for block in places) or blocks:
            for k in range(len(places)):
                while not any(places[k]) and blocks:
                    places[k] = blocks.pop(0)
            warps = [warp for block in places for warp in block + [[]] * (each - len(block))]
            for begin in range(0, len(warps), 8):
                turn = [warp.pop(0) for warp in warps[begin : begin + 8] if warp]
                while any(turn):
                    for loads in turn:
                        for sector in loads.pop(0) if loads else []:
                            found[-1].ask(sector)
    return sum(one.looked for one in found), sum(one.missed for one in found)


@given(
    streams(),
    st.integers(1, 40),
    st.sampled_from([32, 64, 128]),
    st.integers(1, 3),
    st.sampled_from([96, 192, 256]),
)
@settings(max_examples=60)
def test_misses_of_one_set_are_those_of_a_plain_loop(case, ways, line, multiprocessors, threads):
    stream, expected = case
    first = L1(ways * line, ways, line, 32, multiprocessors, threads)
    looked, missed = missed_by_loop(stream, first, [[*events] for events in expected])
    found = cache.l1(stream, first, sample=multiprocessors)
    assert found.read.mean == pytest.approx(looked / stream.items)
    assert found.missed.mean == pytest.approx(missed / stream.items)
    assert found.missed.error == 0


def test_sets_hold_all_lines_that_fit_but_for_some_that_meet():
    lines = np.tile(np.arange(64), (LANES, 1)).T.reshape(-1)  # one line for each warp
    twice = np.stack([32 * lines, 32 * lines], axis=1)
    stream = cache.LoadStream.of([cache.Access("x", twice, 4, waits=True)], 1024)
    small, wide = (cache.l1(stream, L1(size, 4, multiprocessors=1)).missed.mean for size in (2**12, 2**16))
    assert wide * LANES == pytest.approx(1.0)  # each line once
    assert small * LANES > 1.5  # 32 lines hold few of 64 that are taken in turn


def test_lines_a_power_of_two_apart_do_not_meet_in_one_set():
    apart = 2**14 * np.arange(64)[:, None] + np.zeros(LANES, int)  # a line for each warp, 16 KB from the next
    twice = np.stack([apart.ravel(), apart.ravel()], axis=1)
    stream = cache.LoadStream.of([cache.Access("x", twice, 1, waits=True)], 1024)
    missed = cache.l1(stream, L1(2**16, 4, multiprocessors=1)).missed.mean
    assert missed * LANES == pytest.approx(1.0, abs=0.1)  # each line once


def test_some_multiprocessors_have_the_misses_of_all_within_their_error():
    random = np.random.default_rng(3)
    element = random.integers(0, np.repeat(random.integers(1, 2000, 2**8), 2**8))
    stream, first = cache.LoadStream.of([cache.Access("x", element, 16)]), L1(2**12, 4, multiprocessors=64)
    everything = cache.l1(stream, first, sample=64).missed
    found = [cache.l1(stream, first, sample=12, seed=seed).missed for seed in range(30)]
    off = [(one.mean - everything.mean) / one.error for one in found]
    assert everything.error == 0
    assert 0.5 < np.std(off) < 1.7


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_order_of_a_gather_decides_what_the_first_cache_lacks(order):
    n = 2**14
    element = np.arange(n) if order == "sorted" else np.random.default_rng(0).permutation(n)
    stream = cache.LoadStream.of([cache.Access("x", element[:, None] + np.arange(2), 16)])
    found = cache.l1(stream, L1(2**14, 4, multiprocessors=4), sample=4)
    low, high = {"sorted": (0.5, 0.6), "shuffled": (1.8, 2.0)}[order]
    assert low <= found.missed.mean <= high


@pytest.mark.parametrize("model", ["warps", "l1"])
@pytest.mark.parametrize("seed", [1, 3])
def test_equal_seeds_draw_equal_samples(model, seed):
    element = np.random.default_rng(0).integers(0, 2**16, 2**14)
    stream = cache.LoadStream.of([cache.Access("x", element, 4)], 64)
    predict = {"warps": lambda: cache.warps(stream, sample=10, seed=seed),
               "l1": lambda: cache.l1(stream, L1(2**12, 4), seed=seed)}[model]  # fmt: skip
    assert predict() == predict()


def stream(*lengths: int, itemsize: int = 4, kind: str = "read", block: int = 256, **of) -> cache.LoadStream:
    """A stream of an access for each length."""
    accesses = [cache.Access(f"x{n}", np.arange(n), itemsize, kind) for n in lengths]
    return cache.LoadStream.of(accesses, block, **of)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stream(), "accesses"),
        (lambda: stream(0), "element for each"),
        (lambda: cache.LoadStream.of([cache.Access("x", np.ones((3, 0), int), 4)]), "element for each"),
        (lambda: stream(3, 4), r"\[3, 4\] threads"),
        (lambda: stream(3, itemsize=12), "itemsize of x3 = 12"),
        (lambda: stream(3, kind="moved"), "moved"),
        (lambda: cache.LoadStream.of([cache.Access("x", np.array([2**46]), 4)]), "element of x up to"),
        (lambda: stream(3, block=48), "block = 48"),
        (lambda: stream(3, arrays={"y": 99}), "array 'x3'; allowed: y"),
        (lambda: stream(3, arrays={"x3": 11}), "bytes of x3 = 11"),
        (lambda: cache.warps(stream(3), seed=-1), "seed = -1"),
        (lambda: cache.LoadStream(0, 64, len), "items"),
        (lambda: L1(2**14, 3), "line . ways = 384"),
        (lambda: L1(2**14, 4, 96), "line = 96"),
        (lambda: L1(2**14, 4, 128, 24), "sector = 24"),
        (lambda: cache.warps(stream(3), sample=0), "sample"),
        (lambda: cache.l1(stream(3), L1(2**14, 4, threads=64)), "blocks of 256 threads"),
    ],
)
def test_what_cannot_be_is_told(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_objects_of_other_classes_are_told():
    for make in (
        lambda: cache.warps(np.arange(3)),
        lambda: cache.l1(stream(3), 2**14),
        lambda: cache.LoadStream.of([np.arange(3)]),
        lambda: cache.LoadStream(3, 64, "loads"),
    ):
        with pytest.raises(TypeError):
            make()
