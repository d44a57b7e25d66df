// Pruned lists; see pruned_lists.py, and packed_lists.cuh for the rows, which these lists have too. They have no pool: one that
// has too many entries for the rows, or for shared memory while it is made, is a row that begins with LINK.

#include "md/backend/kernels/grid_barrier.cuh"
#include "md/search/lists/pruned_step.cuh"

// A fused step that takes the partners from the lists of the build, and stores those closer than the square root of reach2.
extern "C" __global__ void BLOCKS(6) force_and_prune(int n, const real* pos, const velocity* vel, const list_row* partners,
                                                real reach2, list_row* pruned, int pruned_rows, Grid grid, Law law, Out out) {
    __shared__ int kept[COLUMN][BLOCK_THREADS];
    int i = block_of(out) * blockDim.x + threadIdx.x;
    fetch_ahead(out, n, pos, vel, partners);
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    list_row first = load_here(partners + i);
    if (is_absent(out, n, i)) return;
    ListColumn list(kept);
    auto acc = initial(law, ri);
    for_each_listed<true>(n, i, pos, partners, first, grid, ri, [&](int j, real r2, const Vec& dr) {
        list.add(j, r2 < reach2);
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    if (!list.is_whole() || list.write(n, i, pruned, pruned_rows, 0, nullptr)) {
        pruned[i] = row_of(LINK, 0, false);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}

// A fused step with pruned lists, or with the list of the build for a particle that has none.
extern "C" __global__ void BLOCKS(12) force(int n, const real* pos, const velocity* vel, const list_row* partners,
                                            const list_row* pruned, Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    fetch_ahead(out, n, pos, vel, pruned);
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    list_row first = load_here(pruned + i);
    if (!is_absent(out, n, i)) take_step(n, i, ri, vi, pos, vel, partners, pruned, first, grid, law, out);
}

// Several fused steps with the same pruned lists, of few particles: each has a thread that stays.
extern "C" __global__ void RESIDENT many_steps(int n, real* pos, velocity* vel, const list_row* partners,
                                               const list_row* pruned, int steps, unsigned* barrier, Grid grid,
                                               Law law, Out out) {
    int i = work_item();
    Out now = out;
    list_row first;
    if (i < n) first = pruned[i];
    while (true) {
        touch_guard(now);
        if (i < n) {
            Vec ri, vi;
            load_row(pos, vel, n, i, ri, vi);
            take_step(n, i, ri, vi, pos, vel, partners, pruned, first, grid, law, now);
        }
        if (--steps == 0) return;
        wait_for_all_blocks(barrier);
        real *read_pos = pos, *read_vel = (real*)vel;
        pos = now.pos;
        vel = (velocity*)now.vel;
        now.pos = read_pos;
        now.vel = read_vel;
        now.turn = 1 - now.turn;
    }
}
