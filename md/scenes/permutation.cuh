// Entry of a random permutation, by a Feistel network with cycle walking; see permutation.py.

#define SHUFFLE_ROUNDS 8

__device__ __forceinline__ unsigned scrambled(unsigned word) {
    word = (word ^ (word >> 16)) * 0x85EBCA6Bu;
    word = (word ^ (word >> 13)) * 0xC2B2AE35u;
    return word ^ (word >> 16);
}

__device__ __forceinline__ unsigned permuted(unsigned i, unsigned n, int bits, const unsigned (&keys)[SHUFFLE_ROUNDS]) {
    int left_bits = bits >> 1, right_bits = bits - left_bits;
    unsigned left_mask = (1u << left_bits) - 1, right_mask = (1u << right_bits) - 1;
    do {
        unsigned left = i >> right_bits, right = i & right_mask;
#pragma unroll
        for (int k = 0; k < SHUFFLE_ROUNDS; k += 2) {
            left ^= scrambled(right + keys[k]) & left_mask;
            right ^= scrambled(left + keys[k + 1]) & right_mask;
        }
        i = left << right_bits | right;
    } while (i >= n);
    return i;
}
