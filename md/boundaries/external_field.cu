// Gravity, walls and the motion of the container; see external_field.py.

extern "C" __global__ void swing(int n, const long long* clock, long long turn, double step, const double* elapsed,
                                 double dt, double frequency, double acceleration, double speed, double* now) {
    if (work_item() > 0) return;
    double time = elapsed ? *elapsed : (clock ? (double)clock[turn] + step : step) * dt;
    double cycles = frequency * time;
    double angle = 2 * (cycles - floor(cycles));
    now[0] = -acceleration * cospi(angle);
    now[1] = speed * sinpi(angle);
}

extern "C" __global__ void push(int n, const real* pos, const real* vel, const real* radius, Grid grid, Outside field,
                                const double* now, real* force) {
    int i = work_item();
    if (i >= n) return;
    real own = radius_of(field, radius, i);
    store(force, n, i, outside(field, own, now, grid, load(pos, n, i), load(vel, n, i), load(force, n, i)));
}
