"""Sectors that the warps of a kernel ask of memory, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.cache.loads import ADDED, LANES, READ, WRITTEN, LoadStream, WarpLoads
from sfc.compile import kernel

AT_ONCE = 2**9  # warps with their loads in memory at the same time


class Estimate(NamedTuple):
    """Mean of a sample, and the standard error of that mean; 0 if the sample has all there is."""

    mean: float
    error: float


class WarpSectors(NamedTuple):
    """Sectors that warps ask for, in sectors for each item of the kernel.

    Attributes:
        read: by loads.
        written: by stores.
        added: by atomic operations. Lanes with the same address take turns: each sector counts as often as
            the address in it that most lanes have.
        rounds: groups of instructions for which a warp waits, in rounds for each warp.
    """

    read: Estimate
    written: Estimate
    added: Estimate
    rounds: Estimate


def warps(stream: LoadStream, sector: int = 32, sample: int = 2000, seed: int = 0) -> WarpSectors:
    """Count the sectors that warps ask for: in each instruction the different ones that its lanes address.

    Args:
        stream: loads and stores of a kernel.
        sector: bytes of a sector, a power of two.
        sample: number of warps that are counted, drawn at random; all if there are no more.
        seed: of the draw.

    Raises:
        TypeError: no stream, or a number that is no integer.
        ValueError: a sector that is no power of two, or no warp.

    NVIDIA, CUDA C++ Programming Guide, "Device Memory Accesses".
    """
    stream = checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    sector = sector_of(sector)
    drawn = drawn_of(stream.warps, checks.integer("sample", sample, 1, unit="warps"), seed)
    items = np.minimum(LANES, stream.items - LANES * drawn)
    counts = [counted(loads, sector) for loads in loads_in_parts(stream, drawn)]
    read, written, added, rounds = (np.concatenate(each) for each in zip(*counts, strict=True))
    share = len(drawn) / stream.warps
    of_items = {"read": read, "written": written, "added": added}
    sectors = {name: ratio(one, items, share) for name, one in of_items.items()}
    return WarpSectors(**sectors, rounds=ratio(rounds, np.ones(len(drawn)), share))


def sector_of(sector: int, name: str = "sector") -> int:
    """Check the bytes of a sector: a power of two from 16 on, as a lane takes up to 16 bytes at once."""
    sector = checks.integer(name, sector, 16, 2**20, unit="bytes")
    if sector & (sector - 1):
        raise ValueError(f"{name} = {sector} bytes; allowed: a power of two, as 32")
    return sector


def drawn_of(n: int, sample: int, seed: int) -> np.ndarray:
    """Draw some of n numbers without repetition: (min(n, sample),) int64, ascending."""
    seed = checks.integer("seed", seed, 0, 2**63)
    if sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))


def loads_in_parts(stream: LoadStream, drawn: np.ndarray) -> Iterator[WarpLoads]:
    """Yield the loads of warps, of so many at a time that they fit in memory."""
    return parts_of(stream.loads_of, drawn)


def parts_of(loads_of: Callable[[np.ndarray], WarpLoads], drawn: np.ndarray) -> Iterator[WarpLoads]:
    """Yield what a function returns for warps, `AT_ONCE` at a time."""
    for begin in range(0, len(drawn), AT_ONCE):
        yield loads_of(drawn[begin : begin + AT_ONCE])


def counted(loads: WarpLoads, sector: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Count the sectors read, written and added to, and the rounds, of each warp (`WarpSectors`)."""
    _, ends = sectors_of(loads, sector)
    asked, n = np.diff(ends), len(loads.first) - 1
    _take_turns(loads.start, loads.address, loads.kind, sector.bit_length() - 1, asked)
    warp = np.repeat(np.arange(n), np.diff(loads.first))
    read, written, added = (
        np.bincount(warp, np.where(loads.kind == kind, asked, 0), n) for kind in (READ, WRITTEN, ADDED)
    )
    begins = loads.waits.copy()
    begins[loads.first[:-1][np.diff(loads.first) > 0]] = True
    return read, written, added, np.bincount(warp, begins, n)


def sectors_of(loads: WarpLoads, sector: int) -> tuple[np.ndarray, np.ndarray]:
    """List the different sectors of each event.

    Returns:
        (s,) int64 numbers of sectors, and (e + 1,) int64: those of event k are ends[k] .. ends[k + 1] - 1.
    """
    found, ends = np.empty(len(loads.address), np.int64), np.zeros(len(loads.start), np.int64)
    shift = sector.bit_length() - 1
    count = _different(loads.start, loads.address, shift, found, ends)
    return found[:count], ends


def ratio(values: np.ndarray, weights: np.ndarray, share: float) -> Estimate:
    """Estimate the sum of values over that of weights, of which a share was drawn."""
    mean = float(values.sum() / weights.sum())
    if share >= 1 or len(values) < 2:
        return Estimate(mean, 0.0 if share >= 1 else float("inf"))
    spread = np.std(values - mean * weights, ddof=1) / weights.mean()
    return Estimate(mean, float(spread / np.sqrt(len(values)) * np.sqrt(1 - share)))


@kernel
def _different(start, address, shift, found, ends):
    count = 0
    for event in range(len(start) - 1):
        begin = count
        for lane in range(start[event], start[event + 1]):
            sector, known = address[lane] >> shift, False
            for k in range(count - 1, begin - 1, -1):
                if found[k] == sector:
                    known = True
                    break
            if not known:
                found[count] = sector
                count += 1
        ends[event + 1] = count
    return count


@kernel
def _take_turns(start, address, kinds, shift, asked):
    # Sets what an atomic operation asks for: for each sector the lanes of the number that most of them have.
    for event in range(len(start) - 1):
        if kinds[event] != ADDED:
            continue
        here = np.sort(address[start[event] : start[event + 1]])
        asked[event], most, run = 0, 0, 0
        for lane in range(len(here)):
            run = run + 1 if lane and here[lane] == here[lane - 1] else 1
            if lane and here[lane] >> shift != here[lane - 1] >> shift:
                asked[event] += most
                most = 0
            most = max(most, run)
        asked[event] += most
