// Search radii in a wide bounding volume hierarchy: `struct Reach` is made from the record of `reaches_of` in wide_boxes.py.

#include "md/search/bvh/wide_boxes.cuh"

#if defined(HAS_GRID)
// The box of a particle: other boxes are within its reach by less than the reach of its leaf.
__device__ __forceinline__ Box own_box(int i, const Vec& ri, const real* radius, const Reach& reach) {
    Box box;
    real half = radius ? reach.scale * radius[i] : (real)0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        box.centre.x[axis] = ri.x[axis];
        box.half.x[axis] = half;
    }
    return box;
}

// Square of the distance up to which two particles are partners.
__device__ __forceinline__ real bound2_of(const Reach& reach, const real* radius, int i, int j) {
    real both = radius ? reach.scale * (radius[i] + radius[j]) + reach.reach : (real)0;
    return max(both * both, reach.pair2);
}

// Calls visit(j) for the particles of the leaves within reach of a particle with a radius, among the first `near` leaves.
template <class Visit>
__device__ __forceinline__ void visit_by_radius(const int* leaves, int near, int n, const Box& own, const real* boxes,
                                                const Reach& reach, const Grid& grid, Visit visit) {
    for (int k = 0; k < near; ++k) {
        if (gap2(grid, own, load_box(boxes, leaves[k])) >= reach.reach2) continue;
        for (int j = leaves[k] * LEAF; j < min((leaves[k] + 1) * LEAF, n); ++j) visit(j);
    }
}
#endif
