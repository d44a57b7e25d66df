// All pairs; see naive.py.

extern "C" __global__ void force(int n, const real* pos, const real* vel, const int* work, Grid grid, Law law,
                                 Out out) {
    int item = work_item();
    if (item >= n) return;
    int i = slot_of(work, item);
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    auto acc = initial(law, ri);
    for (int j = 0; j < n; ++j) {
        if (j == i) continue;
        Vec dr = displacement(grid, ri, load(pos, n, j));
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
