// Forces by a descent of blocks of threads in a wide bounding volume hierarchy; see wide_bvh.py and wide_walk.cuh.

#include "md/search/bvh/wide_walk.cuh"
#include "md/search/lists/byte_coordinates.cuh"

#define KEPT 12   // partners of a thread in shared memory that may be near by their bytes
#define AT_ONCE 4  // leaves whose bytes are compared before those that are near are kept

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
    real wide = radius ? reach.scale * radius[i] + reach.reach : (real)0;
    auto meet = [&](int j) {
        Vec dr = displacement(grid, ri, load(pos, n, j));
        real r2 = dot(dr, dr), both = radius ? wide + reach.scale * radius[j] : (real)0;
        if (r2 < max(both * both, reach.pair2)) acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    };
    auto meet_leaf = [&](int other) {
        int first = other * LEAF, last = min(first + LEAF, n);
        for (int j = first; j < last; ++j) {
            if (j != i) meet(j);
        }
    };
    if (count > MOST_NODES || near > MOST_NEAR) {
        descend_alone(leaf, boxes, levels, reach.reach2, grid, meet_leaf);
    } else if (radius) {
        for (int k = 0; k < near; ++k) meet_leaf(descent.near[threadIdx.x / LEAF][k]);
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
