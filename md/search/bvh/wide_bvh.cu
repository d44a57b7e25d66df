// Forces by a descent of blocks of threads in a wide bounding volume hierarchy; see wide_bvh.py and wide_traversal.cuh.

#include "md/search/bvh/wide_reach.cuh"
#include "md/search/bvh/wide_traversal.cuh"

// Computes the separation of two particles, and returns whether they are within reach of each other.
__device__ __forceinline__ bool is_near(int n, int i, int j, const real* pos, const real* radius, const Reach& reach,
                                        const Grid& grid, const Vec& ri, Vec& dr, real& r2) {
    dr = displacement(grid, ri, load(pos, n, j));
    r2 = dot(dr, dr);
    return r2 < bound2_of(reach, radius, i, j);
}

// The law folded over the particles of the leaves within reach of a particle, by a thread alone. Records are passed by value:
// of one whose address is taken, every thread of the kernel would store a copy.
template <class Acc>
__device__ __noinline__ Acc fold_alone(int n, int i, const real* pos, const velocity* vel, const real* boxes, Levels levels,
                                       const real* radius, Reach reach, Grid grid, Law law, Acc acc) {
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    descend_alone(own_box(i, ri, radius, reach), boxes, levels, reach.reach2, grid, [&](int other) {
        for (int j = other * LEAF; j < min((other + 1) * LEAF, n); ++j) {
            Vec dr;
            real r2;
            if (j != i && is_near(n, i, j, pos, radius, reach, grid, ri, dr, r2)) {
                acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
            }
        }
    });
    return acc;
}

// A fused step also computes the boxes and the bytes of the next step, if it gets arrays for them.
extern "C" __global__ void BLOCKS(10) force(int n, const real* pos, const velocity* vel, const real* boxes,
                                                 const int* bytes, Levels levels, Units units, const real* radius, Reach reach,
                                                 real eps, real* next_boxes, int* next_bytes, int parts, Grid grid, Law law,
                                                 Out out) {
    __shared__ Descent descent;
    __shared__ unsigned kept[KEPT][BLOCK];
    int block = block_of(out), own = block * BLOCK + threadIdx.x, i = min(own, n - 1), leaf = i / LEAF, near = 0;
    const int *leaves, *others = descent.near[threadIdx.x / LEAF];
    int count = descend(descent, block, boxes, levels, reach.reach2, grid, leaves);
    if (count <= MOST_NODES) near = select(descent, leaf, leaves, count, boxes, reach.reach2, grid);
    bool is_alone = own < n && (count > MOST_NODES || near > MOST_NEAR);
    if (own >= n || is_alone) near = 0;  // threads beyond the last particle only take part in votes
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    auto take = [&](int j) {
        Vec dr;
        real r2;
        if (is_near(n, i, j, pos, radius, reach, grid, ri, dr, r2)) acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    };
    if (radius) {
        visit_by_radius(others, near, n, own_box(i, ri, radius, reach), boxes, reach, grid, [&](int j) {
            if (j != i) take(j);
        });
    } else {
        visit_near(others, near, n, i, bytes, units, kept, take);
    }
    if (is_alone) acc = fold_alone(n, i, pos, vel, boxes, levels, radius, reach, grid, law, acc);
    if (own < n) finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
#if defined(MOVES_PARTICLES)
    if (!next_boxes) return;
    Vec moved = own < n ? load(out.pos, n, i) : ri;
    real half = radius ? reach.scale * radius[i] : (real)0;
    fit_block(n, own, moved, half, eps, units, grid, levels, next_boxes, next_bytes);
#endif
}
