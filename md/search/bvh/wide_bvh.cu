// Forces by a descent of blocks of threads in a wide bounding volume hierarchy; see wide_bvh.py and wide_walk.cuh.

#include "md/search/bvh/wide_walk.cuh"
#include "md/search/lists/byte_coordinates.cuh"

#define KEPT 12   // partners of a thread in shared memory that may be near by their bytes
#define AT_ONCE 4  // leaves whose bytes are compared before those that are near are kept

// Computes the separation of two particles, and returns whether they are within reach of each other.
__device__ __forceinline__ bool is_near(int n, int i, int j, const real* pos, const real* radius, const Reach& reach,
                                        const Grid& grid, const Vec& ri, Vec& dr, real& r2) {
    dr = displacement(grid, ri, load(pos, n, j));
    r2 = dot(dr, dr);
    real both = radius ? reach.scale * (radius[i] + radius[j]) + reach.reach : (real)0;
    return r2 < max(both * both, reach.pair2);
}

// The law folded over the particles of the leaves within reach of the leaf of a particle, by a thread alone.
template <class Acc>
__device__ __noinline__ Acc fold_alone(int n, int i, const real* pos, const real* vel, const real* boxes, const Levels& levels,
                                       const real* radius, const Reach& reach, const Grid& grid, const Law& law, Acc acc) {
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    descend_alone(i / LEAF, boxes, levels, reach.reach2, grid, [&](int other) {
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

extern "C" __global__ void HALF_BLOCKS(10) force(int n, const real* pos, const real* vel, const real* boxes, const int* bytes,
                                                 Levels levels, Units units, const real* radius, Reach reach, int parts,
                                                 Grid grid, Law law, Out out) {
    __shared__ Descent descent;
    __shared__ int kept[KEPT][BLOCK];
    int block = block_of(out), own = block * BLOCK + threadIdx.x, i = min(own, n - 1), leaf = i / LEAF;
    const int* leaves;
    int count = descend(descent, block, boxes, levels, reach.reach2, grid, leaves), near = 0;
    if (count <= MOST_NODES) near = select(descent, leaf, leaves, count, boxes, reach.reach2, grid);
    if (own >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    auto meet = [&](int j) {
        Vec dr;
        real r2;
        if (is_near(n, i, j, pos, radius, reach, grid, ri, dr, r2)) acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    };
    if (count > MOST_NODES || near > MOST_NEAR) {
        acc = fold_alone(n, i, pos, vel, boxes, levels, radius, reach, grid, law, acc);
    } else if (radius) {
        for (int k = 0; k < near; ++k) {
            int first = descent.near[threadIdx.x / LEAF][k] * LEAF, last = min(first + LEAF, n);
            for (int j = first; j < last; ++j) {
                if (j != i) meet(j);
            }
        }
    } else {
        const int* others = descent.near[threadIdx.x / LEAF];
        int filled = 0, mine = bytes[i];
        auto flush = [&]() {
            for (int k = 0; k < filled; ++k) meet(kept[k][threadIdx.x]);
            filled = 0;
        };
        for (int k = 0; k < near; k += AT_ONCE) {
            unsigned passing = 0;  // a bit for each particle, the highest for the first
#pragma unroll
            for (int b = 0; b < AT_ONCE; ++b) {
                int first = others[min(k + b, near - 1)] * LEAF;
                int4 low = *(const int4*)(bytes + first), high = *(const int4*)(bytes + first + 4);
                passing = __funnelshift_l(beyond_reach(units, mine, low.x), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, low.y), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, low.z), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, low.w), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, high.x), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, high.y), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, high.z), passing, 1);
                passing = __funnelshift_l(beyond_reach(units, mine, high.w), passing, 1);
            }
            if (near - k < AT_ONCE) passing &= ~0u << 8 * (AT_ONCE - (near - k));
            while (passing) {
                int bit = 31 - __clz(passing), place = 31 - bit;
                int j = others[k + place / LEAF] * LEAF + place % LEAF;
                passing ^= 1u << bit;
                if (j == i || j >= n) continue;
                if (filled == KEPT) flush();
                kept[filled++][threadIdx.x] = j;
            }
        }
        flush();
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
