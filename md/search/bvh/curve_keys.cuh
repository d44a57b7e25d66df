// Reduction by which the kernels of curve_keys.cu find the extent of the particles.

#include "md/backend/sorting/keys.cuh"

#define PARTS 256  // parts of the particles, each reduced by a block
#define FAR 7  // largest distance out of the box in box lengths; as in curve_keys.py

// Minimum and maximum of a block's values, valid in thread 0.
__device__ __forceinline__ void spread_of_block(real& low, real& high) {
    __shared__ real lows[8], highs[8];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        low = min(low, __shfl_xor_sync(~0u, low, apart));
        high = max(high, __shfl_xor_sync(~0u, high, apart));
    }
    __syncthreads();  // the values of the axis before are read
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
