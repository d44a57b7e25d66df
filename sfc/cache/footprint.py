"""The second cache of a GPU, and its memory: bytes that a launch takes from there and leaves there.

The second cache serves all multiprocessors. What it takes from memory at once is a granule, of two sectors on
some chips. On large chips it has halves, each near to half of the multiprocessors: every granule has its home
in one of them, through which it comes from memory, and the other half keeps its own copy of what its
multiprocessors read. So two halves hold less than one cache of their size. In each the granules that were
used least recently are replaced. Granules that a hash draws are followed, each with all its accesses, in a
cache that is smaller by the same factor. Waldspurger and others, Efficient MRC Construction with SHARDS, FAST
(2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import LANES, READ, WRITTEN, Draw, LoadStream
from sfc.cache.sectors import drawn_of, loads_in_parts, parts_of, sector_of, sectors_of
from sfc.compile import kernel

MOST_DRAWN = 2**21  # granules that are asked for and followed, of both launches
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: seeds differ in all bits
GROUPS = 8  # of the granules that are drawn, by which the error is estimated


class MemoryBytes(NamedTuple):
    """Bytes that a launch takes from memory, and that it leaves there, for each item of the kernel.

    Attributes:
        read: granules that a load or an atomic operation did not find in the second cache.
        written: granules that had been changed when they were replaced in the cache.
        error: standard error of read + written by the draw; 0 if all granules are followed.
    """

    read: float
    written: float
    error: float


def l2(
    stream: LoadStream, capacity: Sequence[int], granule: int = 64, before: Sequence[LoadStream] = (),
    halves: int = 1, sample: int = MOST_DRAWN, seed: int = 0,
) -> list[MemoryBytes]:  # fmt: skip
    """Predict the bytes that a launch moves between the second cache of a GPU and its memory.

    The cache holds what the launches before have left, of which the first one finds it empty.
    Warps take their turn in the order of their blocks.

    Args:
        stream: loads and stores of a kernel.
        capacity: bytes that the cache holds in all, for each result.
        granule: bytes that are taken from memory at once, a power of two.
        before: the launches before, one after the other: those of a step, as where two arrays change their
            roles (with the same `arrays` in `LoadStream.of`). None for one of the same kernel.
        halves: 1, or 2 for a cache of two with multiprocessors that take blocks in turn.
        sample: number of granules asked for that are followed, about.
        seed: of the hash that draws granules.

    Raises:
        TypeError: no stream, or a number that is no integer.
        ValueError: a capacity below a granule in each half, other halves, or no sample.
    """
    checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    launches = [*checks.sequence("before", before, "LoadStreams of the launches before"), stream]
    for one in launches:
        checks.instance("before", one, LoadStream, "LoadStreams", "make LoadStream.of")
    granule, seed = sector_of(granule, "granule"), checks.integer("seed", seed, 0, 2**63)
    given = checks.sequence("capacity", capacity, "bytes")
    halves = checks.integer("halves", halves, 1, 2)
    sizes = [checks.integer("capacity", one, halves * granule, 2**50, unit="bytes") for one in given]
    sample = checks.integer("sample", sample, 1, unit="granules")
    share = _share(launches, granule, sample)
    drawn = [_drawn(one, granule, share, seed) for one in launches]
    if len(drawn) == 1:
        drawn = 2 * drawn
    found = _moved(drawn, sizes, share * granule, halves)
    errors = np.zeros(len(sizes))
    if share > 1:
        groups = ([one.of_group(k) for one in drawn] for k in range(GROUPS))
        sums = np.array([_moved(group, sizes, GROUPS * share * granule, halves) for group in groups])
        errors = sums.sum(axis=2).std(axis=0, ddof=1) / np.sqrt(GROUPS)
    return [
        MemoryBytes(read / stream.items, written / stream.items, float(error) / stream.items)
        for (read, written), error in zip(found, errors, strict=True)
    ]


class _Drawn(NamedTuple):
    """Accesses of a launch to the granules that are drawn, in their order.

    Attributes:
        granule: numbers.
        word: their hashes.
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
    launches: Sequence[_Drawn], sizes: Sequence[int], weight: int, halves: int
) -> list[tuple[float, float]]:
    """Return the bytes of the last launch from memory and to it, for each size of the cache.

    Args:
        launches: one after the other.
        sizes: bytes that the cache holds.
        weight: bytes that a granule which was drawn stands for.
        halves: of the cache.
    """
    granules, words, kinds, blocks = (np.concatenate(each) for each in zip(*launches, strict=True))
    begin = len(granules) - len(launches[-1].granule)
    _, first, numbers = np.unique(granules, return_index=True, return_inverse=True)
    home = (words[first] >> np.uint64(48) & np.uint64(halves - 1)).astype(np.uint8)
    near = (blocks & np.uint8(halves - 1)).astype(np.uint8)
    found: list[tuple[float, float]] = []
    for size in sizes:
        room = max(1, size // halves // weight)
        moved = np.zeros(2, np.int64)
        links = np.full((halves, len(home) + 1, 2), -1, np.int32)
        _run(numbers, home, near, kinds, begin, room, links, np.zeros(len(home), bool), moved)
        found.append((float(moved[0] * weight), float(moved[1] * weight)))
    return found


def _share(launches: Sequence[LoadStream], granule: int, sample: int) -> int:
    """Return how many granules there are to each that is drawn: a power of two."""
    asked = 0.0
    for stream in launches:
        drawn = drawn_of(stream.warps, 200, 0)
        counts = sum(len(sectors_of(loads, granule)[0]) for loads in loads_in_parts(stream, drawn))
        asked += counts * stream.warps / len(drawn)
    return 1 << max(0, int(np.ceil(np.log2(asked / sample)))) if asked > sample else 1


def _drawn(stream: LoadStream, granule: int, share: int, seed: int) -> _Drawn:
    """Return the accesses to the granules that are drawn."""
    draw = Draw(granule.bit_length() - 1, seed * GOLDEN % 2**64, share - 1)
    every = np.arange(stream.warps)
    drawn_of = stream.drawn_of if share > 1 else None
    loads_of = partial(drawn_of, draw=draw) if drawn_of else stream.loads_of
    parts, done = [], 0
    for loads in parts_of(loads_of, every):
        granules, ends = sectors_of(loads, granule)
        words = np.empty(len(granules), np.uint64)
        _hash(granules, np.uint64(draw.seed), words)
        warps = done + np.repeat(np.arange(len(loads.first) - 1), np.diff(ends[loads.first]))
        done += len(loads.first) - 1
        blocks = (warps // (stream.block // LANES) & 1).astype(np.uint8)
        found = _Drawn(granules, words, np.repeat(loads.kind, np.diff(ends)), blocks)
        is_drawn = words & np.uint64(share - 1) == 0
        parts.append(_Drawn(*(each[is_drawn] for each in found)))
    return _Drawn(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@kernel
def _hash(granules, seed, words):
    for k in range(len(granules)):
        words[k] = mixed(np.uint64(granules[k]) + seed)


@kernel
def _run(numbers, home, near, kinds, begin, room, links, is_changed, moved):
    # Of each half `links` is a ring through what it holds: [g, 0] is the one used before g and [g, 1] the one
    # after, -1 if g is not held. The last entry is the end of the ring: [end, 1] was used least recently.
    end = len(home)
    held = np.zeros(len(links), np.int64)
    for half in range(len(links)):
        links[half, end, 0] = links[half, end, 1] = end
    for k in range(len(numbers)):
        g, at = numbers[k], near[k]
        if kinds[k] != READ:
            at = home[g]
            for half in range(len(links)):
                if half != at and links[half, g, 1] >= 0:  # a copy is no longer valid
                    _leave(links[half], g)
                    held[half] -= 1
        is_there = links[at, g, 1] >= 0
        if at != home[g] and not is_there:
            far = links[home[g], g, 1] >= 0
            moved[1] += _take(links[home[g]], held, home[g], g, home, is_changed, room) and k >= begin
            moved[0] += not far and k >= begin
        elif not is_there:
            moved[0] += kinds[k] != WRITTEN and k >= begin
        moved[1] += _take(links[at], held, at, g, home, is_changed, room) and k >= begin
        if kinds[k] != READ:
            is_changed[g] = True


@kernel
def _leave(ring, g):
    before, after = ring[g, 0], ring[g, 1]
    ring[before, 1], ring[after, 0] = after, before
    ring[g, 0] = ring[g, 1] = -1


@kernel
def _take(ring, held, half, g, home, is_changed, room):
    # Makes g the one used last. Returns whether one that had been changed was replaced at its home for it.
    end, writes = len(ring) - 1, False
    if ring[g, 1] >= 0:
        _leave(ring, g)
    elif held[half] == room:
        oldest = ring[end, 1]
        _leave(ring, oldest)
        if home[oldest] == half:
            writes = is_changed[oldest]
            is_changed[oldest] = False
    else:
        held[half] += 1
    last = ring[end, 0]
    ring[last, 1], ring[g, 0], ring[g, 1], ring[end, 0] = g, last, end, g
    return writes
