// The tree of tree.py as kernels see it: a node's box in one row with where a walk goes from it.

#include "md/backend/sorting/keys.cuh"

#define LEAVES 256  // of a block that merges boxes

// A node: its box, and as `way` in tree.py where a walk goes that enters it (x), and one that does not (y).
struct Node {
    Vec low, high;
    int2 way;
};

// A row of 8 numbers, read and written whole: lower corner, x, upper corner, y; a way as the bits of a number.
union Row {
    real value[8];
    float4 part[sizeof(real) / 2];
};

__device__ __forceinline__ float as_number(int bits, float) { return __int_as_float(bits); }
__device__ __forceinline__ double as_number(int bits, double) { return __hiloint2double(0, bits); }
__device__ __forceinline__ int as_bits(float number) { return __float_as_int(number); }
__device__ __forceinline__ int as_bits(double number) { return __double2loint(number); }

__device__ __forceinline__ Node node_of(const Row& row) {
    Node node;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        node.low.x[axis] = row.value[axis];
        node.high.x[axis] = row.value[4 + axis];
    }
    node.way = make_int2(as_bits(row.value[3]), as_bits(row.value[7]));
    return node;
}

__device__ __forceinline__ Node load_node(const real* nodes, int k) {
    Row row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) row.part[p] = ((const float4*)(nodes + (size_t)k * 8))[p];
    return node_of(row);
}

// One that another thread of this kernel has written: past the first cache, which does not hear of that.
__device__ __forceinline__ Node load_written(const real* nodes, int k) {
    Row row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) row.part[p] = __ldcg((const float4*)(nodes + (size_t)k * 8) + p);
    return node_of(row);
}

__device__ __forceinline__ void store_node(real* nodes, int k, const Vec& low, const Vec& high, int2 way) {
    Row row;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        row.value[axis] = axis < DIM ? low.x[axis < DIM ? axis : 0] : (real)0;
        row.value[4 + axis] = axis < DIM ? high.x[axis < DIM ? axis : 0] : (real)0;
    }
    row.value[3] = as_number(way.x, (real)0);
    row.value[7] = as_number(way.y, (real)0);
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) ((float4*)(nodes + (size_t)k * 8))[p] = row.part[p];
}

// The middle of a box; of a point the point itself, to the bit.
__device__ __forceinline__ Vec middle(const Node& node) {
    Vec r;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) r.x[axis] = (node.low.x[axis] + node.high.x[axis]) / 2;
    return r;
}

#if defined(HAS_GRID)
// A position, or its image where a particle went out at a periodic side and came in at the other; at most half a length out.
__device__ __forceinline__ Vec where_it_went_out(const Grid& grid, Vec r, const Vec& before) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = r.x[axis], half = grid.half[axis], image = grid.image[axis], d = x - before.x[axis];
        real there = x + (d > half ? -image : d < -half ? image : (real)0);
        r.x[axis] = there >= -half && there <= grid.length[axis] + half ? there : x;
    }
    return r;
}
#endif

// Square of the distance from a position to a box.
__device__ __forceinline__ real gap2(const Vec& r, const Vec& low, const Vec& high) {
    real sum = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real apart = max(max(low.x[axis] - r.x[axis], r.x[axis] - high.x[axis]), (real)0);
        sum += apart * apart;
    }
    return sum;
}
