// Counts the partners within reach and, if there is room, stores them; see partners.py.

#include "md/laws/pair.cuh"

__device__ __forceinline__ long long initial(const Law& law, const Vec& ri) { return 0; }

__device__ __forceinline__ long long interact(const Law& law, const velocity* vel, int n, int i, int j, real r2,
                                              const Vec& dr, const Vec& vi, long long acc) {
    real size = pair_size(law.radius, i, j);
    if (r2 >= law.reach2 * (size * size)) return acc;
    if (law.partners) law.partners[law.offsets[i] + acc] = j;
    return acc + 1;
}
