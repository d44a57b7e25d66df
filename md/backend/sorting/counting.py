"""Stable counting sort and array fill on the CPU; counting.cu sorts on a device."""

import numba

from md.backend.kernels.on_device import OnDevice
from sfc.compile import in_parts, kernel

MAX_PARTS = 8  # each part has a count per bin

count_cells, scan = OnDevice(registers=(14, 16)), OnDevice(registers=(30, 30), static=(40, 40))
place, sort_bins = OnDevice(registers=(16, 16)), OnDevice(registers=(20, 20))


@kernel(parallel=True)
def counting_sort(n, keys, count, start, order):
    """Sort keys with a stable counting sort: each part counts a range of the keys and then places them.

    Args:
        n: number of keys.
        keys: (n,) int32 in [0, bins).
        count: (parts, bins) int32 scratch.
        start: (bins + 1,) int32, filled: sorted position of the first key of each bin.
        order: (n,) int32, filled: the index in `keys` of each sorted key.
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


def fill(array, value):
    """Set every entry of an array to a value."""
    in_parts(lambda part: array[part].fill(value), len(array))
