"""Bytes between the second cache of a GPU and its memory: those of a plain list of sectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfc import cache
from sfc.cache import footprint
from sfc.cache.lru import distances


def by_dicts(
    launches: list[list[tuple]], capacity: int, halves: int, home: dict[int, int], per_page: int
) -> tuple[int, int, int]:
    """Granules read from memory and written back in the last launch, and pages opened for them.

    By dicts, the latest used last.
    """
    held: list[dict[int, bool]] = [{} for _ in range(halves)]
    changed: set[int] = set()
    opened: dict[int, int] = {}  # pages -> number of those opened until they were used last
    counts = [0, 0, 0]
    total = 0

    def move(granule: int, way: int) -> None:
        nonlocal total
        page = granule // per_page
        closed = page not in opened or total - opened[page] > footprint.OPEN_PAGES
        total += closed
        opened[page] = total
        counts[way] += 1
        counts[2] += closed

    def take(half: int, granule: int) -> None:
        held[half].pop(granule, None)
        if len(held[half]) == capacity // halves:
            oldest = next(iter(held[half]))
            del held[half][oldest]
            if home[oldest] == half:
                if oldest in changed:
                    move(oldest, 1)
                changed.discard(oldest)
        held[half][granule] = True

    for launch in launches:
        counts[:] = 0, 0, 0
        for granule, kind, near in launch:
            at = near if kind == 0 else home[granule]
            if kind:
                for half in {*range(halves)} - {at}:
                    held[half].pop(granule, None)
            places = [home[granule]] if at != home[granule] and granule not in held[at] else []
            is_read = granule not in held[places[0] if places else at] and kind != 1
            for half in places:
                take(half, granule)
            if is_read:
                move(granule, 0)
            take(at, granule)
            if kind:
                changed.add(granule)
    return counts[0], counts[1], counts[2]


@st.composite
def kernels(draw) -> list[cache.Access]:
    """Accesses of a small kernel: reads, stores and atomic operations on three arrays."""
    n = draw(st.integers(1, 80))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from([4, 60, 2000]))
    return [
        cache.Access("x", random.integers(-1, most, (n, 2)), 16, draw(st.sampled_from(["read", "written"]))),
        cache.Access("y", random.integers(0, most, n), 8, draw(st.sampled_from(["read", "added"]))),
        cache.Access("z", np.arange(n), 16, draw(st.sampled_from(["written", "added"]))),
    ]


def in_order(stream: cache.LoadStream, granule: int, halves: int, at_once: int) -> list[tuple[int, int, int]]:
    """The granules of each instruction, its kind, and the half that is near; so many blocks go together."""
    found, each = [], stream.block // 32 * at_once
    for begin in range(0, stream.warps, each):
        together = []
        for warp in range(begin, min(begin + each, stream.warps)):
            loads = stream.loads_of(np.array([warp]))
            lanes = np.split(loads.address // granule, loads.start[1:-1])
            near = warp // (stream.block // 32) % halves
            for k, granules in enumerate(map(np.ndarray.tolist, lanes)):
                asked = [(one, int(loads.kind[k]), near) for one in dict.fromkeys(granules)]
                together.append((int(loads.place[k]), warp, asked))
        found += [one for *_, asked in sorted(together) for one in asked]
    return found


ARRAYS = {"z": 16 * 80, "y": 8 * 2000, "x": 16 * 2000}  # not in the order of their first use


@given(
    kernels(), kernels(), st.booleans(), st.integers(2, 200), st.sampled_from([32, 64]), st.integers(1, 2),
    st.integers(1, 3), st.sampled_from([1, 5, 2560]),
)  # fmt: skip
@settings(max_examples=120)
def test_bytes_are_those_of_dicts(accesses, others, differ, capacity, granule, halves, at_once, pages):
    stream, before = (cache.LoadStream.of(given, 32, arrays=ARRAYS) for given in (accesses, others))
    each = [before, stream] if differ else [stream, stream]
    launches = [in_order(one, granule, halves, at_once) for one in each]
    numbers = np.unique([one[0] for launch in launches for one in launch])
    words = np.empty(len(numbers), np.uint64)
    footprint._hash(numbers, np.uint64(0), words)
    home = dict(zip(numbers.tolist(), (words >> np.uint64(48) & np.uint64(halves - 1)).tolist(), strict=True))
    given = granule * capacity + granule - 1  # a part of a granule holds nothing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footprint, "OPEN_PAGES", pages)
        read, written, opened = by_dicts(launches, capacity, halves, home, footprint.PAGE // granule)
        options = {"before": [before] if differ else [], "at_once": [at_once] * (1 + differ)}
        (found,) = cache.l2(stream, [given], granule, halves=halves, **options)
    assert found.read == pytest.approx(granule * read / stream.items)
    assert found.written == pytest.approx(granule * written / stream.items)
    assert found.opened == pytest.approx(opened / stream.items)


def test_arrays_that_change_their_roles_are_the_same_memory():
    n, arrays = 2**12, {"one": 2**16, "other": 2**16}

    def launch(read: str, written: str) -> cache.LoadStream:
        accesses = [cache.Access(read, np.arange(n), 16), cache.Access(written, np.arange(n), 16, "written")]
        return cache.LoadStream.of(accesses, arrays=arrays)

    there, back = launch("one", "other"), launch("other", "one")
    assert not np.array_equal(*(one.loads_of(np.arange(1)).address for one in (there, back)))
    (found,) = cache.l2(there, [2**12], before=[there, back])
    assert (found.read, found.written) == (16, 16)
    (alone,) = cache.l2(there, [2**12], before=[there, launch("other", "other")])
    assert alone.read == 16
    assert alone.written == pytest.approx(16, abs=1)
    (fits,) = cache.l2(there, [2**18], before=[there, launch("other", "other")])
    assert (fits.read, fits.written) == (
        0,
        0,
    )  # `one` is there since the last launch but one


def test_a_launch_that_fits_takes_nothing_and_one_that_does_not_takes_all():
    n = 2**14
    read, written = (cache.Access(name, np.arange(n), 16, name) for name in ("read", "written"))
    stream = cache.LoadStream.of([read, written])
    fits, not_all = cache.l2(stream, [32 * n, 31 * n], 32)
    assert (fits.read, fits.written) == (0, 0)
    assert (not_all.read, not_all.written) == (16, 16)


def test_a_sector_that_changed_once_is_written_back_once():
    before = cache.LoadStream.of([cache.Access("x", np.array([0]), 16, "written")])
    reads = cache.LoadStream.of([cache.Access("x", np.array([[0, 10, 0, 10, 0]]), 16)])
    (found,) = cache.l2(reads, [32], 32, before=[before])
    assert (found.read, found.written) == (4 * 32, 32)


@pytest.mark.parametrize("capacity", [2**17, 2**19])
def test_a_draw_of_pages_gives_the_bytes_of_all_within_its_error(capacity):
    n = 2**16
    element = np.random.default_rng(0).integers(0, n, (n, 3))
    stream = cache.LoadStream.of(
        [cache.Access("x", element, 16), cache.Access("y", np.arange(n), 16, "written")]
    )
    (everything,) = cache.l2(stream, [capacity])
    assert everything.error == 0
    found = [cache.l2(stream, [capacity], sample=2**16, seed=seed)[0] for seed in range(12)]
    total = everything.read + everything.written
    off = [(one.read + one.written - total) / one.error for one in found]
    assert 0.3 < np.std(off) < 2
    assert max(map(abs, off)) < 5
    assert max(one.error for one in found) < 0.2 * everything.read


@given(st.lists(st.integers(0, 9), max_size=60))
@settings(max_examples=50)
def test_distances_are_the_other_lines_since_the_last_access(items):
    expected = []
    for k, item in enumerate(items):
        since = items[:k][::-1]
        expected.append(len(set(since[: since.index(item)])) if item in since else -1)
    assert distances(np.array(items, np.int64)).tolist() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": [16]}, "capacity"),
        ({"sample": 0}, "sample"),
        ({"granule": 33}, "granule = 33"),
        ({"granule": 2048}, "granule = 2048 bytes; allowed: up to 1024"),
        ({"at_once": [1, 1]}, "2 numbers of at_once; allowed: 1"),
        ({"at_once": [0]}, "at_once = 0"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_what_cannot_be_is_told(options, message):
    stream = cache.LoadStream.of([cache.Access("x", np.arange(3), 4)])
    with pytest.raises(ValueError, match=message):
        cache.l2(stream, **{"capacity": [2**20], **options})
    with pytest.raises(TypeError):
        cache.l2(np.arange(3), [2**20])
