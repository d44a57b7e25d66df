// Boxes of a wide bounding volume hierarchy; see wide_boxes.py.

#include "md/search/bvh/wide_boxes.cuh"
#include "md/search/lists/byte_coordinates.cuh"

// A thread for each leaf; 16 lanes compute the box of a node of level 1.
extern "C" __global__ void fit_leaves(int threads, int n, const real* pos, const real* radius, real scale, real eps, Units units,
                                      Grid grid, Levels levels, real* boxes, int* bytes) {
    int leaf = work_item(), lane = threadIdx.x % 32;
    bool is_there = leaf < levels.number[0];
    int first = (is_there ? leaf : 0) * LEAF;
    Vec origin = load(pos, n, first), low = origin, high = origin;
    int own[LEAF];
#pragma unroll
    for (int k = 0; k < LEAF; ++k) {
        int i = min(first + k, n - 1);
        Vec r = load(pos, n, i);
        own[k] = bytes_of(units, r);
        Vec apart = displacement(grid, r, origin);
        real half = radius ? scale * radius[i] : (real)0;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            real at = origin.x[axis] + apart.x[axis];
            low.x[axis] = min(low.x[axis], at - half);
            high.x[axis] = max(high.x[axis], at + half);
        }
    }
    Box box;
    if (is_there) {
        ((int4*)bytes)[2 * leaf] = make_int4(own[0], own[1], own[2], own[3]);
        ((int4*)bytes)[2 * leaf + 1] = make_int4(own[4], own[5], own[6], own[7]);
        box = store_box(boxes, leaf, low, high, eps);
    }
    corners(grid, shuffled(box.centre, lane & ~(LEAVES - 1)), box.centre, box.half, is_there, low, high);
    widen(low, high, LEAVES);
    if (is_there && leaf % LEAVES == 0) store_box(boxes, levels.first[1] + leaf / LEAVES, low, high, eps);
}

// A warp for each node of a level above 1.
extern "C" __global__ void fit_nodes(int threads, const real* pos, int level, real eps, Grid grid, Levels levels,
                                     real* boxes) {
    int node = work_item() / NODES, child = work_item();
    if (node >= levels.number[level]) return;  // a whole warp
    bool is_there = child < levels.number[level - 1];
    Box box = load_box(boxes, levels.first[level - 1] + (is_there ? child : node * NODES));
    Vec low, high;
    corners(grid, shuffled(box.centre, 0), box.centre, box.half, is_there, low, high);
    widen(low, high, NODES);
    if (child % NODES == 0) store_box(boxes, levels.first[level] + node, low, high, eps);
}
