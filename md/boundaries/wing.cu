// Forces between a wing and discs; see wing.py.

extern "C" __global__ void touch_each(int n, int count, int parts, const real* pos, const real* vel,
                                      const real* segments, Foil foil, real* force, double* on_wing) {
    int i = work_item();
    if (i >= n) return;
    Vec push = zero();
    int s = pushed(count, segments, foil, load(pos, n, i), load(vel, n, i), push);
    if (s < 0) return;
    store(force, n, i, add_scaled(load(force, n, i), (real)1, push));
    atomicAdd(on_wing + 2 * s, -(double)push.x[0]);
    atomicAdd(on_wing + 2 * s + 1, -(double)push.x[1]);
}

// One warp a segment; each thread has a part of the segment's box, which includes its left and lower side only.
extern "C" __global__ void touch_near(int lanes, int n, int count, const real* pos, const real* vel, const real* nodes,
                                      const int* ropes, const int* order, const real* boxes, const real* segments,
                                      Foil foil, Grid grid, real* force, double* on_wing) {
    if (work_item() >= lanes) return;
    int s = work_item() / 32, lane = threadIdx.x % 32, kx = lane % ACROSS, ky = lane / ACROSS;
    const real* box = boxes + 4 * s;
    real dx = (box[2] - box[0]) / ACROSS, dy = (box[3] - box[1]) / UP;
    double sum_x = 0, sum_y = 0;
    for (int image = 0; image < 9; ++image) {
        int mx = (image % 3 + 1) % 3 - 1, my = (image / 3 + 1) % 3 - 1;
        if ((mx && !grid.periodic[0]) || (my && !grid.periodic[1])) continue;
        real x = box[0] + mx * grid.length[0], y = box[1] + my * grid.length[1];
        real left = x + kx * dx, right = x + (kx + 1) * dx, down = y + ky * dy, up = y + (ky + 1) * dy;
        int node = 0;
        while (node >= 0) {
            Node here = load_node(nodes, node);
            int leaf = node - (n - 1);
            bool near = here.low.x[0] < right && here.high.x[0] >= left && here.low.x[1] < up && here.high.x[1] >= down;
            node = near ? here.ropes.x : here.ropes.y;
            if (!near || leaf < 0) continue;
            int i = order ? order[leaf] : leaf;
            Vec push = zero();
            if (pushed(count, segments, foil, load(pos, n, i), load(vel, n, i), push) != s) continue;
            store(force, n, i, add_scaled(load(force, n, i), (real)1, push));
            sum_x -= push.x[0];
            sum_y -= push.x[1];
        }
    }
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        sum_x += __shfl_xor_sync(~0u, sum_x, apart);
        sum_y += __shfl_xor_sync(~0u, sum_y, apart);
    }
    if (lane == 0) {
        on_wing[2 * s] = sum_x;
        on_wing[2 * s + 1] = sum_y;
    }
}

extern "C" __global__ void give(int entries, const double* on_wing, const double* step_times, double* given) {
    int k = work_item();
    if (k < entries) given[k] += on_wing[k] * step_times[0];
}
