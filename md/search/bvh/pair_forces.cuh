// What leaves of a tree do with whom their walks meet: gather, or push both of each pair; see pair_forces.py.

#include "md/search/bvh/traversal.cuh"

#if defined(HAS_REACH)
__device__ __forceinline__ Far far_of(const Reach& reach) { return {reach.reach, reach.reach2, reach.leaf2}; }
#endif

// Adds to row k of an (n, DIM) array, whoever else does.
__device__ __forceinline__ void add_to_row(real* data, int n, int k, const Vec& v) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
#if defined(LAYOUT_SOA)
        atomicAdd(&data[k + (size_t)n * axis], v.x[axis]);
#elif defined(LAYOUT_AOS)
        atomicAdd(&data[(size_t)k * DIM + axis], v.x[axis]);
#else
        atomicAdd(&data[(size_t)k * 4 + axis], v.x[axis]);
#endif
    }
}

// Sums up what those lanes of a warp that are here have for the same row; true in the one that has the sum. In each round
// every other of a row's lanes gives what it has to the one before it. Westphal, Voting and shuffling to optimize atomic
// operations, NVIDIA developer blog (2015).
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
// out[i] = the law folded over all others, or those whose leaves come later.
template <class Walk>
__device__ __forceinline__ void gather(Walk way, bool is_later, const World& world, const Far& far, const Grid& grid,
                                       const Law& law, const Out& out) {
    int leaf = work_item();
    if (leaf >= world.n) return;
    Walker who = walker_of(world, leaf, is_later);
    auto acc = initial(law, who.r);
    auto react = [&](int j, const Vec& dr) {
        acc = interact(law, world.vel, world.n, who.i, j, dot(dr, dr), dr, who.v, acc);
    };
    traverse_images(world, far, grid, who, way, react);
    finish(out, grid, world.n, who.i, who.r, who.v, result(law, who.r, who.v, acc));
}
#elif defined(HAS_LAW)
// Adds the force on a particle by a partner to one, and the opposite to the other.
template <bool AGGREGATED>
__device__ __forceinline__ void push_both(const World& world, const Law& law, const Walker& who, int j, const Vec& dr,
                                          real* out, Vec& acc) {
    Vec back = sub(zero(), interact(law, world.vel, world.n, who.i, j, dot(dr, dr), dr, who.v, initial(law, who.r)));
    acc = sub(acc, back);
    if (!AGGREGATED || sum_of_peers(j, back)) add_to_row(out, world.n, j, back);
}

// Each pair is met by the one whose leaf comes first.
template <bool AGGREGATED, class Walk>
__device__ __forceinline__ void push(Walk way, const World& world, const Far& far, const Grid& grid, const Law& law,
                                     real* out) {
    int leaf = work_item();
    if (leaf >= world.n) return;
    Walker who = walker_of(world, leaf, true);
    Vec acc = zero();
    auto react = [&](int j, const Vec& dr) { push_both<AGGREGATED>(world, law, who, j, dr, out, acc); };
    traverse_images(world, far, grid, who, way, react);
    add_to_row(out, world.n, who.i, acc);
}

// The same from lists; one that had no room for all is not looked at, but its particle walks.
__device__ __forceinline__ void push_listed(const World& world, const Far& far, const Grid& grid, const Law& law,
                                            const int* met, int room, const int* partners, real* out) {
    int leaf = work_item();
    if (leaf >= world.n) return;
    if (met[leaf] > room) {
        push<false>(Ropes{}, world, far, grid, law, out);
        return;
    }
    Walker who = walker_of(world, leaf, true);
    Vec acc = zero();
    for (int k = 0; k < met[leaf]; ++k) {
        int j = partners[(size_t)k * world.n + leaf];
        push_both<false>(world, law, who, j, displacement(grid, who.r, load(world.pos, world.n, j)), out, acc);
    }
    add_to_row(out, world.n, leaf, acc);
}
#endif
