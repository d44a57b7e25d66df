// The steps of a cavity, one launch for each sweep over the pressure.
#include "cuda.cuh"

// Tentative velocities; on the boundary those of the last step. The first thread counts the steps in status[1].
extern "C" __global__ void tentative(int n, const number* u, const number* v, number* ut, number* vt, int* status,
                                     Boundary boundary, Stencil stencil, Factors factors) {
    int k = work_item();
    if (k >= n) return;
    if (k == 0) ++status[1];
    Given old_u{u}, old_v{v};
    Field new_u{ut}, new_v{vt};
    if (k >= INNER) {
        int place = boundary.points[k - INNER];
        new_u[place] = old_u[place], new_v[place] = old_v[place];
        return;
    }
    Around at = around_of(k, stencil);
    Cross of_u = cross_at(old_u, at), of_v = cross_at(old_v, at);
    new_u[at.centre] = of_u.centre + change(of_u, of_u.centre, of_v.centre, factors);
    new_v[at.centre] = of_v.centre + change(of_v, of_u.centre, of_v.centre, factors);
}

// Right-hand side at the points inside, from the divergence of the tentative velocities.
extern "C" __global__ void find_source(int n, const number* ut, const number* vt, number* source, Stencil stencil,
                                       Factors factors) {
    int k = work_item();
    if (k >= n) return;
    Given u{ut}, v{vt};
    Around at = around_of(k, stencil);
    Field{source}[at.centre] = factors.source * ((u[at.east] - u[at.west]) + (v[at.north] - v[at.south]));
}

extern "C" __global__ void sweep(int n, const number* p, const number* source, number* next, Boundary boundary,
                                 Stencil stencil, Factors factors) {
    int k = work_item();
    if (k >= n) return;
    if (k >= INNER) {
        Field{next}[boundary.points[k - INNER]] =
            swept_edge(k - INNER, Given{p}, Given{source}, boundary, stencil, factors);
        return;
    }
    Around at = around_of(k, stencil);
    Field{next}[at.centre] = swept(cross_at(Given{p}, at), Given{source}[at.centre], factors);
}

// Velocities without the gradient of the pressure, and their boundary values. The first step at which a velocity or a
// pressure is not finite is kept in status[0], which is 0 before.
extern "C" __global__ void correct(int n, const number* pressure, const number* ut, const number* vt, number* u, number* v,
                                   int* status, BoundaryU of_u, BoundaryV of_v, Stencil stencil, Factors factors) {
    int k = work_item();
    if (k >= n) return;
    Given p{pressure}, old_u{ut}, old_v{vt};
    int edge = k - INNER, from_u = edge < 0 ? k : of_u.sources[edge], from_v = edge < 0 ? k : of_v.sources[edge];
    Around at_u = around_of(max(from_u, 0), stencil), at_v = around_of(max(from_v, 0), stencil);
    int to = edge < 0 ? at_u.centre : of_u.points[edge];
    number new_u = old_u[at_u.centre] - factors.gradient * (p[at_u.east] - p[at_u.west]);
    number new_v = old_v[at_v.centre] - factors.gradient * (p[at_v.north] - p[at_v.south]);
    if (from_u < 0) new_u = of_u.values[edge];
    if (from_v < 0) new_v = of_v.values[edge];
    if (!isfinite(new_u) || !isfinite(new_v) || !isfinite(p[to])) atomicCAS(status, 0, status[1]);
    Field{u}[to] = new_u;
    Field{v}[to] = new_v;
}
