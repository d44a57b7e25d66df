// Sums two vectors and a count; see alignment.py.

#include "md/laws/pair.cuh"

struct Sums {
    Vec velocities, places;
    int count;
};

__device__ __forceinline__ Sums initial(const Law& law, const Vec& ri) { return {zero(), zero(), 0}; }

__device__ __forceinline__ Sums interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                         const Vec& vi, const Sums& acc) {
    if (r2 >= law.cutoff * law.cutoff) return acc;
    Vec relative = sub(load(vel, n, j), vi);
    return {add_scaled(acc.velocities, law.cutoff, relative), add_scaled(acc.places, law.cutoff, dr), acc.count + 1};
}

__device__ __forceinline__ Vec result(const Law& law, const Vec& ri, const Vec& vi, const Sums& acc) {
    if (acc.count == 0) return zero();
    return add_scaled(add_scaled(zero(), law.rate / acc.count, acc.velocities), law.push, acc.places);
}
