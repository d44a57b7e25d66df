// The tiled order of the cells, and starts of rows of cells; see cell_sort.py.

// Rank of each cell, by row-major number: row-major in tiles of `side` cells along every axis, and the tiles row-major, as
// `tiled` in sfc/orderings/scans.py. n: number of cells.
extern "C" __global__ void tiled_ranks(int n, Grid grid, int side, int* ranks) {
    int number = work_item();
    if (number >= n) return;
    int row = number / grid.cells[0], cell[3] = {number - row * grid.cells[0], row % grid.cells[1], row / grid.cells[1]};
    int before = 0, inside = 0, volume = 1, layer = n;  // cells in earlier tiles; in this tile; of it; in a layer of the box
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
        layer /= grid.cells[axis];
        int tile = min(side, grid.cells[axis]), corner = cell[axis] / tile * tile;
        int width = min(tile, grid.cells[axis] - corner);
        before += corner * volume * layer;
        inside = inside * width + cell[axis] - corner;
        volume *= width;
    }
    ranks[number] = before + inside;
}

extern "C" __global__ void store_starts(int n, const int* start, int every, int* starts) {
    int k = work_item();
    if (k < n) starts[k] = start[(size_t)k * every];
}
