// How the kernels of curve_keys.cu find the extent of the particles.

#include "md/backend/sorting/keys.cuh"

#define PARTS 256  // of the particles, each found by a block
#define FAR 7  // lengths out of the box; as in curve_keys.py

// The least and the greatest of a block's values; in thread 0.
__device__ __forceinline__ void spread_of_block(real& low, real& high) {
    __shared__ real lows[8], highs[8];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        low = min(low, __shfl_xor_sync(~0u, low, apart));
        high = max(high, __shfl_xor_sync(~0u, high, apart));
    }
    __syncthreads();  // those of the axis before are read
    if (lane == 0) {
        lows[warp] = low;
        highs[warp] = high;
    }
    __syncthreads();
    for (int w = 0; w < 8; ++w) {
        low = min(low, lows[w]);
        high = max(high, highs[w]);
    }
}
