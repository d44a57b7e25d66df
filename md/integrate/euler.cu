// Euler's scheme with a step that the fastest particle sets; see euler.py.

#include "md/integrate/moving.cuh"

extern "C" __global__ void fastest(int n, const real* vel, Grid grid, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec v = load(vel, n, i);
        found = dot(v, v);
    }
    // Numbers that are not negative are ordered as their bits are, NaN above them all.
    unsigned long long bits = __double_as_longlong(found);
#pragma unroll
    for (int apart = 16; apart; apart /= 2) bits = max(bits, __shfl_xor_sync(~0u, bits, apart));
    unsigned long long* word = (unsigned long long*)most;
    if (threadIdx.x % 32 == 0 && bits > *(volatile unsigned long long*)word) atomicMax(word, bits);
}

extern "C" __global__ void kick_and_drift(int n, real* pos, real* vel, const int* id, const real* force, double longest,
                                          double reach, const double* most, double* elapsed, long long step, Grid grid,
                                          unsigned long long* fault) {
    int i = work_item();
    if (i >= n) return;
    double dt = *most > 0 ? min(longest, reach / sqrt(*most)) : longest;
    if (i == 0) *elapsed += dt;
    Vec v = add_scaled(load(vel, n, i), (real)dt, load(force, n, i));
    store(vel, n, i, v);
    Vec r = load(pos, n, i);
    place(grid, r, add_scaled(r, (real)dt, v), pos, n, i, id, step, fault);
}
