"""Stable radix sort of 32- or 64-bit keys on the CPU; radix.cu sorts on a device.

Knuth, The Art of Computer Programming 3 (1998) 5.2.5; on a device, Satish, Harris and Garland, Designing
efficient sorting algorithms for manycore GPUs (2009).
"""

import numba
import numpy as np

from sfc.compile import kernel

DIGIT = 8  # bits
VALUES = 1 << DIGIT
MAX_PARTS = 8


def passes_of(bits: int) -> int:
    """Return the number of passes over keys with this many bits, at least two."""
    return max(2, -(-bits // DIGIT))


@kernel(parallel=True)
def radix_sort(n, passes, keys, order, other_keys, other_order, count):
    """Sort keys in place with a stable radix sort: for each digit, each part counts a range and places it.

    Args:
        n: number of keys.
        passes: number of digits.
        keys: (n,) uint32 or uint64, sorted in place.
        order: (n,) int32, filled: the index before the sort of each sorted key.
        other_keys: (n,) scratch of the same dtype.
        other_order: (n,) int32 scratch.
        count: (parts, 256) int32 scratch.
    """
    parts = len(count)
    for i in numba.prange(n):
        order[i] = i
    for digit in range(passes):
        shift = np.uint64(DIGIT * digit)
        from_keys, from_order = (keys, order) if digit % 2 == 0 else (other_keys, other_order)
        to_keys, to_order = (other_keys, other_order) if digit % 2 == 0 else (keys, order)
        for p in numba.prange(parts):
            count[p] = 0
            for i in range(p * n // parts, (p + 1) * n // parts):
                count[p, (np.uint64(from_keys[i]) >> shift) & np.uint64(VALUES - 1)] += 1
        total = 0
        for value in range(VALUES):
            for p in range(parts):
                here = count[p, value]
                count[p, value] = total
                total += here
        for p in numba.prange(parts):
            for i in range(p * n // parts, (p + 1) * n // parts):
                value = (np.uint64(from_keys[i]) >> shift) & np.uint64(VALUES - 1)
                to_keys[count[p, value]] = from_keys[i]
                to_order[count[p, value]] = from_order[i]
                count[p, value] += 1
    if passes % 2:  # the last pass wrote to the scratch arrays
        for i in numba.prange(n):
            keys[i], order[i] = other_keys[i], other_order[i]
