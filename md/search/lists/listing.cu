// Neighbour lists of a device, made from the particles in the cells around each; see listing.py.

#include "md/particles/cells_around.cuh"
#include "md/particles/byte_coordinates.cuh"
#include "md/search/packed_lists.cuh"

// Stores the bytes of the particles in the order of their cells.
extern "C" __global__ void store_bytes(int n, const real* pos, const int* order, Units units, int* bytes) {
    int k = work_item();
    if (k < n) bytes[k] = bytes_of(units, load(pos, n, order[k]));
}

// Calls visit(from, to) for the ranges of particles, by their place in the order of the cells, in the cells around a cell.
template <typename Visit>
__device__ __forceinline__ void for_each_around(const int* start, const Grid& grid, const int3& home, Visit visit) {
    CellsAround around(grid, home);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer) {
        int cells_before = cells_before_layer(grid, home, layer);
        if (cells_before < 0) continue;
#pragma unroll 1
        for (int step = 0; step < 3; ++step) {
            int cell = around.first_of(step, cells_before);
            if (cell < 0) continue;
            const int* range = start + cell;
            visit(range[0], range[around.width]);
            if (around.beyond) visit(range[around.beyond], range[around.beyond + 1]);
        }
    }
}

#define MOST_TESTED 32  // particles of a range, with those before it down to a multiple of 4

// Adds the particles of a range that may be near by their bytes, but not the one at place `self`. A longer range than can be
// tested at once makes the list one that is not whole.
__device__ __forceinline__ void add_near(const Units& units, int own, const int* bytes, int from, int to, int self,
                                         ListColumn& list) {
    if (from >= to) return;
    int k = from & ~3;
    if (to - k > MOST_TESTED) {
        list.overflow();
        return;
    }
    unsigned near = 0;  // a bit for each particle, the highest for the first
#pragma unroll 1
    do {
        int4 four = *(const int4*)(bytes + k);
        near = __funnelshift_l(beyond_reach(units, own, four.x), near, 1);
        near = __funnelshift_l(beyond_reach(units, own, four.y), near, 1);
        near = __funnelshift_l(beyond_reach(units, own, four.z), near, 1);
        near = __funnelshift_l(beyond_reach(units, own, four.w), near, 1);
        k += 4;
    } while (k < to);
    near <<= 32 - (k - from);
    near &= (int)0x80000000 >> (to - from - 1);
    while (near) {
        int bit = 31 - __clz(near), place = from + 31 - bit;
        list.add(place, place != self);
        near ^= 1u << bit;
    }
}

// Searches again for the partners of a particle that has too many for shared memory, and writes its list; of rows below `near`.
__device__ __noinline__ bool write_crowded(int n, int near, int i, const real* pos, const int* start, const int* order, Grid grid,
                                           real reach2, list_row* partners, int rows, long long room, long long* needed) {
    ListWriter writer(n, i, partners, rows, room, needed, RUN);
    Vec ri = load(pos, n, i);
    for_each_around(start, grid, home_cell(grid, ri), [&](int from, int to) {
        for (int k = from; k < to; ++k) {
            int j = order[k];
            Vec dr = displacement(grid, ri, load(pos, n, j));
            if (j != i && j < near && dot(dr, dr) < reach2) writer.add(j);
        }
    });
    return writer.end();
}

// Lists the partners within reach of each particle. Those that may be near by their bytes are kept in shared memory, and then
// replaced by their slots; IS_EXACT: without those that are not near. Threads take the particles in the order of the cells, so
// that a warp looks at few rows. Only the first `owned` ones have lists, and only the first `borders` ones have ghosts in them. With
// ABSENT some rows have no particle, and keys behind those of the cells.
extern "C" __global__ void BLOCKS(8) list_partners(int n, int owned, int borders, const real* pos, const int* start, const int* order,
                                                   const int* bytes, Grid grid, Units units, real reach2,
                                                   real* reference_pos, list_row* partners, int rows, long long room,
                                                   long long* needed, float* travelled) {
    __shared__ int kept[COLUMN][BLOCK_THREADS];
    int self = work_item();
    if (self >= n) return;
    int i = order[self], own = bytes[self];
    if (i >= owned) return;
#if defined(ABSENT)
    if (self >= start[grid.cells[0] * grid.cells[1] * (DIM == 3 ? grid.cells[DIM - 1] : 1)]) return;
    int near = i < borders ? n : owned;
#define IS_PARTNER(j) (j != i && j < near)
#else
    int near = n;
#define IS_PARTNER(j) (j != i)
#endif
    Vec ri = load(pos, n, i);
    if (reference_pos) store(reference_pos, n, i, ri);
    ListColumn list(kept);
    for_each_around(start, grid, home_cell(grid, ri), [&](int from, int to) {
        add_near(units, own, bytes, from, to, self, list);
    });
    bool is_short;
    if (list.is_whole()) {
        int found = list.count();
        list.clear();
        for (int c = 0; c < found; c += LOADED_AT_ONCE) {
            int j[LOADED_AT_ONCE];
#pragma unroll
            for (int b = 0; b < LOADED_AT_ONCE; ++b) j[b] = c + b < found ? order[kept[c + b][threadIdx.x]] : i;
#if IS_EXACT
            Vec dr[LOADED_AT_ONCE];
            real r2[LOADED_AT_ONCE];
            separate<LOADED_AT_ONCE>(grid, n, pos, ri, j, dr, r2);
#pragma unroll
            for (int b = 0; b < LOADED_AT_ONCE; ++b) list.add(j[b], IS_PARTNER(j[b]) && r2[b] < reach2);
#else
#pragma unroll
            for (int b = 0; b < LOADED_AT_ONCE; ++b) list.add(j[b], IS_PARTNER(j[b]));
#endif
        }
        is_short = list.write(owned, i, partners, rows, room, needed);
    } else {
        is_short = write_crowded(owned, near, i, pos, start, order, grid, reach2, partners, rows, room, needed);
    }
    if (is_short) halt(travelled);
}
