// Linked cell lists; see linked.py. Lists are linked by atomics, so their order, and with it the rounding of a force's
// sum, differs from run to run.

extern "C" __global__ void link(int n, const real* pos, Grid grid, int* keys, int* head, int* next, int parts) {
    int i = work_item();
    if (i < n) next[i] = atomicExch(&head[cell_number(grid, home_cell(grid, load(pos, n, i)))], i);
}

// Folds the law over the chains of the three cells of a row as one chain: the heads are loaded together, and the lanes
// of a warp wait for the longest row, not for the longest chain of every cell.
template <bool INTERIOR, class Acc>
__device__ __forceinline__ Acc fold(int first, int second, int third, int n, int i, const real* pos, const real* vel,
                                    const int* next, const Grid& grid, const Law& law, const Vec& ri, const Vec& vi,
                                    Acc acc) {
    for (;;) {
        if (first < 0) {
            first = second;
            second = third;
            third = -1;
        }
        if (first < 0) {
            first = second;
            second = -1;
        }
        if (first < 0) return acc;
        int j = first;
        first = next[j];
        if (j == i) continue;
        Vec dr = separation<INTERIOR>(grid, ri, load(pos, n, j));
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* work, const int* head,
                                 const int* next, Grid grid, Law law, Out out) {
    int item = work_item();
    if (item >= n) return;
    int i = slot_of(work, item);
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    int3 home = home_cell(grid, ri);
    if (__all_sync(__activemask(), is_interior(grid, home))) {  // a warp on both paths would run them in turn
        const int* row = head + cell_number(grid, home) - 1 - grid.cells[0] * (DIM == 3 ? 1 + grid.cells[1] : 1);
#pragma unroll 1
        for (int c = 0; c < (DIM == 3 ? 3 : 1); ++c, row += grid.cells[0] * (grid.cells[1] - 3)) {
#pragma unroll 1
            for (int b = 0; b < 3; ++b, row += grid.cells[0]) {
                acc = fold<true>(row[0], row[1], row[2], n, i, pos, vel, next, grid, law, ri, vi, acc);
            }
        }
    } else {
        int before = axis_neighbour(grid, 0, home.x, 0), after = axis_neighbour(grid, 0, home.x, 2);
#pragma unroll 1
        for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
            int row = neighbour_row(grid, home, b);
            if (row < 0) continue;
            int first = before < 0 ? -1 : head[row + before], third = after < 0 ? -1 : head[row + after];
            acc = fold<false>(first, head[row + home.x], third, n, i, pos, vel, next, grid, law, ri, vi, acc);
        }
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
