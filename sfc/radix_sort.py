"""Stable radix sort of integer keys on the CPU.

Knuth, The Art of Computer Programming 3 (1998) 5.2.5.
"""

import numpy as np

from sfc.compile import kernel, numba

DIGIT = 8  # bits
VALUES = 1 << DIGIT
MAX_PARTS = 8
FEW = 2**12  # keys that numpy sorts in less time


def passes_of(bits: int) -> int:
    """Return the number of passes over keys with this many bits, at least two."""
    return max(2, -(-bits // DIGIT))


def argsort_of_keys(keys: np.ndarray, bits: int) -> np.ndarray:
    """Return the stable order of keys.

    Args:
        keys: (n,) uint64, not changed.
        bits: of the largest possible key.

    Returns:
        (n,) int64 indices of the keys in ascending order; equal keys keep theirs.
    """
    n = len(keys)
    if n < FEW:
        return np.argsort(keys, kind="stable")
    kind, number = np.uint32 if bits <= 32 else np.uint64, np.int32 if n < 2**31 else np.int64
    own, order = keys.astype(kind), np.empty(n, number)
    count = np.zeros((min(numba.get_num_threads(), MAX_PARTS), VALUES), np.int64)
    radix_sort.for_items(n)(n, passes_of(bits), own, order, np.empty_like(own), np.empty_like(order), count)
    return order.astype(np.int64)


@kernel(parallel=True)
def radix_sort(n, passes, keys, order, other_keys, other_order, count):
    """Sort keys in place with a stable radix sort: for each digit, each part counts a range and places it.

    Args:
        n: number of keys.
        passes: number of digits.
        keys: (n,) uint32 or uint64, sorted in place.
        order: (n,) int32 or int64, filled: the index before the sort of each sorted key.
        other_keys: (n,) scratch of the dtype of `keys`.
        other_order: (n,) scratch of the dtype of `order`.
        count: (parts, 256) int32 or int64 scratch.
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
