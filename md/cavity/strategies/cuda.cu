// The steps of a cavity, one launch for each sweep over the pressure.
#include "cuda.cuh"

// Tentative velocities; on the boundary those of the last step. The first thread counts the steps in status[1].
extern "C" __global__ void tentative(int n, const number* u, const number* v, number* ut, number* vt, int* status,
                                     Factors factors) {
    int point = work_item();
    if (point >= n) return;
    if (point == 0) ++status[1];
    number own_u = u[point], own_v = v[point], added_u = 0, added_v = 0;
    if (is_inner(point)) {
        added_u = change(cross_at(u, point), own_u, own_v, factors);
        added_v = change(cross_at(v, point), own_u, own_v, factors);
    }
    ut[point] = own_u + added_u;
    vt[point] = own_v + added_v;
}

// Right-hand side at the points inside, from the divergence of the tentative velocities.
extern "C" __global__ void find_source(int n, const number* ut, const number* vt, number* source, Factors factors) {
    int k = work_item();
    if (k >= n) return;
    int point = inner_point(k);
    source[point] = factors.source * ((ut[point + 1] - ut[point - 1]) + (vt[point + NX] - vt[point - NX]));
}

extern "C" __global__ void sweep(int n, const number* p, const number* source, number* next, Boundary boundary,
                                 Factors factors) {
    int k = work_item();
    if (k >= n) return;
    int edge = k - INNER, to = edge < 0 ? inner_point(k) : boundary.points[edge];
    int from = edge < 0 ? to : boundary.sources[edge];
    next[to] = from < 0 ? boundary.values[edge] : swept(cross_at(p, from), source[from], factors);
}

// Velocities without the gradient of the pressure, and their boundary values. The first step at which a velocity or a
// pressure is not finite is kept in status[0], which is 0 before.
extern "C" __global__ void correct(int n, const number* p, const number* ut, const number* vt, number* u, number* v,
                                   int* status, BoundaryU of_u, BoundaryV of_v, Factors factors) {
    int k = work_item();
    if (k >= n) return;
    int edge = k - INNER, to = edge < 0 ? inner_point(k) : of_u.points[edge];
    int from_u = edge < 0 ? to : of_u.sources[edge], from_v = edge < 0 ? to : of_v.sources[edge];
    number new_u = from_u < 0 ? of_u.values[edge] : ut[from_u] - factors.gradient * (p[from_u + 1] - p[from_u - 1]);
    number new_v = from_v < 0 ? of_v.values[edge] : vt[from_v] - factors.gradient * (p[from_v + NX] - p[from_v - NX]);
    if (!isfinite(new_u) || !isfinite(new_v) || !isfinite(p[to])) atomicCAS(status, 0, status[1]);
    u[to] = new_u;
    v[to] = new_v;
}
