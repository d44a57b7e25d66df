// What the walks of reflexive.cu do with a leaf in reach: gather, or push both of a pair.

#include "md/walks.cuh"

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
__device__ __forceinline__ void gather(Walk way, bool is_later, const World& world, const Reach& reach, const Grid& grid,
                                       const Law& law, const Out& out) {
    int leaf = work_item();
    if (leaf >= world.n) return;
    Walker who = walker_of(world, leaf, is_later);
    Vec acc = zero();
    auto react = [&](int j, const Vec& dr) {
        acc = interact(law, world.vel, world.n, who.i, j, dot(dr, dr), dr, who.v, acc);
    };
    look_around(world, reach, grid, who, way, react);
    finish(out, grid, world.n, who.i, who.r, who.v, acc);
}
#elif defined(HAS_LAW)
// Adds the force to both of each pair, which is met by the one whose leaf comes first.
template <bool AGGREGATED, class Walk>
__device__ __forceinline__ void push(Walk way, const World& world, const Reach& reach, const Grid& grid, const Law& law,
                                     real* out) {
    int leaf = work_item();
    if (leaf >= world.n) return;
    Walker who = walker_of(world, leaf, true);
    Vec acc = zero();
    auto react = [&](int j, const Vec& dr) {
        Vec back = sub(zero(), interact(law, world.vel, world.n, who.i, j, dot(dr, dr), dr, who.v, zero()));
        acc = sub(acc, back);
        if (!AGGREGATED || sum_of_peers(j, back)) add_to_row(out, world.n, j, back);
    };
    look_around(world, reach, grid, who, way, react);
    add_to_row(out, world.n, who.i, acc);
}
#endif
