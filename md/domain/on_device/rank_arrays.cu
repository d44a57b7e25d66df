// Rows of particles that come to a rank and leave it; see rank_arrays.py.

#include "md/domain/on_device/records.cuh"

// Copies rows to records; all rows from the first on without `rows`.
extern "C" __global__ void copy_out(int n, const int* rows, const real* pos, const velocity* vel, const int* id,
                                    const real* radius, real* numbers, int* ids) {
    int k = work_item();
    if (k < n) write_record(n, rows ? rows[k] : k, pos, vel, id, radius, k, numbers, ids);
}

// Stores records in rows from `first` on.
extern "C" __global__ void copy_in(int n, int first, const real* numbers, const int* ids, real* pos, velocity* vel, int* id,
                                   real* radius) {
    int k = work_item();
    if (k < n) read_record(n, first + k, k, numbers, ids, pos, vel, ids ? id : nullptr, radius);
}

// Sort keys of rows, and of records, which are those from `before` on.
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
    keys[i] = key_of(table, grid, r);
}

// Row i of the new arrays gets row order[i]; from `before` on these are records.
extern "C" __global__ void take(int n, int before, const int* order, const real* pos, const velocity* vel, const int* id,
                                const real* radius, const real* numbers, const int* ids, real* new_pos, velocity* new_vel,
                                int* new_id, real* new_radius) {
    int i = work_item();
    if (i >= n) return;
    int j = order[i];
    if (j < before) {
        copy_row(n, j, pos, vel, id, radius, i, new_pos, new_vel, new_id, new_radius);
    } else {
        read_record(n, i, j - before, numbers, ids, new_pos, new_vel, new_id, new_radius);
    }
}
