// Slots sorted by cell; see scattered.py.

#include "md/particles/cell_rows.cuh"

template <bool INTERIOR, class Acc>
__device__ __forceinline__ Acc fold(int n, int i, const real* pos, const real* vel, const int* start, const int* rank,
                                    const int* order, const Grid& grid, const Law& law, const Vec& ri, const Vec& vi,
                                    const int3& home, Acc acc) {
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
            for (int k = start[cell]; k < end; ++k) {
                int j = order[k];
                if (j == i) continue;
                Vec dr = separation<INTERIOR>(grid, ri, load(pos, n, j));
                acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
            }
        }
    }
    return acc;
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* work, const int* start,
                                 const int* rank, const int* order, Grid grid, Law law, Out out) {
    int item = work_item();
    if (item >= n) return;
    int i = slot_of(work, item);
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    int3 home = home_cell(grid, ri);
    if (__all_sync(__activemask(), is_interior(grid, home))) {  // a warp takes one path
        acc = fold<true>(n, i, pos, vel, start, rank, order, grid, law, ri, vi, home, acc);
    } else {
        acc = fold<false>(n, i, pos, vel, start, rank, order, grid, law, ri, vi, home, acc);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}

extern "C" __global__ void force_rows(int n, const real* pos, const real* vel, const int* work, const int* start, const int* rank,
                                      const int* order, int division, real reach, real keep2, int parts, Grid grid, Law law,
                                      Out out) {
    __shared__ int2 listed[LISTED][LISTING];
    int item = work_item();
    if (item >= n) return;
    int i = slot_of(work, item);
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    auto add = [&](int j, const Vec& dr) {
        if (j != i) acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    };
    if (__all_sync(__activemask(), is_away(grid, home_cell(grid, ri), division))) {  // a warp takes one path
        visit_rows<true>(listed, grid, division, reach, n, pos, ri, start, rank, order, add);
    } else {
        visit_rows<false>(listed, grid, division, reach, n, pos, ri, start, rank, order, add);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
