// Boxes of the leaves and of level 1 of a wide bounding volume hierarchy, made by blocks of threads; see wide_boxes.py.

#include "md/search/bvh/wide_boxes.cuh"
#include "md/search/lists/byte_coordinates.cuh"

#if defined(HAS_GRID) && defined(HAS_UNITS)
// Stores the boxes of a block of BLOCK threads, a thread a particle, and the bytes of the particles. All threads of the block
// take part, those beyond the last particle with any position. `half` is what a box extends beyond the position on each side.
__device__ __forceinline__ void fit_block(int n, int i, const Vec& r, real half, real eps, const Units& units, const Grid& grid,
                                          const Levels& levels, real* boxes, int* bytes) {
    __shared__ Box box_of[LEAVES];
    int lane = threadIdx.x % 32, child = threadIdx.x, node = i / BLOCK;
    Vec halves, low, high;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) halves.x[axis] = half;
    corners(grid, shuffled(r, lane & ~(LEAF - 1)), r, halves, i < n, low, high);
    widen(low, high, LEAF);
    if (i < n) bytes[i] = bytes_of(units, r);
    if (i < n && i % LEAF == 0) box_of[threadIdx.x / LEAF] = store_box(boxes, i / LEAF, low, high, eps);
    __syncthreads();
    if (threadIdx.x >= 32) return;  // whole warps
    bool is_there = child < LEAVES && node * LEAVES + child < levels.number[0];
    const Box& box = box_of[is_there ? child : 0];
    corners(grid, box_of[0].centre, box.centre, box.half, is_there, low, high);
    widen(low, high, LEAVES);
    if (child == 0) store_box(boxes, levels.first[1] + node, low, high, eps);
}
#endif
