// Pruned lists; see pruned_lists.py.

#include "md/search/lists.cuh"

// Takes the partners within reach of a particle that has too many for shared memory from its list again, and writes them.
__device__ __noinline__ bool prune_crowded(int n, int i, const real* pos, const int* partners, int rows, real reach2,
                                           Grid grid, int* pruned, int pruned_rows, long long room,
                                           long long* needed) {
    ListWriter writer(n, i, pruned_rows, pruned);
    for_each_listed(n, i, pos, partners, rows, grid, load(pos, n, i), [&](int j, real r2, const Vec& dr) {
        if (r2 < reach2) writer.add(j, room, needed);
    });
    return writer.end();
}

// A fused step that stores the partners closer than the square root of reach2 in pruned lists.
extern "C" __global__ void BLOCKS(4) force_and_prune(int n, const real* pos, const velocity* vel, const int* partners, int rows,
                                                real reach2, int* pruned, int pruned_rows, long long room,
                                                long long* needed, Grid grid, Law law, Out out) {
    __shared__ int kept[COLUMN][256];
    int i = block_of(out) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    ListColumn list = {kept, 0};
    auto acc = initial(law, ri);
    for_each_listed(n, i, pos, partners, rows, grid, ri, [&](int j, real r2, const Vec& dr) {
        if (r2 < reach2) list.add(j);
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    bool is_short = list.is_whole() ? list.write(n, i, pruned_rows, pruned, room, needed)
                                    : prune_crowded(n, i, pos, partners, rows, reach2, grid, pruned, pruned_rows, room, needed);
    if (is_short) *out.overflow = 1;
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
