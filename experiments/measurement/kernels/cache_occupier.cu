// A kernel that takes a part of the second cache from others; see cache_occupier.py.

#include "experiments/measurement/kernels/past_l1.cuh"

__device__ __forceinline__ long long nanoseconds() {
#if defined(__CUDA_ARCH__)
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
}

// Loads a number of each line again and again, until `ended` is set or `most` ms have passed; sets `late` then.
extern "C" __global__ void occupy(int n, const int* data, int lines, int most, const int* ended, int* late,
                                  long long* taken, long long* sums) {
    __shared__ int is_over;
    int i = work_item(), line = i % lines;
    long long began = nanoseconds(), loads = 0, sum = 0;
    for (;;) {
        if (threadIdx.x == 0) {
            bool is_late = nanoseconds() - began > 1000000LL * most;
            if (is_late) *late = 1;
            is_over = is_late || *(const volatile int*)ended;
        }
        __syncthreads();
        if (is_over) break;
#pragma unroll 8
        for (int k = 0; k < EACH; ++k) {
            sum += load_past_l1(data + (size_t)NUMBERS * line);
            line += n;
            while (line >= lines) line -= lines;
        }
        loads += EACH;
        __syncthreads();
    }
    taken[i] = loads;
    sums[i] = sum;
}
