// Boxes of a wide bounding volume hierarchy; see wide_boxes.py.

#include "md/search/bvh/wide_boxes.cuh"

extern "C" __global__ void BLOCKS(12) fit_leaves(int threads, int n, const real* pos, const real* radius, real scale,
                                                      real eps, Units units, Grid grid, Levels levels, real* boxes,
                                                      int* bytes) {
    int i = work_item(), read = min(i, n - 1);
    fit_block(n, i, load(pos, n, read), radius ? scale * radius[read] : (real)0, eps, units, grid, levels, boxes, bytes);
}

// Copies particles in another order as `gather` in arrays.cu does, and computes the boxes of the copies.
extern "C" __global__ void BLOCKS(12) gather_and_fit(int threads, int n, const int* order, const real* pos,
                                                          const velocity* vel, const int* id, const real* radius, real* new_pos,
                                                          velocity* new_vel, int* new_id, real* new_radius, real scale,
                                                          real eps, Units units, Grid grid, Levels levels, real* boxes,
                                                          int* bytes) {
    int i = work_item(), j = order[min(i, n - 1)];
    Vec r, v;
    load_row(pos, vel, n, j, r, v);
    real half = radius ? radius[j] : (real)0;
    if (i < n) {
        store_row(new_pos, new_vel, n, i, r, v);
        new_id[i] = id[j];
        if (radius) new_radius[i] = half;
    }
    fit_block(n, i, r, scale * half, eps, units, grid, levels, boxes, bytes);
}

// A warp for each node of a level above 1.
extern "C" __global__ void fit_nodes(int threads, const real* pos, int level, real eps, Grid grid, Levels levels,
                                     real* boxes) {
    int node = work_item() / NODES, child = work_item();
    if (node >= number_of(levels, level)) return;  // a whole warp
    bool is_there = child < number_of(levels, level - 1);
    Box box = load_box(boxes, first_of(levels, level - 1) + (is_there ? child : node * NODES));
    Vec low, high;
    corners(grid, shuffled(box.centre, 0), box.centre, box.half, is_there, low, high);
    widen(low, high, NODES);
    if (child % NODES == 0) store_box(boxes, first_of(levels, level) + node, low, high, eps);
}
