// Sums over the particles of each cell; see field.py.

#define COLUMNS (3 + DIM)

extern "C" __global__ void collect(int n, const real* pos, const real* vel, const int* slots, const double* virial,
                                   Grid grid, double* sums) {
    int row = work_item();
    if (row >= n) return;
    int i = slots ? slots[row] : row;
    Vec r = load(pos, n, i), v = load(vel, n, i);
    bool out = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) out |= r.x[axis] < 0 || r.x[axis] > grid.length[axis];
    if (out) return;
    double* own = sums + (size_t)COLUMNS * cell_number(grid, home_cell(grid, r));
    double v2 = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        v2 += (double)v.x[axis] * v.x[axis];
        atomicAdd(own + 3 + axis, (double)v.x[axis]);
    }
    atomicAdd(own, 1.0);
    atomicAdd(own + 1, v2);
    if (virial[row] != 0) atomicAdd(own + 2, virial[row]);
}
