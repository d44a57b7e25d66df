// A barrier of all blocks of a resident kernel (md/backend/kernels/on_device.py).

#if defined(__CUDA_ARCH__)
#define yield_to_others()  // what a thread that waits does on the host
#endif

// Waits until all threads of all blocks have come here; each then sees what the others have written before. `word` belongs to
// this kernel; its lower 31 bits are 0 between two barriers. The first block adds what is missing to 2^31, the others 1 each: all
// are there when the highest bit changes.
__device__ __forceinline__ void wait_for_all_blocks(unsigned* word) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned own = blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1);
        __threadfence();
        unsigned before = atomicAdd(word, own);
        while (!((before ^ *(volatile unsigned*)word) & 0x80000000u)) yield_to_others();
        __threadfence();
    }
    __syncthreads();
}
