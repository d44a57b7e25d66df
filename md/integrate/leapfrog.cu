// Kick and drift kernels; see leapfrog.py.

#include "md/integrate/fused.cuh"

extern "C" __global__ void kick_drift(int n, real* pos, real* vel, const int* id, const real* force, real kick,
                                      real drift, long long* clock, long long turn, Grid grid,
                                      unsigned long long* fault) {
    int i = work_item();
    if (i >= n) return;
    Vec v = add_scaled(load(vel, n, i), kick, load(force, n, i));
    store(vel, n, i, v);
    Vec r = load(pos, n, i);
    place(grid, r, add_scaled(r, drift, v), pos, n, i, id, count_step(clock, turn, i), fault);
}

extern "C" __global__ void drift(int n, real* pos, const real* vel, const int* id, real drift,
                                 const long long* clock, long long turn, Grid grid, unsigned long long* fault) {
    int i = work_item();
    if (i >= n) return;
    Vec r = load(pos, n, i);
    place(grid, r, add_scaled(r, drift, load(vel, n, i)), pos, n, i, id, clock[turn], fault);
}

extern "C" __global__ void kicked(int n, const real* vel, const real* force, real kick, Grid grid, real* out) {
    int i = work_item();
    if (i < n) store(out, n, i, add_scaled(load(vel, n, i), kick, load(force, n, i)));
}
