// Pruned lists; see pruned_lists.py.

#include "md/search/lists.cuh"

// A fused step that stores the partners within reach in pruned lists.
extern "C" __global__ void BLOCKS(4) force_and_prune(int n, const real* pos, const velocity* vel, const int* partners, int rows,
                                                real reach2, int* pruned, int pruned_rows, long long room,
                                                long long* needed, Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    List list(n, i, pruned_rows, pruned);
    for_each_listed(n, i, pos, partners, rows, grid, ri, [&](int j, real r2, const Vec& dr) {
        if (r2 < reach2) list.add(j, room, needed);
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    list.end();
    if (list.is_short) *out.overflow = 1;
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
