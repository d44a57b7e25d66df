"""Operations on bits, for kernels: interleave coordinates, separate them, Gray codes, a hash.

Contract. A key of `order` bits an axis has, from its highest bit on, a group of `dim` bits for each level;
axis k gives bit k of a group. To spread the bits of a coordinate to their groups, halves, then quarters, and
so on, are moved apart by one shift and one mask each (Warren, Hacker's Delight, 2nd ed. (2013), section 7-2,
for one distance; here the masks are those of any dim).
"""

from functools import lru_cache

import numpy as np

from sfc.compile import kernel


@lru_cache(maxsize=256)
def masks_of(dim: int, order: int) -> np.ndarray:
    """Compute the masks of the places of a coordinate's bits while they are spread.

    Args:
        dim: dimensions.
        order: bits of a coordinate; dim * order is at most 64.

    Returns:
        (steps + 1,) uint64. Mask j has the bits in blocks of 2**j neighbours, each block at its place in the
        key; mask 0 has each bit at its place, the last one all bits together.
    """
    steps = max(order - 1, 0).bit_length()
    blocks = (1 << np.arange(steps + 1))[:, None]
    bit = np.arange(order)
    places = (bit // blocks * blocks * dim + bit % blocks).astype(np.uint64)
    return np.bitwise_or.reduce(np.uint64(1) << places, axis=1)


@kernel(forceinline=True)
def spread(bits, masks, gap):
    """Move bit b of a coordinate to bit b * dim, for all its bits; `gap` is dim - 1."""
    for step in range(len(masks) - 2, -1, -1):
        bits = (bits | bits << (gap << np.uint64(step))) & masks[step]
    return bits


@kernel(forceinline=True)
def gathered(key, masks, gap):
    """Move bit b * dim of a key to bit b, and leave out all others; the inverse of `spread`."""
    key &= masks[0]
    for step in range(len(masks) - 1):
        key = (key | key >> (gap << np.uint64(step))) & masks[step + 1]
    return key


@kernel(forceinline=True)
def interleaved(cells, i, masks):
    """Interleave the bits of the coordinates of cell i."""
    dim = cells.shape[1]
    key = np.uint64(0)
    for k in range(dim):
        key |= spread(cells[i, k], masks, np.uint64(dim - 1)) << np.uint64(k)
    return key


@kernel(forceinline=True)
def separate(key, masks, cells, i):
    """Store the coordinates of a key in cell i; the inverse of `interleaved`."""
    dim = cells.shape[1]
    for k in range(dim):
        cells[i, k] = gathered(key >> np.uint64(k), masks, np.uint64(dim - 1))


@kernel(forceinline=True)
def is_inside(cells, i, order):
    """Return whether no coordinate of cell i, uint64, has more than `order` bits."""
    any_bits = np.uint64(0)
    for k in range(cells.shape[1]):
        any_bits |= cells[i, k]
    return any_bits >> np.uint64(order) == np.uint64(0)


@kernel(forceinline=True)
def last_key(dim, order):
    """Return the largest key."""
    bits = dim * order
    return ~np.uint64(0) >> np.uint64(64 - bits) if bits > 0 else np.uint64(0)


@kernel(forceinline=True)
def ones(bits):
    """Count the ones: of pairs, of fours, of eights, of all (Warren, section 5-1)."""
    bits = bits - (bits >> np.uint64(1) & np.uint64(0x5555555555555555))
    fours = np.uint64(0x3333333333333333)
    bits = (bits & fours) + (bits >> np.uint64(2) & fours)
    bits = bits + (bits >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return bits * np.uint64(0x0101010101010101) >> np.uint64(56)


@kernel(forceinline=True)
def gray_code(number):
    """Return the reflected Gray code of a number."""
    return number ^ number >> np.uint64(1)


@kernel(forceinline=True)
def gray_number(code):
    """Return the number of a reflected Gray code; the inverse of `gray_code`."""
    for step in range(6):
        code ^= code >> (np.uint64(1) << np.uint64(step))
    return code


@kernel(forceinline=True)
def mixed(word):
    """Return the hash of a 64-bit word (splitmix64: Steele, Lea and Flood, 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
