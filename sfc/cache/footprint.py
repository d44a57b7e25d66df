"""The second cache of a GPU, and its memory: bytes that a launch takes from there and leaves there.

The second cache serves all multiprocessors. What it takes from memory at once is a granule, of two sectors on
some chips. On large chips it has halves, each near to half of the multiprocessors: every granule has its home
in one of them, through which it comes from memory, and the other half keeps its own copy of what its
multiprocessors read. So two halves hold less than one cache of their size. In each the granules that were
used least recently are replaced. Warps that are at work at once take turns, by their place in the program.
Memory is in pages, rows of its banks: a granule from there or to there opens its page, unless few others were
opened since that was used. Pages that a hash draws are followed, each granule with all its
accesses, in a cache that is smaller by the same factor. Waldspurger and others, Efficient MRC Construction
with SHARDS, FAST (2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import LANES, READ, WRITTEN, Draw, LoadStream, WarpLoads
from sfc.cache.sectors import drawn_of, loads_in_parts, parts_of, sector_of, sectors_of
from sfc.compile import kernel

MOST_DRAWN = 2**20  # granules that are asked for and followed, of all launches
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: seeds differ in all bits
GROUPS = 8  # of the pages that are drawn, by which the error is estimated
PAGE = 1024  # consecutive bytes, taken as those in the row buffer of a bank. JEDEC, JESD238 (HBM3), page size
OPEN_PAGES = 2560  # banks of an H100: 5 stacks of 16 channels of 2 pseudo channels of 16 banks


class MemoryBytes(NamedTuple):
    """Bytes that a launch takes from memory, and that it leaves there, for each item of the kernel.

    Attributes:
        read: granules that a load or an atomic operation did not find in the second cache.
        written: granules that had been changed when they were replaced in the cache.
        error: standard error of read + written by the draw; 0 if all pages are followed.
        opened: pages, not bytes, that were opened for both: since a page was used last, more than
            `OPEN_PAGES` others had been opened. Too many if few pages are drawn; not in the error.
    """

    read: float
    written: float
    error: float
    opened: float


def l2(
    stream: LoadStream, capacity: Sequence[int], granule: int = 64, before: Sequence[LoadStream] = (),
    halves: int = 1, at_once: Sequence[int] | None = None, sample: int = MOST_DRAWN, seed: int = 0,
) -> list[MemoryBytes]:  # fmt: skip
    """Predict the bytes that a launch moves between the second cache of a GPU and its memory.

    The cache holds what the launches before have left, of which the first one finds it empty. The blocks
    that the device works on at once go through the program together, and the next ones follow them. So a warp
    finds what it took itself only if all the others have left it there.

    Args:
        stream: loads and stores of a kernel.
        capacity: bytes that the cache holds in all, for each result.
        granule: bytes that are taken from memory at once, a power of two.
        before: the launches before, one after the other: those of a step, as where two arrays change their
            roles (with the same `arrays` in `LoadStream.of`). None for one of the same kernel.
        halves: 1, or 2 for a cache of two with multiprocessors that take blocks in turn.
        at_once: number of blocks that the device works on at once, of each launch before and of the stream.
            None for one: block after block.
        sample: number of granules asked for that are followed, about.
        seed: of the hash that draws pages.

    Raises:
        TypeError: no stream, or a number that is no integer.
        ValueError: a capacity below a granule in each half, a granule that is no power of two or more than a
            page, other halves, no sample, or at_once that is not a number for each launch.
    """
    checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    launches = [*checks.sequence("before", before, "LoadStreams of the launches before"), stream]
    for one in launches:
        checks.instance("before", one, LoadStream, "LoadStreams", "make LoadStream.of")
    granule, seed = sector_of(granule, "granule"), checks.integer("seed", seed, 0, 2**63)
    if granule > PAGE:
        raise ValueError(f"granule = {granule} bytes; allowed: up to {PAGE}, a page of memory")
    given = checks.sequence("capacity", capacity, "bytes")
    halves = checks.integer("halves", halves, 1, 2)
    sizes = [checks.integer("capacity", one, halves * granule, 2**50, unit="bytes") for one in given]
    sample = checks.integer("sample", sample, 1, unit="granules")
    blocks = [1] * len(launches) if at_once is None else [*checks.sequence("at_once", at_once, "blocks")]
    if len(blocks) != len(launches):
        raise ValueError(f"{len(blocks)} numbers of at_once; allowed: {len(launches)}, one for each launch")
    blocks = [checks.integer("at_once", one, 1, 2**31, unit="blocks") for one in blocks]
    share = _share(launches, granule, sample)
    drawn = [_drawn(one, granule, share, seed, k) for one, k in zip(launches, blocks, strict=True)]
    if len(drawn) == 1:
        drawn = 2 * drawn
    found = _moved(drawn, sizes, granule, share, halves)
    errors = np.zeros(len(sizes))
    if share > 1:
        groups = ([one.of_group(k) for one in drawn] for k in range(GROUPS))
        sums = np.array([_moved(group, sizes, granule, GROUPS * share, halves) for group in groups])
        errors = sums[:, :, :2].sum(axis=2).std(axis=0, ddof=1) / np.sqrt(GROUPS)
    each = [
        (read, written, error, opened) for (read, written, opened), error in zip(found, errors, strict=True)
    ]
    return [MemoryBytes(*(float(one) / stream.items for one in numbers)) for numbers in each]


class _Drawn(NamedTuple):
    """Accesses of a launch to the granules that are drawn, in their order.

    Attributes:
        granule: numbers.
        word: hashes of their pages.
        kind: `READ`, `WRITTEN` or `ADDED`.
        block: number of the block, of which one bit is kept.
    """

    granule: np.ndarray
    word: np.ndarray
    kind: np.ndarray
    block: np.ndarray

    def of_group(self, number: int) -> _Drawn:
        """Return the accesses to the granules of a group."""
        return _Drawn(*(each[self.word >> np.uint64(32) & np.uint64(GROUPS - 1) == number] for each in self))


def _moved(
    launches: Sequence[_Drawn], sizes: Sequence[int], granule: int, share: int, halves: int
) -> list[tuple[float, float, float]]:
    """Return bytes of the last launch from memory and to it, and pages opened, for each size of the cache.

    Args:
        launches: one after the other.
        sizes: bytes that the cache holds.
        granule: its bytes.
        share: number of pages of which one is drawn.
        halves: of the cache.
    """
    granules, _, kinds, blocks = (np.concatenate(each) for each in zip(*launches, strict=True))
    begin = len(granules) - len(launches[-1].granule)
    distinct, numbers = np.unique(granules, return_inverse=True)
    words = np.empty(len(distinct), np.uint64)
    _hash(distinct, np.uint64(0), words)
    home = (words >> np.uint64(48) & np.uint64(halves - 1)).astype(np.uint8)
    near = (blocks & np.uint8(halves - 1)).astype(np.uint8)
    page = np.unique(distinct * granule // PAGE, return_inverse=True)[1]
    found: list[tuple[float, float, float]] = []
    for size in sizes:
        room = max(1, size // halves // (share * granule)), max(1, OPEN_PAGES // share)
        moved = np.zeros(3, np.int64)
        links = np.full((halves, len(home) + 1, 2), -1, np.int32)
        opened = np.full(len(home) + 1, -room[1] - 1, np.int64)
        _run(numbers, home, near, kinds, page, begin, room, links, np.zeros(len(home), bool), opened, moved)
        read, written, pages = share * moved
        found.append((float(read * granule), float(written * granule), float(pages)))
    return found


def _share(launches: Sequence[LoadStream], granule: int, sample: int) -> int:
    """Return how many pages there are to each that is drawn: a power of two."""
    asked = 0.0
    for stream in launches:
        drawn = drawn_of(stream.warps, 200, 0)
        counts = sum(len(sectors_of(loads, granule)[0]) for loads in loads_in_parts(stream, drawn))
        asked += counts * stream.warps / len(drawn)
    return 1 << max(0, int(np.ceil(np.log2(asked / sample)))) if asked > sample else 1


def _drawn(stream: LoadStream, granule: int, share: int, seed: int, at_once: int) -> _Drawn:
    """Return the accesses to the granules that are drawn, in their order if so many blocks are at work."""
    draw = Draw(PAGE.bit_length() - 1, seed * GOLDEN % 2**64, share - 1)
    drawn_of = stream.drawn_of if share > 1 else None
    loads_of = partial(drawn_of, draw=draw) if drawn_of else stream.loads_of
    each = stream.block // LANES * at_once
    parts = []
    for begin in range(0, stream.warps, each):
        warps = np.arange(begin, min(begin + each, stream.warps))
        found, places = _of_warps(stream, loads_of, warps, granule, draw)
        order = np.argsort(places, kind="stable")
        parts.append(_Drawn(*(one[order] for one in found)))
    return _Drawn(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _of_warps(
    stream: LoadStream,
    loads_of: Callable[[np.ndarray], WarpLoads],
    numbers: np.ndarray,
    granule: int,
    draw: Draw,
) -> tuple[_Drawn, np.ndarray]:
    """Return the accesses of some warps to the granules that are drawn, and their places in the program."""
    parts, places, done = [], [], int(numbers[0])
    for loads in parts_of(loads_of, numbers):
        granules, ends = sectors_of(loads, granule)
        words = np.empty(len(granules), np.uint64)
        _hash(granules >> (draw.shift + 1 - granule.bit_length()), np.uint64(draw.seed), words)
        warps = done + np.repeat(np.arange(len(loads.first) - 1), np.diff(ends[loads.first]))
        done += len(loads.first) - 1
        blocks = (warps // (stream.block // LANES) & 1).astype(np.uint8)
        found = _Drawn(granules, words, np.repeat(loads.kind, np.diff(ends)), blocks)
        is_drawn = words & np.uint64(draw.mask) == 0
        parts.append(_Drawn(*(each[is_drawn] for each in found)))
        places.append(np.repeat(loads.place, np.diff(ends))[is_drawn])
    return _Drawn(*(np.concatenate(each) for each in zip(*parts, strict=True))), np.concatenate(places)


@kernel
def _hash(granules, seed, words):
    for k in range(len(granules)):
        words[k] = mixed(np.uint64(granules[k]) + seed)


@kernel
def _run(numbers, home, near, kinds, page, begin, room, links, is_changed, opened, moved):
    # Of each half `links` is a ring through what it holds: [g, 0] is the one used before g and [g, 1] the one
    # after, -1 if g is not held. The last entry is the end of the ring: [end, 1] was used least recently.
    # Opened has the number of pages that had been opened when each page was used last; its own is the end.
    end = len(home)
    held = np.zeros(len(links), np.int64)
    opened[end] = 0
    for half in range(len(links)):
        links[half, end, 0] = links[half, end, 1] = end
    for k in range(len(numbers)):
        g, at = numbers[k], near[k]
        counts = k >= begin
        if kinds[k] != READ:
            at = home[g]
            for half in range(len(links)):
                if half != at and links[half, g, 1] >= 0:  # a copy is no longer valid
                    _leave(links[half], g)
                    held[half] -= 1
        is_there = links[at, g, 1] >= 0
        is_read = not is_there and kinds[k] != WRITTEN
        if at != home[g] and not is_there:
            is_read = links[home[g], g, 1] < 0
            replaced = _take(links[home[g]], held, home[g], g, home, is_changed, room[0])
            _move(replaced, 1, counts, page, room[1], opened, moved)
        _move(g if is_read else -1, 0, counts, page, room[1], opened, moved)
        replaced = _take(links[at], held, at, g, home, is_changed, room[0])
        _move(replaced, 1, counts, page, room[1], opened, moved)
        if kinds[k] != READ:
            is_changed[g] = True


@kernel
def _move(g, way, counts, page, most, opened, moved):
    # Reads granule g from memory (way 0) or writes it (1), and opens its page if it is not open; -1: none.
    if g < 0:
        return
    end, p = len(opened) - 1, page[g]
    is_closed = opened[end] - opened[p] > most
    opened[end] += is_closed
    opened[p] = opened[end]
    if counts:
        moved[way] += 1
        moved[2] += is_closed


@kernel
def _leave(ring, g):
    before, after = ring[g, 0], ring[g, 1]
    ring[before, 1], ring[after, 0] = after, before
    ring[g, 0] = ring[g, 1] = -1


@kernel
def _take(ring, held, half, g, home, is_changed, room):
    # Makes g the one used last. Returns the one that was replaced for it, if at its home and changed; or -1.
    end, writes = len(ring) - 1, -1
    if ring[g, 1] >= 0:
        _leave(ring, g)
    elif held[half] == room:
        oldest = ring[end, 1]
        _leave(ring, oldest)
        if home[oldest] == half:
            writes = oldest if is_changed[oldest] else -1
            is_changed[oldest] = False
    else:
        held[half] += 1
    last = ring[end, 0]
    ring[last, 1], ring[g, 0], ring[g, 1], ring[end, 0] = g, last, end, g
    return writes
