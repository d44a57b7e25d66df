// Copy of particle arrays in another memory order, or in the same without an order, and the largest speed; see arrays.py.

#include "md/backend/warp.cuh"

extern "C" __global__ void gather(int n, const int* order, const real* pos, const velocity* vel, const int* id,
                                  const real* radius, real* new_pos, velocity* new_vel, int* new_id, real* new_radius) {
    int i = work_item();
    if (i >= n) return;
    int j = order ? order[i] : i;
    Vec r, v;
    load_row(pos, vel, n, j, r, v);
    store_row(new_pos, new_vel, n, i, r, v);
    if (id) new_id[i] = id[j];
    if (radius) new_radius[i] = radius[j];
}

// Raises the largest square of a speed.
extern "C" __global__ void fastest(int n, const velocity* vel, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec v = load(vel, n, i);
        found = dot(v, v);
    }
    raise_to_largest((unsigned long long*)most, as_word(found));
}
