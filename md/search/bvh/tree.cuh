// Nodes of the tree of tree.py as kernels read them: the box of a node and its ropes in one row.

#include "md/backend/sorting/keys.cuh"

#define LEAVES 256  // leaves of a block that merges boxes

// A node: its box, and its ropes as in tree.py: the next node of a traversal that enters it (x), and of one that skips
// it (y).
struct Node {
    Vec low, high;
    int2 ropes;
};

// A row of 8 numbers, read and written whole: lower corner, x, upper corner, y. A rope is stored as the bits of a
// number.
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
    node.ropes = make_int2(as_bits(row.value[3]), as_bits(row.value[7]));
    return node;
}

__device__ __forceinline__ Node load_node(const real* nodes, int k) {
    Row row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) row.part[p] = ((const float4*)(nodes + (size_t)k * 8))[p];
    return node_of(row);
}

// Loads a node that another thread of this kernel has written. The load bypasses the L1 cache, which is not coherent.
__device__ __forceinline__ Node load_written(const real* nodes, int k) {
    Row row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) row.part[p] = __ldcg((const float4*)(nodes + (size_t)k * 8) + p);
    return node_of(row);
}

__device__ __forceinline__ void store_node(real* nodes, int k, const Vec& low, const Vec& high, int2 ropes) {
    Row row;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        row.value[axis] = axis < DIM ? low.x[axis < DIM ? axis : 0] : (real)0;
        row.value[4 + axis] = axis < DIM ? high.x[axis < DIM ? axis : 0] : (real)0;
    }
    row.value[3] = as_number(ropes.x, (real)0);
    row.value[7] = as_number(ropes.y, (real)0);
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 2; ++p) ((float4*)(nodes + (size_t)k * 8))[p] = row.part[p];
}

// Centre of a box; for a box of zero size that point itself, to the bit.
__device__ __forceinline__ Vec middle(const Node& node) {
    Vec r;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) r.x[axis] = (node.low.x[axis] + node.high.x[axis]) / 2;
    return r;
}

#if defined(HAS_GRID)
// Position of a particle, without the wrapping at a periodic side since `before`: its image there, at most half a box
// length out of the box.
__device__ __forceinline__ Vec unwrapped(const Grid& grid, Vec r, const Vec& before) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = r.x[axis], half = grid.half[axis], image = grid.image[axis], d = x - before.x[axis];
        real image_x = x + (d > half ? -image : d < -half ? image : (real)0);
        r.x[axis] = image_x >= -half && image_x <= grid.length[axis] + half ? image_x : x;
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
