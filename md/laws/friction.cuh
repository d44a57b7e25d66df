// The spring-dashpot contact with friction; see friction.py. The launcher makes `struct Law` from the fields of the law in
// kernels.

#include "md/laws/pair.cuh"

__device__ __forceinline__ Vec interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    if (r2 >= law.diameter * law.diameter || r2 == 0) return acc;  // coincident centres have no direction
    real inverse = rsqrt(r2);
    Vec relative = sub(vi, load(vel, n, j));
    real approach = dot(relative, dr);
    real force = law.spring * (law.diameter - r2 * inverse) - law.damping * approach * inverse;
    Vec sliding = add_scaled(relative, -approach * inverse * inverse, dr);
    real speed = sqrt(dot(sliding, sliding));
    real limit = law.friction * (force > 0 ? force : (real)0);
    real drag = law.tangential_damping * speed > limit ? limit / speed : law.tangential_damping;  // above the limit speed > 0
    return add_scaled(add_scaled(acc, force * inverse, dr), -drag, sliding);
}

__device__ __forceinline__ double potential(const Law& law, double r) {
    double overlap = law.diameter - r;
    return law.spring * overlap * overlap / 2;
}
