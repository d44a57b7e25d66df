// Rows of particles that come to a rank and leave it; see rank_arrays.py. Of each, `numbers` has the position, the velocity, and
// the radius if there are radii, one after the other; `ids` its id.

#include "md/domain/records.cuh"

// Copies rows of particles.
extern "C" __global__ void copy_out(int n, const int* rows, const real* pos, const velocity* vel, const int* id,
                                    const real* radius, real* numbers, int* ids) {
    int k = work_item();
    if (k >= n) return;
    int i = rows[k], each = EACH + (radius != nullptr);
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

// Stores particles in rows from `first` on.
extern "C" __global__ void copy_in(int n, int first, const real* numbers, const int* ids, real* pos, velocity* vel, int* id,
                                   real* radius) {
    int k = work_item();
    if (k >= n) return;
    int i = first + k, each = EACH + (radius != nullptr);
    Vec r, v;
    read_numbers(numbers, each, k, r, v);
    store_row(pos, vel, n, i, r, v);
    if (radius) radius[i] = numbers[(size_t)each * k + EACH];
    if (ids) id[i] = ids[k];
}

// Sort keys of particles by the place of their cell, and in it by its halves along each axis. Those from `before` on have come.
extern "C" __global__ void keys_of(int n, int before, const real* pos, const real* numbers, int has_radius, const int* table,
                                   Grid grid, int* keys) {
    int i = work_item();
    if (i >= n) return;
    Vec r, v;
    if (i < before) {
        r = load(pos, n, i);
    } else {
        read_numbers(numbers, EACH + has_radius, i - before, r, v);
    }
    int3 home = home_cell(grid, r);
    int cell[3] = {home.x, home.y, home.z}, part = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        int half = (int)(2 * (r.x[axis] * grid.per_side[axis])) - 2 * cell[axis];
        part |= (half > 0) << axis;
    }
    keys[i] = (table[cell_number(grid, home)] << DIM) | part;
}

// Row i of the new arrays gets row order[i]; from `before` on these are of the particles that have come.
extern "C" __global__ void take(int n, int before, const int* order, const real* pos, const velocity* vel, const int* id,
                                const real* radius, const real* numbers, const int* ids, real* new_pos, velocity* new_vel,
                                int* new_id, real* new_radius) {
    int i = work_item();
    if (i >= n) return;
    int j = order[i];
    Vec r, v;
    if (j < before) {
        load_row(pos, vel, n, j, r, v);
        new_id[i] = id[j];
        if (new_radius) new_radius[i] = radius[j];
    } else {
        int k = j - before, each = EACH + (new_radius != nullptr);
        read_numbers(numbers, each, k, r, v);
        new_id[i] = ids[k];
        if (new_radius) new_radius[i] = numbers[(size_t)each * k + EACH];
    }
    store_row(new_pos, new_vel, n, i, r, v);
}

// Lists the particles of some cells: those of a cell are at start[begin] .. start[stop] - 1, and their list begins at `first`.
extern "C" __global__ void list_cells(int n, const int* begins, const int* stops, const int* first, const int* start,
                                      int* rows) {
    int c = work_item();
    if (c >= n) return;
    int from = start[begins[c]], count = start[stops[c]] - from;
    for (int k = 0; k < count; ++k) rows[first[c] + k] = from + k;
}
