// Neighbour lists; see list_search.py.

#include "md/search/packed_lists.cuh"
#include "md/backend/warp.cuh"

extern "C" __global__ void farthest(int n, const real* pos, const real* reference_pos, Grid grid, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec dr = displacement(grid, load(pos, n, i), load(reference_pos, n, i));
        found = dot(dr, dr);
    }
    raise_to_largest((unsigned long long*)most, as_word(found));
}

// Sets named[j - owned] to 1 for each ghost j in the lists of the first n rows; rows from *live on have no particle.
extern "C" __global__ void mark_ghosts(int n, int owned, const int* live, const real* pos, const list_row* partners, Grid grid,
                                       unsigned char* named) {
    int i = work_item();
    if (i >= min(n, *live)) return;
    Vec ri = load(pos, owned, i);
    for_each_listed<true>(owned, i, pos, partners, partners[i], grid, ri, [&](int j, real r2, const Vec& dr) {
        if (j >= owned) named[j - owned] = 1;
    });
}

extern "C" __global__ void BLOCKS(12) force(int n, const real* pos, const velocity* vel, const list_row* partners,
                                      Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    fetch_ahead(out, n, pos, vel, partners);
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    list_row first = load_here(partners + i);
    if (is_absent(out, n, i)) return;
    auto acc = initial(law, ri);
    for_each_listed<true>(n, i, pos, partners, first, grid, ri, [&](int j, real r2, const Vec& dr) {
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
