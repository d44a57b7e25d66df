"""Stable radix sort of integer keys on the CPU.

Knuth, The Art of Computer Programming 3 (1998) 5.2.5.
"""

import numpy as np

from sfc.compile import kernel, numba, thread_count

DIGIT = 8  # bits
VALUES = 1 << DIGIT
MAX_PARTS = 8
FEW = 2**12  # keys that numpy sorts in less time
MANY = 2**17  # keys that are worth two starts of all threads for each digit


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
    count = np.zeros((min(thread_count(), MAX_PARTS), VALUES), np.int64)
    radix_sort(passes_of(bits), own, order, np.empty_like(own), np.empty_like(order), count)
    return order.astype(np.int64)


def radix_sort(
    passes: int,
    keys: np.ndarray,
    order: np.ndarray,
    other_keys: np.ndarray,
    other_order: np.ndarray,
    count: np.ndarray,
) -> None:
    """Sort keys in place with a stable radix sort: for each digit, each part counts a range and places it.

    Args:
        passes: number of digits.
        keys: (n,) uint32 or uint64, sorted in place.
        order: (n,) int32 or int64, filled: the index before the sort of each sorted key.
        other_keys: (n,) scratch of the dtype of `keys`.
        other_order: (n,) scratch of the dtype of `order`.
        count: (parts, 256) int32 or int64 scratch.
    """
    run = radix_pass if len(keys) >= MANY else radix_pass.alone
    order[:] = np.arange(len(keys), dtype=order.dtype)
    pair, other = (keys, order), (other_keys, other_order)
    for digit in range(passes):
        shift = np.uint64(DIGIT * digit)
        run(*pair, *other, shift, count, False)
        total = count.T.cumsum().reshape(VALUES, -1).T
        np.subtract(total, count, out=count)
        run(*pair, *other, shift, count, True)
        pair, other = other, pair
    if passes % 2:  # the last pass wrote to the scratch arrays
        keys[:], order[:] = other_keys, other_order


@kernel(parallel=True)
def radix_pass(keys, order, to_keys, to_order, shift, count, is_counted):
    """Count the values of a digit in each part of the keys, or place the keys by them.

    Args:
        keys: (n,) uint32 or uint64.
        order: (n,) integers that move with the keys.
        to_keys: (n,) of the dtype of `keys`; filled if `is_counted`.
        to_order: (n,) of the dtype of `order`; filled if `is_counted`.
        shift: uint64, bits below the digit.
        count: (parts, 256) integers: filled with the keys of each part with each value of the digit; if
            `is_counted`, given as the place of the first one, and changed.
        is_counted: whether to place the keys.
    """
    n, parts = len(keys), len(count)
    for p in numba.prange(parts):
        if not is_counted:
            count[p] = 0
        for i in range(p * n // parts, (p + 1) * n // parts):
            value = (np.uint64(keys[i]) >> shift) & np.uint64(VALUES - 1)
            if is_counted:
                to_keys[count[p, value]] = keys[i]
                to_order[count[p, value]] = order[i]
            count[p, value] += 1
