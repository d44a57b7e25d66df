// Copy of particle arrays in another memory order; see arrays.py.

extern "C" __global__ void gather(int n, const int* order, const real* pos, const real* vel, const int* id,
                                  const real* radius, real* new_pos, real* new_vel, int* new_id, real* new_radius) {
    int i = work_item();
    if (i >= n) return;
    int j = order[i];
    store(new_pos, n, i, load(pos, n, j));
    store(new_vel, n, i, load(vel, n, j));
    if (id) new_id[i] = id[j];
    if (radius) new_radius[i] = radius[j];
}
