"""The stable counting sort on the CPU, and filling; counting.cu sorts on a device in steps."""

import numba

from sfc.compile import kernel

MAX_PARTS = 8  # each part holds a count per bin


@kernel(parallel=True)
def counting_sort(n, keys, count, start, order):
    """Each part counts its own stretch of the keys, then writes them where the parts before it end.

    Args:
        n: number of keys.
        keys: (n,) int32 in [0, bins).
        count: (parts, bins) int32 scratch.
        start: (bins + 1,) int32, filled: place of the first key of each bin.
        order: (n,) int32, filled: where each sorted key comes from.
    """
    parts, bins = count.shape
    for p in numba.prange(parts):
        count[p] = 0
        for i in range(p * n // parts, (p + 1) * n // parts):
            count[p, keys[i]] += 1
    total = 0
    for k in range(bins):
        start[k] = total
        for p in range(parts):
            here = count[p, k]
            count[p, k] = total
            total += here
    start[bins] = total
    for p in numba.prange(parts):
        for i in range(p * n // parts, (p + 1) * n // parts):
            key = keys[i]
            order[count[p, key]] = i
            count[p, key] += 1


@kernel(parallel=True)
def fill(array, value):
    """Set every entry of an array."""
    for i in numba.prange(len(array)):
        array[i] = value
