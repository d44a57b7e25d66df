// Relaxation of positions along the force; see descent.py.

#include "md/integrate/fused.cuh"

extern "C" __global__ void descend(int n, real* pos, const int* id, const real* force, real rate, long long* clock,
                                   long long turn, Grid grid, unsigned long long* fault) {
    int i = work_item();
    if (i >= n) return;
    Vec r = load(pos, n, i);
    place(grid, r, add_scaled(r, rate, load(force, n, i)), pos, n, i, id, count_step(clock, turn, i), fault);
}
