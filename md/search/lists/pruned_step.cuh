// A fused step of one particle over pruned lists; see pruned_lists.cu.

#include "md/search/packed_lists.cuh"

// Moves particle i from ri by the partners in its pruned list, of which the first row is given, or in its list of the build.
__device__ __forceinline__ void take_step(int n, int i, const Vec& ri, const Vec& vi, const real* pos, const velocity* vel,
                                          const list_row* partners, const list_row* pruned, const list_row& first,
                                          const Grid& grid, const Law& law, const Out& out) {
    auto acc = initial(law, ri);
    auto visit = [&](int j, real r2, const Vec& dr) { acc = interact(law, vel, n, i, j, r2, dr, vi, acc); };
    if (!for_each_listed<false>(n, i, pos, pruned, first, grid, ri, visit)) {
        for_each_listed<true>(n, i, pos, partners, partners[i], grid, ri, visit);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
