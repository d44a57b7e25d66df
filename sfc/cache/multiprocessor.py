"""The first cache of a GPU: what the warps of one multiprocessor find in it, from the first to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import LANES, READ, LoadStream, WarpLoads
from sfc.cache.sectors import Estimate, drawn_of, loads_in_parts, ratio, sector_of, sectors_of
from sfc.compile import kernel

TOGETHER = 8  # warps that issue the instructions of a round in turn, one each


@dataclass(frozen=True)
class L1:
    """First cache of a multiprocessor.

    Empty lines of a set are filled first; then two are drawn, and the one used earlier is replaced.

    Attributes:
        size: bytes, a multiple of line * ways; without what the kernel takes as shared memory.
        ways: lines of a set.
        line: bytes of a line, a power of two.
        sector: bytes that are filled at once, a power of two; at most 64 in a line.
        multiprocessors: of the device: blocks are handed to them in turn.
        threads: that a multiprocessor works on at the same time, with the registers of the kernel.

    Raises:
        TypeError: a number that is no integer.
        ValueError: a cache that cannot be.
    """

    size: int
    ways: int
    line: int = 128
    sector: int = 32
    multiprocessors: int = 132
    threads: int = 2048

    def __post_init__(self) -> None:
        for name, most, unit in (
            ("size", 2**40, "bytes"), ("ways", 2**20, "lines of a set"), ("line", 2**20, "bytes"),
            ("multiprocessors", 2**20, ""), ("threads", 2**20, ""),
        ):  # fmt: skip
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1, most, unit=unit))
        object.__setattr__(self, "sector", sector_of(self.sector))
        if self.line % self.sector or self.line & (self.line - 1) or self.line > 64 * self.sector:
            raise ValueError(
                f"line = {self.line} bytes of sectors of {self.sector}; allowed: a power of two, of 1 to 64 "
                "sectors"
            )
        if self.size % (self.line * self.ways):
            raise ValueError(
                f"size = {self.size} bytes; allowed: a multiple of line * ways = {self.line * self.ways}"
            )

    @property
    def sets(self) -> int:
        """Number of sets; the lines are spread over them by a hash."""
        return self.size // (self.line * self.ways)


class L1Loads(NamedTuple):
    """Loads of a first cache, in sectors for each item of the kernel.

    Attributes:
        read: sectors that were looked up.
        missed: those that were not there.
    """

    read: Estimate
    missed: Estimate


def l1(stream: LoadStream, cache: L1, sample: int = 4, seed: int = 0) -> L1Loads:
    """Predict which loads the first cache of a GPU serves.

    A multiprocessor works on as many blocks as fit, and on the next one when all warps of one are done. The
    warps take their rounds in turn, `TOGETHER` of them instruction by instruction. Stores and atomic
    operations pass the cache by. It starts empty.

    Args:
        stream: loads and stores of a kernel.
        cache: its first cache.
        sample: number of multiprocessors that are followed, drawn at random; all if there are no more.
        seed: of the draw.

    Returns:
        Sectors for each item; the errors are those of the sample, by the spread of the multiprocessors.

    Raises:
        TypeError: no stream, no cache, or a number that is no integer.
        ValueError: a block with more threads than a multiprocessor works on.
    """
    stream = checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    cache = checks.instance("cache", cache, L1, "an sfc.cache.L1", "make L1(size, ways)")
    if stream.block > cache.threads:
        raise ValueError(
            f"blocks of {stream.block} threads; allowed: up to {cache.threads}, those of a multiprocessor"
        )
    busy = min(cache.multiprocessors, stream.blocks)
    drawn = drawn_of(busy, checks.integer("sample", sample, 1, unit="multiprocessors"), seed)
    counts = np.array([_followed(stream, cache, int(one)) for one in drawn])
    share = len(drawn) / busy
    return L1Loads(*(ratio(counts[:, k], counts[:, 0], share) for k in (1, 2)))


def _followed(stream: LoadStream, cache: L1, number: int) -> tuple[float, float, float]:
    """Follow one multiprocessor: its items, and the sectors that it looked up and missed."""
    each = stream.block // LANES
    blocks = np.arange(number, stream.blocks, cache.multiprocessors)
    numbers = (blocks[:, None] * each + np.arange(each)).ravel()
    is_there = numbers < stream.warps
    parts = [_reads(loads, cache.sector) for loads in loads_in_parts(stream, numbers[is_there])]
    rounds, ends, sectors = _joined(parts)
    first = np.zeros(len(numbers) + 1, np.int64)
    first[1:][is_there] = np.concatenate([part[0] for part in parts])
    first = np.cumsum(first)
    resident = min(len(blocks), cache.threads // stream.block)
    tags = np.full((cache.sets, cache.ways), -1, np.int64)
    state = tags, np.zeros_like(tags, np.uint64), np.zeros_like(tags)
    per_line = (cache.line // cache.sector).bit_length() - 1
    looked, missed = _run(first, rounds, ends, sectors, each, resident, per_line, *state)
    items = np.minimum(LANES, stream.items - LANES * numbers[is_there]).sum()
    return float(items), float(looked), float(missed)


def _reads(loads: WarpLoads, sector: int) -> tuple[np.ndarray, ...]:
    """Return the events of each warp that read, where rounds begin, and the sectors of each event."""
    sectors, ends = sectors_of(loads, sector)
    is_read = loads.kind == READ
    warp = np.repeat(np.arange(len(loads.first) - 1), np.diff(loads.first))
    events = np.bincount(warp[is_read], minlength=len(loads.first) - 1)
    lengths = np.diff(ends)
    # A round that begins with a store begins with the load after it.
    begun = np.cumsum(loads.waits)[is_read]
    waits = np.diff(begun, prepend=-1) > 0
    return events, waits, lengths[is_read], sectors[np.repeat(is_read, lengths)]


def _joined(parts: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the events of parts of the warps: where rounds begin, ends of events, and sectors."""
    waits, lengths, sectors = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
    return waits, np.concatenate([[0], np.cumsum(lengths)]), sectors


@kernel
def _find(line, bit, tags, filled, used, clock):
    # Returns whether the sector of a line is there, and fills it.
    chosen = np.int64(mixed(np.uint64(line)) % np.uint64(len(tags)))
    ways, place, free = tags.shape[1], -1, -1
    for way in range(ways):
        if tags[chosen, way] == line:
            place = way
        elif tags[chosen, way] < 0:
            free = way
    if place < 0:
        place = free
        if free < 0:
            word = mixed(np.uint64(clock))
            place = np.int64((word & np.uint64(2**32 - 1)) % np.uint64(ways))
            other = np.int64((word >> np.uint64(32)) % np.uint64(ways))
            if used[chosen, other] < used[chosen, place]:
                place = other
        tags[chosen, place] = line
        filled[chosen, place] = 0
    found = filled[chosen, place] & bit
    filled[chosen, place] |= bit
    used[chosen, place] = clock
    return found != 0


@kernel
def _ask(begin, end, sectors, per_line, tags, filled, used, looked):
    # Looks up the sectors of an instruction; returns those that are not there.
    missed = 0
    for s in range(begin, end):
        bit = np.uint64(1) << np.uint64(sectors[s] & ((1 << per_line) - 1))
        missed += not _find(sectors[s] >> per_line, bit, tags, filled, used, looked + s - begin + 1)
    return missed


@kernel
def _begin(first, following, left, at, end, each):
    # Gives the next blocks to places of blocks that are done; returns how many blocks have begun.
    for place in range(len(left)):
        while left[place] == 0 and following < (len(first) - 1) // each:
            for k in range(each):
                at[place * each + k] = first[following * each + k]
                end[place * each + k] = first[following * each + k + 1]
                left[place] += at[place * each + k] < end[place * each + k]
            following += 1
    return following


@kernel
def _run(first, waits, ends, sectors, each, resident, per_line, tags, filled, used):
    # The resident blocks have `each` warps side by side in `at`, the event of each warp, and `end`.
    at, end = np.zeros(resident * each, np.int64), np.zeros(resident * each, np.int64)
    left = np.zeros(resident, np.int64)  # warps of each block that are not done
    goes_on = np.zeros(resident * each, np.uint8)  # in the present round
    following, looked, missed = 0, 0, 0
    while True:
        following = _begin(first, following, left, at, end, each)
        if not left.any():
            return looked, missed
        for begin in range(0, len(at), TOGETHER):
            last, some = min(begin + TOGETHER, len(at)), True
            for k in range(begin, last):
                goes_on[k] = at[k] < end[k]
            while some:
                some = False
                for k in range(begin, last):
                    if not goes_on[k]:
                        continue
                    asked = ends[at[k]], ends[at[k] + 1]
                    missed += _ask(asked[0], asked[1], sectors, per_line, tags, filled, used, looked)
                    looked += asked[1] - asked[0]
                    at[k] += 1
                    goes_on[k] = at[k] < end[k] and not waits[at[k]]
                    some |= goes_on[k]
                    left[k // each] -= at[k] == end[k]
