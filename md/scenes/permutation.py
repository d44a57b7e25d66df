"""Random permutation that is a function: entry i is computed alone, by any thread, without a sort.

A Feistel network is a bijection of the numbers of some bits, whatever its round function is. Of the numbers
below the least power of 2 that is at least n, those of n and above are encrypted again until the result is
below n (cycle walking), which is a bijection of 0 .. n - 1: fewer than two turns on average.
`permutation.cuh` holds the same function.

Feistel networks: Luby and Rackoff, SIAM J. Comput. 17 (1988) 373: four rounds of random functions look
random; here are eight. Cycle walking: Black and Rogaway, Ciphers with arbitrary finite domains, CT-RSA
(2002). As a shuffle on GPUs: Mitchell, Stokes, Frank and Holmes, Bandwidth-optimal random shuffling for GPUs,
ACM Trans. Parallel Comput. 9 (2022). Round function: the finalizer of MurmurHash3 (Appleby).
"""

import numpy as np

from sfc.compile import callee, inlined

ROUNDS = 8
_LOW = np.uint64(2**32 - 1)
_16, _13 = np.uint64(16), np.uint64(13)
_FIRST, _SECOND = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_1 = np.uint64(1)


def bits_of(n: int) -> int:
    """Return the number of bits of the network for a permutation of n numbers."""
    return (n - 1).bit_length()


@inlined
def scrambled(word):
    """Return the hash of the lower 32 bits of a word, 32 bits as uint64."""
    word &= _LOW
    word = ((word ^ (word >> _16)) * _FIRST) & _LOW
    word = ((word ^ (word >> _13)) * _SECOND) & _LOW
    return word ^ (word >> _16)


@callee
def permuted(i, n, bits, keys):
    """Return entry i of the permutation of 0 .. n - 1 that belongs to some keys.

    Args:
        i: 0 .. n - 1.
        n: below 2^32.
        bits: `bits_of(n)`.
        keys: of the rounds, `ROUNDS` numbers of 32 bits.

    Returns:
        The entry, as uint64.
    """
    left_bits = np.uint64(bits >> 1)
    right_bits = np.uint64(bits) - left_bits
    left_mask, right_mask = (_1 << left_bits) - _1, (_1 << right_bits) - _1
    x = np.uint64(i)
    while True:
        left, right = x >> right_bits, x & right_mask
        for k in range(0, ROUNDS, 2):
            left ^= scrambled(right + np.uint64(keys[k])) & left_mask
            right ^= scrambled(left + np.uint64(keys[k + 1])) & right_mask
        x = (left << right_bits) | right
        if x < np.uint64(n):
            return x
