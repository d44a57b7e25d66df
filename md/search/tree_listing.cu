// Neighbour lists of a device, made by a descent of blocks of threads in a wide bounding volume hierarchy; see tree_listing.py.

#include "md/search/bvh/wide_reach.cuh"
#include "md/search/bvh/wide_traversal.cuh"
#include "md/search/packed_lists.cuh"

// Searches for the partners of a particle alone, and writes its list: one with too many for shared memory, or in a crowd.
// Records are passed by value: of one whose address is taken, every thread of the kernel would store a copy.
__device__ __noinline__ bool write_alone(int n, int i, const real* pos, const real* boxes, Levels levels, const real* radius,
                                         Reach reach, Grid grid, list_row* partners, int rows, long long room,
                                         long long* needed) {
    ListWriter writer(n, i, partners, rows, room, needed, RUN);
    Vec ri = load(pos, n, i);
    descend_alone(own_box(i, ri, radius, reach), boxes, levels, reach.reach2, grid, [&](int leaf) {
        for (int j = leaf * LEAF; j < min((leaf + 1) * LEAF, n); ++j) {
            Vec dr = displacement(grid, ri, load(pos, n, j));
            if (j != i && dot(dr, dr) < bound2_of(reach, radius, i, j)) writer.add(j);
        }
    });
    return writer.end();
}

// Lists the partners within reach of each particle. Those that may be near by their bytes are kept in shared memory, and then
// replaced by those that are. With radii each particle of the leaves within reach is tested by its position.
extern "C" __global__ void BLOCKS(8) list_partners(int n, const real* pos, const real* boxes, const int* bytes,
                                                        Levels levels, Units units, const real* radius, Reach reach, Grid grid,
                                                        real* reference_pos, list_row* partners, int rows, long long room,
                                                        long long* needed, float* travelled) {
    __shared__ Descent descent;
    __shared__ int kept[COLUMN][BLOCK];
    int own = work_item(), i = min(own, n - 1), leaf = i / LEAF, near = 0;
    const int *leaves, *others = descent.near[threadIdx.x / LEAF];
    int count = descend(descent, blockIdx.x, boxes, levels, reach.reach2, grid, leaves);
    if (count <= MOST_NODES) near = select(descent, leaf, leaves, count, boxes, reach.reach2, grid);
    if (own >= n) return;  // no barrier follows
    Vec ri = load(pos, n, i);
    if (reference_pos) store(reference_pos, n, i, ri);
    ListColumn list(kept);
    if (count > MOST_NODES || near > MOST_NEAR) {
        list.overflow();
    } else if (radius) {
        visit_by_radius(others, near, n, own_box(i, ri, radius, reach), boxes, reach, grid, [&](int j) {
            Vec dr = displacement(grid, ri, load(pos, n, j));
            list.add(j, j != i && dot(dr, dr) < bound2_of(reach, radius, i, j));
        });
    } else {
        for_each_passing(others, near, bytes, bytes[i], units, [&](int j) { list.add(j, j != i && j < n); });
        int found = list.is_whole() ? list.count() : 0;
        if (found) list.clear();
        for (int c = 0; c < found; c += LOADED_AT_ONCE) {
            int j[LOADED_AT_ONCE];
            Vec dr[LOADED_AT_ONCE];
            real r2[LOADED_AT_ONCE];
#pragma unroll
            for (int b = 0; b < LOADED_AT_ONCE; ++b) j[b] = c + b < found ? kept[c + b][threadIdx.x] : i;
            separate<LOADED_AT_ONCE>(grid, n, pos, ri, j, dr, r2);
#pragma unroll
            for (int b = 0; b < LOADED_AT_ONCE; ++b) list.add(j[b], j[b] != i && r2[b] < reach.pair2);
        }
    }
    bool is_short = list.is_whole()
                        ? list.write(n, i, partners, rows, room, needed)
                        : write_alone(n, i, pos, boxes, levels, radius, reach, grid, partners, rows, room, needed);
    if (is_short) halt(travelled);
}
