// Flight with a largest speed; see flight.py.

#include "md/integrate/fused.cuh"

extern "C" __global__ void fly(int n, real* pos, real* vel, const int* id, const real* increments, Flight flight,
                               long long* clock, long long turn, Grid grid, unsigned long long* fault) {
    int i = work_item();
    if (i >= n) return;
    Vec v = limited(flight.max_speed, add_scaled(load(vel, n, i), (real)1, load(increments, n, i)));
    store(vel, n, i, v);
    Vec r = load(pos, n, i);
    place(grid, r, add_scaled(r, flight.dt, v), pos, n, i, id, count_step(clock, turn, i), fault);
}

extern "C" __global__ void add_field(int n, const real* pos, const real* vel, const real* radius, Outside field,
                                     const double* now, real dt, Grid grid, real* increments) {
    int i = work_item();
    if (i >= n) return;
    Vec r = load(pos, n, i);
    Vec pull = outside(field, radius_of(field, radius, i), now, grid, r, load(vel, n, i), zero());
    store(increments, n, i, add_scaled(load(increments, n, i), dt, pull));
}
