// Records of particles that go from rank to rank, and their sort keys. Of each, `numbers` has the position, the velocity, and the
// radius if there are radii, one after the other; `ids` its id.

#define EACH (2 * DIM)

#ifndef PARTS
#define PARTS 2
#endif

// `words` of a rank (RankArrays):
#define LIVE 0     // number of owned particles,
#define REACHED 1  // row from which on rows are 0 in both sets of arrays, or a smaller number than LIVE,
#define NO_ROOM 2  // not 0 if there was too little room,
#define LOST 3     // not 0 once a peer did not come for a long time,
#define COUNTS 4   // records that came from each rank, and behind them ghosts of each

__device__ __forceinline__ void read_numbers(const real* numbers, int each, int k, Vec& r, Vec& v) {
    const real* own = numbers + (size_t)each * k;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        r.x[axis] = own[axis];
        v.x[axis] = own[DIM + axis];
    }
}

// Stores row i as record k.
__device__ __forceinline__ void write_record(int n, int i, const real* pos, const velocity* vel, const int* id, const real* radius,
                                             int k, real* numbers, int* ids) {
    int each = EACH + (radius != nullptr);
    Vec r, v;
    load_row(pos, vel, n, i, r, v);
    real* own = numbers + (size_t)each * k;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        own[axis] = r.x[axis];
        own[DIM + axis] = v.x[axis];
    }
    if (radius) own[EACH] = radius[i];
    if (ids) ids[k] = id[i];
}

// Stores record k in row i.
__device__ __forceinline__ void read_record(int n, int i, int k, const real* numbers, const int* ids, real* pos, velocity* vel,
                                            int* id, real* radius) {
    int each = EACH + (radius != nullptr);
    Vec r, v;
    read_numbers(numbers, each, k, r, v);
    store_row(pos, vel, n, i, r, v);
    if (radius) radius[i] = numbers[(size_t)each * k + EACH];
    if (id) id[i] = ids[k];
}

// Stores row j of some arrays as row i of others.
__device__ __forceinline__ void copy_row(int n, int j, const real* pos, const velocity* vel, const int* id, const real* radius,
                                         int i, real* new_pos, velocity* new_vel, int* new_id, real* new_radius) {
    Vec r, v;
    load_row(pos, vel, n, j, r, v);
    store_row(new_pos, new_vel, n, i, r, v);
    new_id[i] = id[j];
    if (new_radius) new_radius[i] = radius[j];
}

#if defined(HAS_GRID)
// Sort key of a position: the place of its cell, and in it that of one of PARTS parts along each axis.
__device__ __forceinline__ int key_of(const int* table, const Grid& grid, const Vec& r) {
    int3 home = home_cell(grid, r);
    int cell[3] = {home.x, home.y, home.z}, key = table[cell_number(grid, home)];
#pragma unroll
    for (int axis = DIM - 1; axis >= 0; --axis) {
        int part = (int)(PARTS * (r.x[axis] * grid.per_side[axis])) - PARTS * cell[axis];
        key = PARTS * key + min(max(part, 0), PARTS - 1);
    }
    return key;
}
#endif

// Sort key of a row without a particle: bins behind the others, with few rows each.
__device__ __forceinline__ int absent_key(int bins, int i) { return bins + i / 32; }

// The peer of entry k of lists that follow each other; the list of peer p ends at ends[p].
__device__ __forceinline__ int peer_of(const int* ends, int k) {
    int p = 0;
    while (k >= ends[p]) ++p;
    return p;
}

// Where the list of peer p begins.
__device__ __forceinline__ int begin_of(const int* ends, int p) { return p ? ends[p - 1] : 0; }
