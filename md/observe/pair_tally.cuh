// Sums energies and contacts of the touching partners of a particle; see pair_tally.py. The wrapped law, if it has an energy,
// comes before this text, as `Pair`.

#include "md/laws/pair.cuh"

// Squared distance of a pair after a free flight of some time.
__device__ __forceinline__ double distance2_at(const Vec& dr, const Vec& dv, double time) {
    double total = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        double difference = dr.x[axis] + time * dv.x[axis];
        total += difference * difference;
    }
    return total;
}

__device__ __forceinline__ Vec interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    real size = pair_size(law.radius, i, j), reach2 = law.reach2 * (size * size);
    if (r2 >= reach2) return acc;
    Vec dv = sub(vi, load(vel, n, j));
    law.touching[i] += 1;
    law.started[i] += distance2_at(dr, dv, -law.dt) >= reach2;
#if defined(HAS_PAIR)
    double s = size;
    law.energy[i] += s * s * potential(law.pair, sqrt(distance2_at(dr, dv, 0)) / s) / 2;
#endif
    return acc;
}
