// Neighbour lists of a device, made from the particles in the cells around each; see listing.py.

#include "md/search/lists/byte_coordinates.cuh"
#include "md/search/lists/fours.cuh"

// Stores the bytes of the particles in the order of their cells.
extern "C" __global__ void store_bytes(int n, const real* pos, const int* order, Units units, int* bytes) {
    int k = work_item();
    if (k < n) bytes[k] = bytes_of(units, load(pos, n, order[k]));
}

// Calls visit(k) for the particles, by their place in the order of the cells, in the cells around a cell.
template <typename Visit>
__device__ __forceinline__ void for_each_around(const int* start, const Grid& grid, const int3& home, Visit visit) {
    int count = grid.cells[0], before = max(home.x - 1, 0), after = min(home.x + 1, count - 1);
    int beyond = -1;  // the cell beyond a periodic side
    if (grid.periodic[0] && count >= 3) beyond = home.x == 0 ? count - 1 : home.x == count - 1 ? 0 : -1;
    bool is_inside = is_interior(grid, home);
    int corner = DIM == 3 ? count * (home.y - 1 + grid.cells[1] * (home.z - 1)) : count * (home.y - 1);
#pragma unroll 1
    for (int z = 0; z < (DIM == 3 ? 3 : 1); ++z) {
#pragma unroll 1
        for (int y = 0; y < 3; ++y) {
            int row = is_inside ? corner + count * (y + grid.cells[1] * z) : neighbour_row(grid, home, y + 3 * z);
            if (row < 0) continue;
            int from = start[row + before], to = start[row + after + 1], rest = beyond;
            for (;;) {
#pragma unroll 1
                for (int k = from; k < to; ++k) visit(k);
                if (rest < 0) break;
                from = start[row + rest], to = start[row + rest + 1], rest = -1;
            }
        }
    }
}

// Searches again for the partners of a particle that has too many for shared memory, and writes its list.
__device__ __noinline__ bool write_crowded(int n, int i, const real* pos, const int* start, const int* order, Grid grid,
                                           real reach2, int* partners, int rows, long long room, long long* needed) {
    ListWriter writer(n, i, rows, partners);
    Vec ri = load(pos, n, i);
    for_each_around(start, grid, home_cell(grid, ri), [&](int k) {
        int j = order[k];
        Vec dr = displacement(grid, ri, load(pos, n, j));
        if (j != i && dot(dr, dr) < reach2) writer.add(j, room, needed);
    });
    return writer.end();
}

#define TESTED_AT_ONCE 4  // partners whose positions are loaded at the same time
#define INFINITELY_FAR __int_as_float(0x7f800000)

// Lists the partners within reach of each particle. Those that may be near by their bytes are kept in shared memory, and then
// replaced by those that are. Threads take the particles in the order of the cells, so that a warp looks at few rows.
extern "C" __global__ void BLOCKS(8) build_lists(int n, const real* pos, const int* start, const int* order,
                                                 const int* bytes, Grid grid, Units units, real reach2,
                                                 real* reference_pos, int* partners, int rows, long long room,
                                                 long long* needed, float* travelled) {
    __shared__ int kept[COLUMN][256];
    if (work_item() >= n) return;
    int i = order[work_item()], own = bytes[work_item()];
    Vec ri = load(pos, n, i);
    if (reference_pos) store(reference_pos, n, i, ri);
    ListColumn list = {kept, 0};
    for_each_around(start, grid, home_cell(grid, ri), [&](int k) {
        if (may_be_near(units, own, bytes[k])) list.add(k);
    });
    bool is_short;
    if (list.is_whole()) {
        int found = list.count;
        list.count = 0;
        for (int c = 0; c < found; c += TESTED_AT_ONCE) {
            int j[TESTED_AT_ONCE];
            Vec dr[TESTED_AT_ONCE];
#pragma unroll
            for (int b = 0; b < TESTED_AT_ONCE; ++b) j[b] = c + b < found ? order[kept[c + b][threadIdx.x]] : i;
#pragma unroll
            for (int b = 0; b < TESTED_AT_ONCE; ++b) dr[b] = displacement(grid, ri, load(pos, n, j[b]));
#pragma unroll
            for (int b = 0; b < TESTED_AT_ONCE; ++b) {
                if (j[b] != i && dot(dr[b], dr[b]) < reach2) list.add(j[b]);
            }
        }
        is_short = list.write(n, i, rows, partners, room, needed);
    } else {
        is_short = write_crowded(n, i, pos, start, order, grid, reach2, partners, rows, room, needed);
    }
    if (is_short) travelled[0] = travelled[1] = INFINITELY_FAR;  // halts all steps
}
