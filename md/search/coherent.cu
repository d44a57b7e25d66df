// Particles sorted by cell; see coherent.py.

#include "md/particles/cell_rows.cuh"

extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* start, const int* rank, Grid grid,
                                 Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    int3 home = home_cell(grid, ri);
#pragma unroll 1
    for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
        int row = neighbour_row(grid, home, b);
        if (row < 0) continue;
#pragma unroll
        for (int a = 0; a < 3; ++a) {
            int x = axis_neighbour(grid, 0, home.x, a);
            if (x < 0) continue;
            int cell = rank[row + x];
            int end = start[cell + 1];
            for (int j = start[cell]; j < end; ++j) {
                if (j == i) continue;
                Vec dr = displacement(grid, ri, load(pos, n, j));
                acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
            }
        }
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}

extern "C" __global__ void force_rows(int n, const real* pos, const real* vel, const int* start, const int* rank,
                                      int division, real reach, real keep2, int parts, Grid grid, Law law,
                                      Out out) {
    __shared__ int2 listed[LISTED][LISTING];
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    auto add = [&](int j, const Vec& dr) {
        if (j != i) acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    };
    if (__all_sync(__activemask(), is_away(grid, home_cell(grid, ri), division))) {  // a warp takes one path
        visit_rows<true>(listed, grid, division, reach, n, pos, ri, start, rank, nullptr, add);
    } else {
        visit_rows<false>(listed, grid, division, reach, n, pos, ri, start, rank, nullptr, add);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
