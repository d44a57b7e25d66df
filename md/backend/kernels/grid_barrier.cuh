// A barrier of all blocks of a resident kernel (md/backend/kernels/on_device.py).

// Waits until all threads of all blocks have come here; each then sees what the others have written before. `word` is 0 at first.
// The first block adds what is missing to 2^31, the others 1 each: all are there when the highest bit changes.
__device__ __forceinline__ void wait_for_all_blocks(unsigned* word) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned own = blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1);
#if defined(__CUDA_ARCH__)
        unsigned before, now;
        __threadfence();
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(own) : "memory");
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        } while (!((before ^ now) & 0x80000000u));
        __threadfence();
#else
        unsigned before = atomicAdd(word, own);
        while (!((before ^ *word) & 0x80000000u)) yield_to_others();
#endif
    }
    __syncthreads();
}
