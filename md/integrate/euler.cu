// Euler's scheme with a step limited by the fastest particle; see euler.py.

#include "md/backend/warp.cuh"
#include "md/integrate/fused.cuh"

extern "C" __global__ void fastest(int n, const real* vel, long long turn, Grid grid, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec v = load(vel, n, i);
        found = dot(v, v);
    }
    raise_to_largest((unsigned long long*)most + turn, as_word(found));
}

extern "C" __global__ void kick_and_drift(int n, real* pos, real* vel, const int* id, const real* radius,
                                          const real* force, Outside field, const double* now, double longest,
                                          double reach, double* most, double* elapsed, double* step_times,
                                          long long* clock, long long turn, Grid grid, unsigned long long* fault) {
    int i = work_item();
    double dt = most[turn] > 0 ? min(longest, reach / sqrt(most[turn])) : longest, found = 0;
    if (i == 0) {
        *elapsed += dt;
        step_times[0] = step_times[1] = (real)dt;
    }
    if (i < n) {
        Vec r = load(pos, n, i), v = load(vel, n, i), acc = load(force, n, i);
        v = add_scaled(v, (real)dt, outside(field, radius_of(field, radius, i), now, grid, r, v, acc));
        store(vel, n, i, v);
        found = dot(v, v);
        place(grid, r, add_scaled(r, (real)dt, v), pos, n, i, id, count_step(clock, turn, i), fault);
    }
    raise_to_largest((unsigned long long*)most + 1 - turn, as_word(found));
}
