// Reductions over the threads of a warp. All threads of the warp call them; one thread writes.

// A non-negative number as a word: the words are in the order of the numbers, with NaN above all.
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
