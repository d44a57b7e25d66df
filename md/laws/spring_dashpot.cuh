// The linear spring-dashpot contact; see spring_dashpot.py. The launcher makes `struct Law` from the fields of the law in
// kernels.

#include "md/laws/pair.cuh"

__device__ __forceinline__ Vec interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    if (r2 >= law.diameter * law.diameter || r2 == 0) return acc;  // coincident centres have no direction
    real inverse = rsqrt(r2);
    real approach = dot(sub(vi, load(vel, n, j)), dr);
    real force = law.spring * (law.diameter - r2 * inverse) - law.damping * approach * inverse;
    return add_scaled(acc, force * inverse, dr);
}

__device__ __forceinline__ double potential(const Law& law, double r) {
    double overlap = law.diameter - r;
    return law.spring * overlap * overlap / 2;
}
