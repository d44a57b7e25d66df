"""The second cache of a GPU, and its memory: bytes that a launch takes from there and leaves there.

The second cache serves all multiprocessors. A sector is there if fewer bytes than the cache holds were taken
since it was taken last: its footprint. That is counted for sectors drawn by a hash, each time with all their
accesses. Waldspurger and others, Efficient MRC Construction with SHARDS, FAST (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import READ, WRITTEN, LoadStream
from sfc.cache.lru import distances
from sfc.cache.sectors import drawn_of, in_parts_of, sector_of, sectors_of
from sfc.compile import kernel

MOST_DRAWN = 2**21  # sectors that are asked for and followed, of both launches


class MemoryBytes(NamedTuple):
    """Bytes that a launch takes from memory, and that it leaves there, for each item of the kernel.

    Attributes:
        read: sectors that a load or an atomic operation did not find in the second cache.
        written: sectors that were changed, and were replaced in the cache.
        error: standard error of `read`, of the draw.
    """

    read: float
    written: float
    error: float


def l2(
    stream: LoadStream, capacity: Sequence[int], sector: int = 32, swapped: LoadStream | None = None,
    sample: int = MOST_DRAWN, seed: int = 0,
) -> list[MemoryBytes]:  # fmt: skip
    """Predict the bytes that a launch moves between the second cache of a GPU and its memory.

    The launch is one of many: the cache holds what the one before has left. Warps take their turn in the
    order of their blocks.

    Args:
        stream: loads and stores of a kernel.
        capacity: bytes that the cache holds, for each result; what the chip's cache really holds of accesses
            in no order is less than its size.
        sector: bytes of a sector, a power of two.
        swapped: the launch before, if it differs, as where two arrays change their roles; None for the same.
        sample: number of sectors asked for that are followed, about.
        seed: of the hash that draws sectors.

    Raises:
        TypeError: no stream, or a number that is no integer.
        ValueError: a capacity below a sector, or no sample.
    """
    launches = [stream if swapped is None else swapped, stream]
    for one in launches:
        checks.instance("stream", one, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    sector = sector_of(sector)
    sizes = [checks.integer("capacity", one, sector, 2**50, unit="bytes") for one in capacity]
    sample = checks.integer("sample", sample, 1, unit="sectors")
    share = _share(launches, sector, sample)
    followed = [_drawn(one, sector, share, seed) for one in launches[swapped is None :]]
    followed = [followed[0], followed[-1]]
    sectors, kinds = (np.concatenate([each[k] for each in followed]) for k in (0, 1))
    begin = len(followed[0][0])
    away = distances(sectors) if len(sectors) else np.zeros(0, np.int64)
    first_seen = away < 0
    numbers = np.unique(sectors, return_inverse=True)[1] if len(sectors) else sectors
    bytes_each = sector * share / stream.items
    found = []
    for size in sizes:
        misses = first_seen | (away * share * sector >= size)
        taken = misses & (kinds != WRITTEN)
        left = _left(numbers, kinds != READ, misses, np.zeros(len(numbers), np.bool_), begin)
        count = int(taken[begin:].sum())
        found.append(MemoryBytes(count * bytes_each, left * bytes_each, np.sqrt(count) * bytes_each))
    return found


def _share(launches: Sequence[LoadStream], sector: int, sample: int) -> int:
    """Return how many sectors there are to each that is drawn: a power of two."""
    asked = 0.0
    for stream in launches:
        drawn = drawn_of(stream.warps, 200, 0)
        counts = sum(len(sectors_of(loads, sector)[0]) for loads in in_parts_of(stream, drawn))
        asked += counts * stream.warps / len(drawn)
    return 1 << max(0, int(np.ceil(np.log2(asked / sample)))) if asked > sample else 1


def _drawn(stream: LoadStream, sector: int, share: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the accesses to the sectors that are drawn, in their order, and their kinds."""
    parts = []
    for loads in in_parts_of(stream, np.arange(stream.warps)):
        sectors, ends = sectors_of(loads, sector)
        kinds = np.repeat(loads.kind, np.diff(ends))
        is_drawn = _are_drawn(sectors, np.uint64(share - 1), np.uint64(seed))
        parts.append((sectors[is_drawn], kinds[is_drawn]))
    return tuple(np.concatenate([part[k] for part in parts]) for k in (0, 1))  # type: ignore[return-value]


@kernel
def _are_drawn(sectors, mask, seed):
    drawn = np.empty(len(sectors), np.bool_)
    for k in range(len(sectors)):
        drawn[k] = mixed(np.uint64(sectors[k]) + seed * np.uint64(0x9E3779B97F4A7C15)) & mask == np.uint64(0)
    return drawn


@kernel
def _left(numbers, writes, misses, is_changed, begin):
    # A sector that is taken again from memory was replaced before: it was written back if it had changed.
    count = 0
    for k in range(len(numbers)):
        if misses[k]:
            count += k >= begin and is_changed[numbers[k]]
            is_changed[numbers[k]] = False
        is_changed[numbers[k]] |= writes[k]
    return count
