// Sums of energies and powers over all particles; see energy_balance.py.

#include "md/backend/warp.cuh"
#include "md/boundaries/external_field.cuh"

extern "C" __global__ void flows(int n, const real* pos, const real* vel, const real* vel_now, const real* lost,
                                 const real* radius, Grid grid, Outside field, const double* now, int parts, double* sums) {
    int i = work_item();
    double own[5] = {};
    if (i < n) {
        Vec r = load(pos, n, i), v = load(vel, n, i), vn = load(vel_now, n, i), f = load(lost, n, i);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            double speed = vn.x[axis], pull = field.pull[axis], carried = 0;
            if (axis == field.axis) {
                pull += now[0];
                carried = now[1];
            }
            own[0] += speed * speed / 2;
            own[2] -= f.x[axis] * speed;
            own[4] += pull * speed;
            if (field.spring[axis] > 0) {
                real x = r.x[axis], reach = radius_of(field, radius, i);
                real overlaps[2] = {reach - x, reach - (grid.length[axis] - x)};
#pragma unroll
                for (int side = 0; side < 2; ++side) {
                    if (overlaps[side] <= 0) continue;
                    own[1] += (double)field.spring[axis] * overlaps[side] * overlaps[side] / 2;
                    own[3] += field.damping[axis] * (v.x[axis] + carried) * speed;
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < 5; ++k) add_sum(sums + k, own[k]);
}
