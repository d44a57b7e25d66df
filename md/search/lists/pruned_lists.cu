// Pruned lists; see pruned_lists.py, and packed_lists.cuh for the rows, which these lists have too. They have no pool: one that
// has too many entries for the rows, or for shared memory while it is made, is a row that begins with LINK.

#include "md/search/packed_lists.cuh"

// A fused step that takes the partners from the lists of the build, and stores those closer than the square root of reach2.
extern "C" __global__ void BLOCKS(6) force_and_prune(int n, const real* pos, const velocity* vel, const list_row* partners, int rows,
                                                real reach2, list_row* pruned, int pruned_rows, Grid grid, Law law, Out out) {
    __shared__ int kept[COLUMN][BLOCK_THREADS];
    int i = block_of(out) * blockDim.x + threadIdx.x;
    fetch_ahead(out, n, i, pos, vel, partners);
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    ListColumn list(kept);
    auto acc = initial(law, ri);
    for_each_listed<true>(n, i, pos, partners, grid, ri, [&](int j, real r2, const Vec& dr) {
        list.add(j, r2 < reach2);
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    if (!list.is_whole() || list.write(n, i, pruned, pruned_rows, 0, nullptr)) {
        pruned[i] = row_of(LINK, 0, false);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}

// A fused step with pruned lists, or with the list of the build for a particle that has none.
extern "C" __global__ void BLOCKS(12) force(int n, const real* pos, const velocity* vel, const list_row* partners, int rows,
                                            const list_row* pruned, int pruned_rows, Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    fetch_ahead(out, n, i, pos, vel, pruned);
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    auto visit = [&](int j, real r2, const Vec& dr) { acc = interact(law, vel, n, i, j, r2, dr, vi, acc); };
    if (!for_each_listed<false>(n, i, pos, pruned, grid, ri, visit)) {
        for_each_listed<true>(n, i, pos, partners, grid, ri, visit);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
