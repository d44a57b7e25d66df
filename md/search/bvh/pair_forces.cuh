// Forces from a BVH traversal: one-sided (gather: each leaf sums its own force) or symmetric (push: each pair is
// visited once and both particles get the force); see pair_forces.py.

#include "md/search/bvh/traversal.cuh"

#if defined(HAS_REACH)
__device__ __forceinline__ QueryReach reach_of(const Reach& reach) { return {reach.reach, reach.reach2, reach.leaf2}; }
#endif

// COUNT_ADDITIONS: each addition to a row adds one instead, to the first number of the row.
#if defined(COUNT_ADDITIONS)
#define ADDED(v, axis) real((axis) == 0)
#else
#define ADDED(v, axis) (v).x[axis]
#endif

// Adds to row k of an (n, DIM) array atomically.
__device__ __forceinline__ void add_to_row(real* data, int n, int k, const Vec& v) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
#if defined(LAYOUT_SOA)
        atomicAdd(&data[k + (size_t)n * axis], ADDED(v, axis));
#elif defined(LAYOUT_AOS)
        atomicAdd(&data[(size_t)k * DIM + axis], ADDED(v, axis));
#else
        atomicAdd(&data[(size_t)k * 4 + axis], ADDED(v, axis));
#endif
    }
}

// Sums the vectors that the active lanes of a warp hold for the same row; returns true in the lane that then holds the
// sum. In each round every second lane of a row adds its vector to that of the lane before it. Westphal, Voting and
// shuffling to optimize atomic operations, NVIDIA developer blog (2015).
__device__ __forceinline__ bool sum_of_peers(int row, Vec& v) {
    unsigned lanes = __activemask(), peers = __match_any_sync(lanes, row), lane = threadIdx.x % 32;
    unsigned place = __popc(peers & ((1u << lane) - 1)), others = peers & (~1u << lane);
    bool is_first = place == 0;
    while (__any_sync(lanes, others)) {
        int next = __ffs(others);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            real more = __shfl_sync(lanes, v.x[axis], next ? next - 1 : lane);
            if (next) v.x[axis] += more;
        }
        others &= __ballot_sync(lanes, !(place & 1));
        place >>= 1;
    }
    return is_first;
}

#if defined(HAS_OUT)
// out[i] = the law folded over all other particles, or over those of later leaves only.
template <class Traversal>
__device__ __forceinline__ void gather(Traversal traversal, bool later_only, const TreeView& view,
                                       const QueryReach& reach, const Grid& grid, const Law& law, const Out& out) {
    int leaf = work_item();
    if (leaf >= view.n) return;
    Query query = query_of(view, leaf, later_only);
    auto acc = initial(law, query.r);
    auto visit = [&](int j, const Vec& dr) {
        acc = interact(law, view.vel, view.n, query.i, j, dot(dr, dr), dr, query.v, acc);
    };
    traverse_images(view, reach, grid, query, traversal, visit);
    finish(out, grid, view.n, query.i, query.r, query.v, result(law, query.r, query.v, acc));
}
#elif defined(HAS_LAW)
// Adds the force of a partner on a particle to `acc`, and the opposite force to the row of the partner.
template <bool AGGREGATED>
__device__ __forceinline__ void push_both(const TreeView& view, const Law& law, const Query& query, int j,
                                          const Vec& dr, real* out, Vec& acc) {
    Vec force = interact(law, view.vel, view.n, query.i, j, dot(dr, dr), dr, query.v, initial(law, query.r));
    Vec back = sub(zero(), force);
    acc = sub(acc, back);
    if (!AGGREGATED || sum_of_peers(j, back)) add_to_row(out, view.n, j, back);
}

// Adds the forces of each pair, which the particle of the earlier leaf visits, to both particles.
template <bool AGGREGATED, class Traversal>
__device__ __forceinline__ void push(Traversal traversal, const TreeView& view, const QueryReach& reach,
                                     const Grid& grid, const Law& law, real* out) {
    int leaf = work_item();
    if (leaf >= view.n) return;
    Query query = query_of(view, leaf, true);
    Vec acc = zero();
    auto visit = [&](int j, const Vec& dr) { push_both<AGGREGATED>(view, law, query, j, dr, out, acc); };
    traverse_images(view, reach, grid, query, traversal, visit);
    add_to_row(out, view.n, query.i, acc);
}

// Adds the forces of the listed pairs to both particles. The particle of a list that overflowed traverses the tree
// again.
__device__ __forceinline__ void push_listed(const TreeView& view, const QueryReach& reach, const Grid& grid,
                                            const Law& law, const int* counts, int room, const int* partners,
                                            real* out) {
    int leaf = work_item();
    if (leaf >= view.n) return;
    if (counts[leaf] > room) {
        push<false>(RopeTraversal{}, view, reach, grid, law, out);
        return;
    }
    Query query = query_of(view, leaf, true);
    Vec acc = zero();
    for (int k = 0; k < counts[leaf]; ++k) {
        int j = partners[(size_t)k * view.n + leaf];
        push_both<false>(view, law, query, j, displacement(grid, query.r, load(view.pos, view.n, j)), out, acc);
    }
    add_to_row(out, view.n, leaf, acc);
}
#endif
