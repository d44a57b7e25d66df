// What the threads of a warp make of their values together. All of them call; one writes.

// A number that is not negative as a word: they are ordered as their bits are, NaN above them all.
__device__ __forceinline__ unsigned long long as_word(double number) { return __double_as_longlong(number); }

// Raises a word in memory to the largest of a warp.
__device__ __forceinline__ void raise_to_largest(unsigned long long* word, unsigned long long own) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) own = max(own, __shfl_xor_sync(~0u, own, apart));
    if (threadIdx.x % 32 == 0 && own > *(volatile unsigned long long*)word) atomicMax(word, own);
}

// Adds the sum of a warp to a number in memory.
__device__ __forceinline__ void add_sum(double* total, double own) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) own += __shfl_xor_sync(~0u, own, apart);
    if (threadIdx.x % 32 == 0 && own != 0) atomicAdd(total, own);
}
