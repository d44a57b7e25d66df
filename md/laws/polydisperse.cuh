// A law between spheres of different radius; see polydisperse.py. The wrapped law comes before this text, as `Pair`.

#include "md/laws/pair.cuh"

__device__ __forceinline__ auto initial(const Law& law, const Vec& ri) { return initial(law.pair, ri); }

#if defined(OWN_SUMS)  // a law with an `initial` or a `result` of its own: lengths are scaled
template <class Acc>
__device__ __forceinline__ Acc interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Acc& acc) {
    real size = pair_size(law.radius, i, j), size2 = size * size;
    if (r2 >= law.reach2 * size2) return acc;
    return interact(law.pair, vel, n, i, j, r2 / size2, add_scaled(zero(), 1 / size, dr), vi, acc);
}

#else  // lengths, velocities and forces are scaled
__device__ __forceinline__ Vec interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    real size = pair_size(law.radius, i, j), size2 = size * size;
    if (r2 >= law.reach2 * size2) return acc;
    real inverse = 1 / size;
    Vec slower = add_scaled(vi, inverse - 1, sub(vi, load(vel, n, j)));  // (slower - v_j) = (v_i - v_j) / s
    return add_scaled(acc, size,
                      interact(law.pair, vel, n, i, j, r2 / size2, add_scaled(zero(), inverse, dr), slower, zero()));
}
#endif

template <class Acc>
__device__ __forceinline__ auto result(const Law& law, const Vec& ri, const Vec& vi, const Acc& acc) {
    return result(law.pair, ri, vi, acc);
}
