// Counts the partners within reach and, where there is room, writes them down; see collect.py.

#include "md/laws/pair.cuh"

__device__ __forceinline__ Vec interact(const Law& law, const real* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    real size = pair_size(law.radius, i, j);
    if (r2 >= law.reach2 * (size * size)) return acc;
    if (law.partners) law.partners[law.offsets[i] + (long long)acc.x[0]] = j;
    Vec more = acc;
    more.x[0] += 1;
    return more;
}
