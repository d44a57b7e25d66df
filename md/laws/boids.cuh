// Boids; see boids.py. The launcher makes `struct Law` from the fields of the law in kernels.

#include "md/laws/pair.cuh"

// Sums over neighbours, of the boid less the neighbour: positions in the separation radius, velocities in the alignment
// radius, positions in the cohesion radius; and the numbers of neighbours in the last two.
struct Sums {
    Vec apart, velocities, centre;
    int aligned, close;
};

__device__ __forceinline__ Sums initial(const Law& law, const Vec& ri) { return {zero(), zero(), zero(), 0, 0}; }

__device__ __forceinline__ Sums interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                         const Vec& vi, const Sums& acc) {
    real widest = max(max(law.cohesion_radius, law.separation_radius), law.alignment_radius);
    if (r2 >= widest * widest) return acc;
    Sums sums = acc;
    if (r2 < law.cohesion_radius * law.cohesion_radius) {
        sums.centre = add_scaled(sums.centre, (real)1, dr);
        ++sums.close;
    }
    if (r2 < law.alignment_radius * law.alignment_radius) {
        sums.velocities = add_scaled(sums.velocities, (real)1, sub(vi, load(vel, n, j)));
        ++sums.aligned;
    }
    if (r2 < law.separation_radius * law.separation_radius) sums.apart = add_scaled(sums.apart, (real)1, dr);
    return sums;
}

__device__ __forceinline__ Vec result(const Law& law, const Vec& ri, const Vec& vi, const Sums& acc) {
    Vec away = add_scaled(zero(), law.separation, acc.apart);
    Vec turned = add_scaled(away, -law.alignment / (real)max(acc.aligned, 1), acc.velocities);
    return add_scaled(turned, -law.cohesion / (real)max(acc.close, 1), acc.centre);
}

// The result from sums within the cohesion, separation and alignment radius, in this order.
__device__ __forceinline__ Vec result_of_windows(const Law& law, const Vec& ri, const Vec& vi, const WindowSums (&sums)[3]) {
    return result(law, ri, vi, {sums[1].pos, sums[2].vel, sums[0].pos, sums[2].count, sums[0].count});
}
