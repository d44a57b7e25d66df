// Boxes of a wide bounding volume hierarchy; see wide_boxes.py.

#include "md/search/bvh/wide_boxes.cuh"
#include "md/search/lists/byte_coordinates.cuh"

// A thread for each particle. All lanes of a leaf have its box, and the warps of a node of level 1 theirs in shared memory.
extern "C" __global__ void fit_leaves(int n, const real* pos, const real* radius, real scale, real eps, Units units,
                                      Grid grid, Levels levels, real* boxes, int* bytes) {
    __shared__ Vec centres[8], halves[8];
    int i = work_item(), lane = threadIdx.x % 32, warp = threadIdx.x / 32, leaf = i / LEAF, leaves = levels.number[0];
    Vec r = load(pos, n, min(i, n - 1)), half = zero(), low, high;
    if (radius) {
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) half.x[axis] = scale * radius[min(i, n - 1)];
    }
    if (i < n) bytes[i] = bytes_of(units, r);
    corners(grid, shuffled(r, lane & ~(LEAF - 1)), r, half, i < n, low, high);
    widen(low, high, 1, LEAF / 2);
    Box box;
    if (leaf < leaves) box = store_box(boxes, leaf, low, high, eps);
    corners(grid, shuffled(box.centre, 0), box.centre, box.half, leaf < leaves, low, high);
    widen(low, high, LEAF, 16);
    if (lane == 0) {
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            centres[warp].x[axis] = (low.x[axis] + high.x[axis]) / 2;
            halves[warp].x[axis] = (high.x[axis] - low.x[axis]) / 2 * (1 + 4 * eps);
        }
    }
    __syncthreads();
    int block = i / BLOCK;
    if (threadIdx.x % BLOCK == 0 && block < levels.number[1]) {
        Vec lowest, highest;
        for (int w = warp; w < warp + BLOCK / 32 && i + 32 * (w - warp) < n; ++w) {
            corners(grid, centres[warp], centres[w], halves[w], true, low, high);
#pragma unroll
            for (int axis = 0; axis < DIM; ++axis) {
                lowest.x[axis] = w == warp ? low.x[axis] : min(lowest.x[axis], low.x[axis]);
                highest.x[axis] = w == warp ? high.x[axis] : max(highest.x[axis], high.x[axis]);
            }
        }
        store_box(boxes, levels.first[1] + block, lowest, highest, eps);
    }
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
    widen(low, high, 1, NODES / 2);
    if (threadIdx.x % NODES == 0) store_box(boxes, levels.first[level] + node, low, high, eps);
}
