// Linked cell lists; see linked.py. Lists are linked by atomics, so their order, and with it the rounding of a force's
// sum, differs from run to run.

extern "C" __global__ void unlink(int cells, int* head) {
    int cell = work_item();
    if (cell < cells) head[cell] = -1;
}

extern "C" __global__ void link(int n, const int* keys, int* head, int* next, int parts) {
    int i = work_item();
    if (i < n) next[i] = atomicExch(&head[keys[i]], i);
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* head, const int* next, Grid grid,
                                 Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i), acc = zero();
    int3 home = home_cell(grid, ri);
#pragma unroll 1
    for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
        int row = neighbour_row(grid, home, b);
        if (row < 0) continue;
#pragma unroll
        for (int a = 0; a < 3; ++a) {
            int x = axis_neighbour(grid, 0, home.x, a);
            if (x < 0) continue;
            for (int j = head[row + x]; j >= 0; j = next[j]) {
                if (j == i) continue;
                Vec dr = displacement(grid, ri, load(pos, n, j));
                acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
            }
        }
    }
    finish(out, grid, n, i, ri, vi, acc);
}
