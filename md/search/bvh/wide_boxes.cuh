// Boxes of a wide bounding volume hierarchy as kernels read them; see wide_boxes.py, where numbers and names are the same.

#include "md/particles/byte_coordinates.cuh"

#define LEAF 8
#define LEAVES_BITS 4
#define NODES_BITS 5
#define LEAVES (1 << LEAVES_BITS)
#define NODES (1 << NODES_BITS)
#define BLOCK (LEAF * LEAVES)  // particles of a node of level 1, and threads of a block that works on one
#define FAR_AWAY (sizeof(real) == 4 ? (real)1e30 : (real)1e300)

#if defined(HAS_LEVELS)
// First row of a level, and its number of nodes. A record indexed by a variable would be copied by every thread of a kernel.
__device__ __forceinline__ int first_of(const Levels& levels, int level) {
    int first = levels.first[0];
#pragma unroll
    for (int k = 1; k < (int)(sizeof(levels.first) / sizeof(int)); ++k) first = level == k ? levels.first[k] : first;
    return first;
}

__device__ __forceinline__ int number_of(const Levels& levels, int level) {
    int number = levels.number[0];
#pragma unroll
    for (int k = 1; k < (int)(sizeof(levels.number) / sizeof(int)); ++k) number = level == k ? levels.number[k] : number;
    return number;
}
#endif

#if defined(HAS_GRID)
struct Box {
    Vec centre, half;
};

// A row of 8 numbers, read and written whole.
union BoxRow {
    real value[8];
    float4 part[sizeof(real) / 2];
};

__device__ __forceinline__ Box load_box(const real* boxes, int k) {
    BoxRow row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) row.part[p] = ((const float4*)(boxes + (size_t)k * 8))[p];
    Box box;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        box.centre.x[axis] = row.value[axis];
        box.half.x[axis] = row.value[4 + axis];
    }
    return box;
}

// Stores a box somewhat wider than from `low` to `high`, so that no rounding loses a pair.
__device__ __forceinline__ Box store_box(real* boxes, int k, const Vec& low, const Vec& high, real eps) {
    BoxRow row;
    Box box;
#pragma unroll
    for (int axis = 0; axis < 4; ++axis) row.value[axis] = row.value[4 + axis] = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real from = low.x[axis], to = high.x[axis], centre = (from + to) / 2, half = max(to - centre, centre - from);
        row.value[axis] = box.centre.x[axis] = centre;
        row.value[4 + axis] = box.half.x[axis] = half + 8 * eps * (half + fabs(from) + fabs(to));
    }
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) ((float4*)(boxes + (size_t)k * 8))[p] = row.part[p];
    return box;
}

// Square of the distance between two boxes, by the nearest images along each axis.
__device__ __forceinline__ real gap2(const Grid& grid, const Box& a, const Box& b) {
    Vec apart = nearest_image(grid, sub(a.centre, b.centre));
    real total = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real gap = max((real)fabs(apart.x[axis]) - a.half.x[axis] - b.half.x[axis], (real)0);
        total += gap * gap;
    }
    return total;
}

// The vector of another lane.
__device__ __forceinline__ Vec shuffled(const Vec& v, int lane) {
    Vec other;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) other.x[axis] = __shfl_sync(~0u, v.x[axis], lane);
    return other;
}

// Merges the boxes of each aligned group of `lanes` lanes, a power of two; all of them get the result.
__device__ __forceinline__ void widen(Vec& low, Vec& high, int lanes) {
    for (int apart = 1; apart < lanes; apart *= 2) {
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = min(low.x[axis], __shfl_xor_sync(~0u, low.x[axis], apart));
            high.x[axis] = max(high.x[axis], __shfl_xor_sync(~0u, high.x[axis], apart));
        }
    }
}

// Corners of a box, at the image that is nearest to `origin`; far away and inside out if there is none.
__device__ __forceinline__ void corners(const Grid& grid, const Vec& origin, const Vec& centre, const Vec& half,
                                        bool is_there, Vec& low, Vec& high) {
    Vec apart = nearest_image(grid, sub(centre, origin));
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real at = origin.x[axis] + apart.x[axis];
        low.x[axis] = is_there ? at - half.x[axis] : FAR_AWAY;
        high.x[axis] = is_there ? at + half.x[axis] : -FAR_AWAY;
    }
}
#endif

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
