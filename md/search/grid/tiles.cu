// Tiles of cells with the particles around them in shared memory; see tiles.py.
//
// A warp works on one tile at a time. All lanes of a warp reach each barrier, because its conditions are the same in
// all lanes.

#define LANES 32
#define WARPS 8    // warps in a block of the launcher
#define STAGED (sizeof(real) == 4 ? 256 : 192)  // particles staged at a time, limited by 48 KiB a block
#define WIDEST 94  // cells of a tile; as in tiles.py
#define NOT_YET 0x7fffffff  // offset of a slice that is not staged yet: larger than all others

struct Stage {
    Vec near[STAGED];      // positions of the particles around the tile, slice by slice along axis 0
    int slots[STAGED];     // their slots
    int slab[WIDEST + 3];  // number of particles around the tile before each slice
    int own[LANES];        // slots of the tile's own particles
    int cell[LANES];       // cell of the tile that contains each of them
    int row[NEIGHBOUR_ROWS];
};

// Progress of the rounds of 32 cells in which the particles around a tile are staged.
struct Progress {
    int cell = 0;  // first cell of the round
    int used = 0;  // particles of the round that have been staged
    int done = 0;  // particles of the rounds before
};

// Slots of a cell's particles: `count` slots from `from`; count = 0 for a negative cell.
__device__ __forceinline__ void cell_slots(int cell, const int* start, const int* rank, int& from,
                                        int& count) {
    from = count = 0;
    if (cell < 0) return;
    int place = rank[cell];
    from = start[place];
    count = start[place + 1] - from;
}

// Sum over this lane and the lanes before it.
__device__ __forceinline__ int sum_upto(int count, int lane) {
#pragma unroll
    for (int apart = 1; apart < LANES; apart *= 2) {
        int before = __shfl_up_sync(~0u, count, apart);
        if (lane >= apart) count += before;
    }
    return count;
}

// Lists up to 32 of the tile's particles, from number `first` on. Returns the number of all its particles.
__device__ __forceinline__ int list_own(Stage& stage, int lane, int first, int row, int cells,
                                        const int* start, const int* rank) {
    int total = 0;
    for (int round = 0; round < cells; round += LANES) {
        int cell = round + lane, from, count;
        cell_slots(cell < cells ? row + cell : -1, start, rank, from, count);
        int upto = sum_upto(count, lane), before = total + upto - count - first;
        for (int k = max(0, -before); k < count && before + k < LANES; ++k) {
            stage.own[before + k] = from + k;
            stage.cell[before + k] = cell;
        }
        total += __shfl_sync(~0u, upto, LANES - 1);
    }
    return total;
}

// Stages particles around the tile until the buffer is full or none are left. Returns their number.
__device__ __forceinline__ int stage_more(Stage& stage, Progress& at, int lane, int n, const int3& home,
                                          int cells, const real* pos, const int* start, const int* rank,
                                          const Grid& grid) {
    int staged = 0;
    while (staged < STAGED && at.cell < NEIGHBOUR_ROWS * (cells + 2)) {
        int number = at.cell + lane, slice = number / NEIGHBOUR_ROWS;
        int row = slice < cells + 2 ? stage.row[number % NEIGHBOUR_ROWS] : -1;
        int x = home.x + slice - 1;
        if (slice == 0) x = axis_neighbour(grid, 0, home.x, 0);
        if (slice == cells + 1) x = axis_neighbour(grid, 0, home.x + cells - 1, 2);
        int from, count;
        cell_slots(row < 0 || x < 0 ? -1 : row + x, start, rank, from, count);
        int upto = sum_upto(count, lane), sum = __shfl_sync(~0u, upto, LANES - 1);
        if (slice < cells + 3 && number % NEIGHBOUR_ROWS == 0) stage.slab[slice] = at.done + upto - count;
        int before = staged + upto - count - at.used;
        for (int k = max(0, staged - before); k < count && before + k < STAGED; ++k) {
            stage.slots[before + k] = from + k;
        }
        int taken = min(sum - at.used, STAGED - staged);
        staged += taken;
        at.used += taken;
        if (at.used == sum) {
            at.cell += LANES;
            at.done += sum;
            at.used = 0;
        }
    }
    __syncwarp();
    for (int k = lane; k < staged; k += LANES) stage.near[k] = load(pos, n, stage.slots[k]);
    __syncwarp();
    return staged;
}

template <bool INTERIOR, class Acc>
__device__ __forceinline__ Acc fold(const Stage& stage, int low, int high, int n, int i, const velocity* vel,
                                    const Grid& grid, const Law& law, const Vec& ri, const Vec& vi,
                                    Acc acc) {
    for (int k = low; k < high; ++k) {
        int j = stage.slots[k];
        if (j == i) continue;
        Vec dr = separation<INTERIOR>(grid, ri, stage.near[k]);
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
    return acc;
}

extern "C" __global__ void force(int threads, int n, const real* pos, const velocity* vel, const int* start,
                                 const int* rank, int width, int tiles, int parts, Grid grid, Law law,
                                 Out out) {
    __shared__ Stage stages[WARPS];
    Stage& stage = stages[threadIdx.x / LANES];
    int lane = threadIdx.x % LANES, per_row = (grid.cells[0] + width - 1) / width;
    if (work_item() >= threads) return;  // a whole warp
    for (unsigned tile = work_item() / LANES; tile < (unsigned)tiles; tile += threads / LANES) {
        int line = tile / per_row;
        int3 home = {(int)(tile % per_row) * width, line % grid.cells[1], line / grid.cells[1]};
        int cells = min(width, grid.cells[0] - home.x), own = cell_number(grid, home);
        int3 last = {home.x + cells - 1, home.y, home.z};
        bool interior = is_interior(grid, home) && is_interior(grid, last);
        for (int first = 0, total = 1; first < total; first += LANES) {  // a lane for each particle
            total = list_own(stage, lane, first, own, cells, start, rank);
            if (total == 0) break;
            if (lane < NEIGHBOUR_ROWS) stage.row[lane] = neighbour_row(grid, home, lane);
            for (int slice = lane; slice < cells + 3; slice += LANES) stage.slab[slice] = NOT_YET;
            __syncwarp();
            bool busy = first + lane < total;
            int i = stage.own[busy ? lane : 0], cell = stage.cell[busy ? lane : 0];
            Vec ri, vi;
            load_row(pos, vel, n, i, ri, vi);
            auto acc = initial(law, ri);
            Progress progress;
            for (int before = 0;;) {
                int staged = stage_more(stage, progress, lane, n, home, cells, pos, start, rank, grid);
                if (staged == 0) break;
                int low = max(0, stage.slab[cell] - before);
                int high = busy ? min(staged, stage.slab[cell + 3] - before) : low;
                acc = interior ? fold<true>(stage, low, high, n, i, vel, grid, law, ri, vi, acc)
                               : fold<false>(stage, low, high, n, i, vel, grid, law, ri, vi, acc);
                before += staged;
                __syncwarp();
            }
            if (busy) finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
            __syncwarp();
        }
    }
}
