// Sort keys of particles; see cell_grid.py.

extern "C" __global__ void cell_keys(int n, const real* pos, const int* table, Grid grid, int* keys) {
    int i = work_item();
    if (i >= n) return;
    int number = cell_number(grid, home_cell(grid, load(pos, n, i)));
    keys[i] = table ? table[number] : number;
}
