// Counts the partners of a particle and lists them as long as there is room; see contact_list.py.

#include "md/laws/pair.cuh"

__device__ __forceinline__ long long initial(const Law& law, const Vec& ri) { return 0; }

__device__ __forceinline__ long long interact(const Law& law, const velocity* vel, int n, int i, int j, real r2,
                                              const Vec& dr, const Vec& vi, long long acc) {
    if (acc < law.room) law.partners[acc * n + i] = j;
    return acc + 1;
}
