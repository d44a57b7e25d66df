"""Loads of warps from those of their threads: as a plain merge of the threads' places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfc import cache
from sfc.cache import footprint
from sfc.cache.loads import LANES, Draw
from sfc.compile import kernel


@kernel
def walk(threads, first, place, address, kind, waits, noted):
    """Notes what is listed for each thread."""
    for k in range(len(threads)):
        for j in range(first[threads[k]], first[threads[k] + 1]):
            cache.note(noted, place[j], address[j], kind[place[j]], waits[place[j]])
        cache.end(noted, k)


@st.composite
def programs(draw):
    """For each thread its loads as (place, address); and kind and wait of each place."""
    n, places = draw(st.integers(1, 80)), draw(st.integers(1, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    share = draw(st.sampled_from([0.1, 0.5, 1.0]))
    threads = [
        [(p, int(random.integers(0, 4000))) for p in range(places) if random.random() < share]
        for _ in range(n)
    ]
    return threads, random.integers(0, 3, places), random.random(places) < 0.4


def stream_of(program) -> cache.LoadStream:
    threads, kind, waits = program
    first = np.cumsum([0, *map(len, threads)])
    flat = np.array([load for thread in threads for load in thread], np.int64).reshape(-1, 2)
    given = first, flat[:, 0].copy(), flat[:, 1].copy(), kind, waits
    return cache.in_lockstep(walk, given, len(threads), block=64)


def events_of(loads: cache.WarpLoads) -> list[list[tuple]]:
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.kind.tolist(), loads.waits.tolist(), strict=False)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


@given(programs(), st.data())
@settings(max_examples=60)
def test_lanes_at_the_same_place_take_an_instruction_together(program, data):
    threads, kind, waits = program
    stream = stream_of(program)
    warps = sorted(data.draw(st.sets(st.integers(0, stream.warps - 1), min_size=1)))
    expected = []
    for warp in warps:
        lanes = threads[warp * LANES : (warp + 1) * LANES]
        places = sorted({place for lane in lanes for place, _ in lane})
        together = [[address for lane in lanes for at, address in lane if at == place] for place in places]
        expected.append([(*one, kind[p], waits[p]) for p, *one in zip(places, together, strict=True)])
    assert events_of(stream.loads_of(np.array(warps))) == expected


@given(programs(), st.sampled_from([1, 3]), st.integers(0, 2**64 - 1))
@settings(max_examples=40)
def test_what_is_drawn_is_what_the_hash_chooses(program, mask, seed):
    stream = stream_of(program)
    every = np.arange(stream.warps)
    words = np.empty(4000 // 64 + 1, np.uint64)
    footprint._hash(np.arange(len(words)), np.uint64(seed), words)
    is_drawn = words & np.uint64(mask) == 0
    expected = []
    for warp in events_of(stream.loads_of(every)):
        some = [([a for a in lanes if is_drawn[a // 64]], *rest) for lanes, *rest in warp]
        expected.append([one for one in some if one[0]])
    assert events_of(stream.drawn_of(every, Draw(6, seed, mask))) == expected


def test_bytes_of_memory_are_the_same_with_and_without_drawn_walks():
    random = np.random.default_rng(0)
    threads = [[(p, int(a)) for p, a in enumerate(random.integers(0, 2**22, 4))] for _ in range(4096)]
    stream = stream_of((threads, np.array([0, 1, 2, 0]), np.zeros(4, bool)))
    plain = cache.LoadStream(stream.items, stream.block, stream.loads_of)
    found = [cache.l2(one, [2**14, 2**20], sample=2**12) for one in (stream, plain)]
    assert found[0] == found[1]
    assert found[0][0].error > 0


def noted_rooms(loads_each: int) -> tuple[cache.LoadStream, cache.LoadStream, list[int]]:
    """A stream of threads with so many loads, the same unwatched, and the rooms that its walks had."""
    rooms: list[int] = []
    places = np.arange(loads_each)
    threads = [[*zip(places.tolist(), (64 * (places + k)).tolist(), strict=True)] for k in range(4 * LANES)]
    program = threads, np.zeros(loads_each, int), np.zeros(loads_each, bool)
    stream = stream_of(program)
    given = stream.loads_of.args[1]

    def watched(numbers, *rest):
        rooms.append(len(rest[-1].place) // len(numbers))
        walk(numbers, *rest)

    return cache.in_lockstep(watched, given, len(threads), block=64), stream, rooms


def test_a_walk_is_repeated_only_until_it_is_known_how_much_room_it_needs():
    stream, plain, rooms = noted_rooms(200)
    for warps in ([0], [1, 2], [3]):
        assert events_of(stream.loads_of(np.array(warps))) == events_of(plain.loads_of(np.array(warps)))
    assert rooms == [64, 200, 250, 250]  # a quarter more than before


def test_the_room_of_a_draw_is_its_own():
    stream, plain, rooms = noted_rooms(200)
    every = np.arange(4)
    for mask in (63, 63, 0, 63):
        draw = Draw(6, 5, mask)
        assert events_of(stream.drawn_of(every, draw)) == events_of(plain.drawn_of(every, draw))
    assert rooms[0] == 64
    assert rooms[1] == rooms[-1] == 8  # 1 in 64 of 200 loads
    assert rooms[2:4] == [64, 200]


def test_no_function_is_told():
    with pytest.raises(TypeError, match="walk"):
        cache.in_lockstep(3, (), 64)


@kernel
def never_ends(threads, noted):
    """Forgets to end its threads."""
    for k in range(len(threads)):
        cache.note(noted, 0, 16 * threads[k], 0, True)


def test_a_walk_that_does_not_end_its_threads_is_told():
    with pytest.raises(
        ValueError, match=r"noted 64 loads of 64 threads, and ended .* allowed: end\(noted, k\)"
    ):
        cache.warps(cache.in_lockstep(never_ends, (), 64, block=64))
