"""Caches of sets of lines, as hardware has them."""

import numpy as np

from sfc.cache.checks import checked_integer, checked_integers, words
from sfc.cache.stream import HitRatio
from sfc.compile import kernel


def set_associative(addresses: np.ndarray, size: int, line: int, ways: int) -> HitRatio:
    """A cache of sets of lines, LRU within each set, as hardware has it and as cachegrind simulates it.

    An address's line is address // line and its set that number modulo the sets, as many as there are. Time
    grows with the ways: for a single set of many, `lru(addresses // line)` gives the same hits sooner.

    Args:
        addresses: (n,) integers of at least 0, in bytes; each load lies within a line.
        size: bytes of the cache, a multiple of line * ways, at most 2**40.
        line: bytes of a line, a power of two.
        ways: lines of a set; 1 is a direct-mapped cache, size / line a fully associative one.

    Returns:
        The hit ratio.

    Raises:
        ValueError: addresses that are negative, not one-dimensional or not integers; an impossible cache.

    Hill and Smith (1989), doi:10.1109/12.40842; Nethercote (2004), the simulation of cachegrind.
    """
    addresses = checked_integers("addresses", addresses, 0)
    size, line = (
        checked_integer("cache size", size, "bytes", 1, 2**40),
        checked_integer("cache line", line, "bytes"),
    )
    ways = checked_integer("cache associativity", ways, "lines a set")
    if line & (line - 1):
        raise ValueError(f"cache line {line} bytes; allowed: a power of two, as {1 << line.bit_length()}")
    if size % (line * ways):
        raise ValueError(f"cache size {size} bytes; allowed: a multiple of line * ways = {line * ways} bytes")
    held = np.zeros((size // (line * ways), ways), np.uint64)
    hits = _set_hits(words(addresses), np.uint64(line.bit_length() - 1), held, np.zeros(len(held), np.int64))
    return HitRatio(int(hits), len(addresses))


@kernel
def _set_hits(addresses, shift, held, filled):
    # Row s of `held`: the filled[s] lines of set s, the latest first.
    hits = 0
    for i in range(len(addresses)):
        number = np.uint64(addresses[i]) >> shift
        chosen = np.int64(number % np.uint64(len(held)))
        place = 0
        while place < filled[chosen] and held[chosen, place] != number:
            place += 1
        if place < filled[chosen]:
            hits += 1
        else:
            filled[chosen] = min(filled[chosen] + 1, held.shape[1])
            place = filled[chosen] - 1
        for later in range(place, 0, -1):
            held[chosen, later] = held[chosen, later - 1]
        held[chosen, 0] = number
    return hits
