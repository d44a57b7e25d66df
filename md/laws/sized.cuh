// A law between spheres of different radius; see sized.py. The loader puts that law before this text and calls its
// parameters `Pair`.

#include "md/laws/pair.cuh"

__device__ __forceinline__ Vec interact(const Law& law, const real* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    real size = pair_size(law.radius, i, j), size2 = size * size;
    if (r2 >= law.reach2 * size2) return acc;
    return interact(law.pair, vel, n, i, j, r2 / size2, add_scaled(zero(), 1 / size, dr), vi, acc);
}
