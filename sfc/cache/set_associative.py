"""Set-associative caches, the model of hardware caches."""

import numpy as np

from sfc import checks
from sfc.cache.stream import HitRatio, whole_numbers, words
from sfc.compile import kernel


def set_associative(addresses: np.ndarray, size: int, line: int, ways: int) -> HitRatio:
    """Count the hits of a set-associative cache with LRU replacement within each set, as cachegrind does.

    The line of an address is address // line, and its set is that number modulo the number of sets. Time
    grows with the ways: for a single set of many ways, `lru(addresses // line)` gives the same hits sooner.

    Args:
        addresses: (n,) integers of at least 0, in bytes; each load lies within a line.
        size: bytes of the cache, a multiple of line * ways, at most 2**40. The model takes eight bytes for
            each line, and for each set.
        line: bytes of a line, a power of two.
        ways: lines of a set; 1 is a direct-mapped cache, size / line a fully associative one.

    Returns:
        The hit ratio.

    Raises:
        TypeError: addresses that make no array, or a number that is no integer.
        ValueError: addresses that are negative, not one-dimensional or not integers; an impossible cache, or
            one of more lines than fit in memory.

    Hill and Smith (1989), doi:10.1109/12.40842; Nethercote (2004), the simulation of cachegrind.
    """
    addresses = whole_numbers("addresses", addresses, 0, outside="begin the array at address 0")
    size = checks.integer("size", size, 1, 2**40, unit="bytes of the cache")
    line = checks.integer("line", line, 1, size, unit="bytes of a line of the cache")
    ways = checks.integer("ways", ways, 1, size, unit="lines of a set of the cache")
    if line & (line - 1):
        raise ValueError(f"line = {line} bytes; allowed: a power of two, as {1 << line.bit_length()}")
    if size % (line * ways):
        raise ValueError(f"size = {size} bytes; allowed: a multiple of line * ways = {line * ways} bytes")
    lines, sets = size // line, size // (line * ways)
    needed, remedy = 8 * (lines + 2 * sets), "take longer lines or a smaller cache"
    checks.require_allocatable(f"a cache of {lines} lines", needed, remedy)
    stored, filled = np.zeros((sets, ways), np.uint64), np.zeros(sets, np.int64)
    hits = _set_hits(words(addresses), np.uint64(line.bit_length() - 1), stored, filled)
    return HitRatio(int(hits), len(addresses))


@kernel
def _set_hits(addresses, shift, stored, filled):
    # Row s of `stored`: the filled[s] lines of set s, the latest first.
    hits = 0
    for i in range(len(addresses)):
        number = np.uint64(addresses[i]) >> shift
        chosen = np.int64(number % np.uint64(len(stored)))
        place = 0
        while place < filled[chosen] and stored[chosen, place] != number:
            place += 1
        if place < filled[chosen]:
            hits += 1
        else:
            filled[chosen] = min(filled[chosen] + 1, stored.shape[1])
            place = filled[chosen] - 1
        for later in range(place, 0, -1):
            stored[chosen, later] = stored[chosen, later - 1]
        stored[chosen, 0] = number
    return hits
