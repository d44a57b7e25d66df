// Deviates of the benchmark gas, for its kernels in benchmark.cu; see benchmark.py.
#include "deviates.cuh"
#include "permutation.cuh"

#define STEPS_OF_DEVIATE 0x1p28

// Velocity components before the mean is subtracted, as whole numbers of steps.
__device__ __forceinline__ void whole_deviates(const Gas& gas, unsigned site, long long (&q)[3]) {
    Three u = uniforms(site, STREAM_VELOCITY, gas.key[0], gas.key[1]);
#pragma unroll
    for (int k = 0; k < 3; ++k) q[k] = (long long)floor(plus(times(normal(u.x[k]), STEPS_OF_DEVIATE), 0.5));
}
