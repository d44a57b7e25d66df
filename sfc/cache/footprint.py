"""The second cache of a GPU, and its memory: bytes that a launch takes from there and leaves there.

The second cache serves all multiprocessors. What it takes from memory at once is a granule, of two sectors on
some chips. A granule is there if fewer bytes than the cache holds were taken since it was taken last: its
footprint. That is counted for granules drawn by a hash, each with all its accesses. Waldspurger and others,
Efficient MRC Construction with SHARDS, FAST (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import READ, WRITTEN, Draw, LoadStream
from sfc.cache.lru import distances
from sfc.cache.sectors import drawn_of, in_parts, in_parts_of, sector_of, sectors_of
from sfc.compile import kernel

MOST_DRAWN = 2**21  # granules that are asked for and followed, of both launches
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: seeds differ in all bits
GROUPS = 8  # of the granules that are drawn, by which the error is estimated


class MemoryBytes(NamedTuple):
    """Bytes that a launch takes from memory, and that it leaves there, for each item of the kernel.

    Attributes:
        read: granules that a load or an atomic operation did not find in the second cache.
        written: granules that were changed, and replaced in the cache before the launch took them again.
        error: standard error of read + written by the draw; 0 if all granules are followed.
    """

    read: float
    written: float
    error: float


def l2(
    stream: LoadStream, capacity: Sequence[int], granule: int = 64, before: Sequence[LoadStream] = (),
    sample: int = MOST_DRAWN, seed: int = 0,
) -> list[MemoryBytes]:  # fmt: skip
    """Predict the bytes that a launch moves between the second cache of a GPU and its memory.

    The cache holds what the launches before have left, of which the first one finds it empty.
    Warps take their turn in the order of their blocks.

    Args:
        stream: loads and stores of a kernel.
        capacity: bytes that the cache holds, for each result; what the chip's cache really holds of accesses
            in no order is less than its size.
        granule: bytes that are taken from memory at once, a power of two.
        before: the launches before, one after the other: those of a step, as where two arrays change their
            roles (with the same `arrays` in `LoadStream.of`). None for one of the same kernel.
        sample: number of granules asked for that are followed, about.
        seed: of the hash that draws granules.

    Raises:
        TypeError: no stream, or a number that is no integer.
        ValueError: a capacity below a granule, or no sample.
    """
    checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    launches = [*checks.sequence("before", before, "LoadStreams of the launches before"), stream]
    for one in launches:
        checks.instance("before", one, LoadStream, "LoadStreams", "make LoadStream.of")
    granule, seed = sector_of(granule, "granule"), checks.integer("seed", seed, 0, 2**63)
    given = checks.sequence("capacity", capacity, "bytes")
    sizes = [checks.integer("capacity", one, granule, 2**50, unit="bytes") for one in given]
    sizes = [size // granule * granule for size in sizes]
    sample = checks.integer("sample", sample, 1, unit="granules")
    share = _share(launches, granule, sample)
    drawn = [_drawn(one, granule, share, seed) for one in launches]
    if len(drawn) == 1:
        drawn = 2 * drawn
    found = _moved(drawn, sizes, share * granule)
    errors = np.zeros(len(sizes))
    if share > 1:
        groups = ([one.of_group(k) for one in drawn] for k in range(GROUPS))
        sums = np.array([_moved(group, sizes, GROUPS * share * granule) for group in groups]).sum(axis=2)
        errors = sums.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    return [
        MemoryBytes(read / stream.items, written / stream.items, float(error) / stream.items)
        for (read, written), error in zip(found, errors, strict=True)
    ]


class _Drawn(NamedTuple):
    """Accesses of a launch to the granules that are drawn, in their order: granules, their hashes, kinds."""

    granule: np.ndarray
    word: np.ndarray
    kind: np.ndarray

    def of_group(self, number: int) -> _Drawn:
        """Return the accesses to the granules of a group."""
        return _Drawn(*(each[self.word >> np.uint64(32) & np.uint64(GROUPS - 1) == number] for each in self))


def _moved(launches: Sequence[_Drawn], sizes: Sequence[int], weight: int) -> list[tuple[float, float]]:
    """Return the bytes of the last launch from memory and to it, for each size of the cache.

    Args:
        launches: one after the other.
        sizes: bytes that the cache holds.
        weight: bytes that a granule which was drawn stands for.
    """
    granules, kinds = (np.concatenate([one[k] for one in launches]) for k in (0, 2))
    begin = len(granules) - len(launches[-1].granule)
    numbers = np.unique(granules, return_inverse=True)[1]
    away = distances(numbers)
    found: list[tuple[float, float]] = []
    for size in sizes:
        misses = (away < 0) | (away * weight >= size)
        read = int((misses & (kinds != WRITTEN))[begin:].sum())
        left = _left(numbers, kinds != READ, misses, np.zeros(len(numbers), bool), begin)
        found.append((read * weight, left * weight))
    return found


def _share(launches: Sequence[LoadStream], granule: int, sample: int) -> int:
    """Return how many granules there are to each that is drawn: a power of two."""
    asked = 0.0
    for stream in launches:
        drawn = drawn_of(stream.warps, 200, 0)
        counts = sum(len(sectors_of(loads, granule)[0]) for loads in in_parts_of(stream, drawn))
        asked += counts * stream.warps / len(drawn)
    return 1 << max(0, int(np.ceil(np.log2(asked / sample)))) if asked > sample else 1


def _drawn(stream: LoadStream, granule: int, share: int, seed: int) -> _Drawn:
    """Return the accesses to the granules that are drawn."""
    draw = Draw(granule.bit_length() - 1, seed * GOLDEN % 2**64, share - 1)
    every = np.arange(stream.warps)
    drawn_of = stream.drawn_of if share > 1 else None
    loads_of = partial(drawn_of, draw=draw) if drawn_of else stream.loads_of
    parts = []
    for loads in in_parts(loads_of, every):
        granules, ends = sectors_of(loads, granule)
        words, kinds = np.empty(len(granules), np.uint64), np.repeat(loads.kind, np.diff(ends))
        _hash(granules, np.uint64(draw.seed), words)
        is_drawn = words & np.uint64(share - 1) == 0
        parts.append(_Drawn(granules[is_drawn], words[is_drawn], kinds[is_drawn]))
    return _Drawn(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@kernel
def _hash(granules, seed, words):
    for k in range(len(granules)):
        words[k] = mixed(np.uint64(granules[k]) + seed)


@kernel
def _left(numbers, writes, misses, is_changed, begin):
    # A granule that is taken again from memory was replaced before: it was written back if it had changed.
    count = 0
    for k in range(len(numbers)):
        if misses[k]:
            count += k >= begin and is_changed[numbers[k]]
            is_changed[numbers[k]] = False
        is_changed[numbers[k]] |= writes[k]
    return count
