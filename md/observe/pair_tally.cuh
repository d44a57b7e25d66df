// Takes down what the touching partners of a particle amount to; see pair_tally.py. The loader puts the law that is measured
// before this text and calls it `Pair`, if it tells an energy.

#include "md/laws/pair.cuh"

// Square of the distance of a pair that flies on, or back, for some time.
__device__ __forceinline__ double square_at(const Vec& dr, const Vec& dv, double time) {
    double total = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        double apart = dr.x[axis] + time * dv.x[axis];
        total += apart * apart;
    }
    return total;
}

__device__ __forceinline__ Vec interact(const Law& law, const real* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    real size = pair_size(law.radius, i, j), reach2 = law.reach2 * (size * size);
    if (r2 >= reach2) return acc;
    Vec dv = sub(vi, load(vel, n, j));
    law.touching[i] += 1;
    law.begun[i] += square_at(dr, dv, -law.dt) >= reach2;
#if defined(HAS_PAIR)
    law.energy[i] += size * potential(law.pair, sqrt(square_at(dr, dv, 0)) / size) / 2;
#endif
    return acc;
}
