// Linked cell lists; see linked.py. Lists are linked by atomics, so their order, and with it the rounding of a force's
// sum, differs from run to run.

extern "C" __global__ void link(int n, const int* keys, int* head, int* next, int parts) {
    int i = work_item();
    if (i < n) next[i] = atomicExch(&head[keys[i]], i);
}

// The chains of the three cells of a row are walked as one: the heads are loaded together, and the lanes of a warp
// wait for the longest row, not for the longest chain of every cell.
extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* head, const int* next, Grid grid,
                                 Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i), acc = zero();
    int3 home = home_cell(grid, ri);
    int before = axis_neighbour(grid, 0, home.x, 0), after = axis_neighbour(grid, 0, home.x, 2);
#pragma unroll 1
    for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
        int row = neighbour_row(grid, home, b);
        if (row < 0) continue;
        int first = before < 0 ? -1 : head[row + before];
        int second = head[row + home.x];
        int third = after < 0 ? -1 : head[row + after];
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
            if (first < 0) break;
            int j = first;
            first = next[j];
            if (j == i) continue;
            Vec dr = displacement(grid, ri, load(pos, n, j));
            acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
        }
    }
    finish(out, grid, n, i, ri, vi, acc);
}
