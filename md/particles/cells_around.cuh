// The cells around a cell, row by row along axis 0. Where cells are in the order of their row-major numbers, the particles of
// neighbouring cells of a row are one range.

#if defined(HAS_GRID)
#define LAYERS (DIM == 3 ? 3 : 1)  // of three rows
#define ABSENT (int)0x80000000  // instead of the number of a cell; stays negative if another is added

// Whether the first and the last cell of an axis are neighbours across its sides. Of fewer than three cells, all are neighbours
// without that.
__device__ __forceinline__ bool wraps_around(const Grid& grid, int axis) {
    return grid.periodic[axis] && grid.cells[axis] >= 3;
}

// Cell number `step` (0, 1, 2) of those to visit along an axis around cell `home`; -1 for none.
__device__ __forceinline__ int cell_beside(const Grid& grid, int axis, int home, int step) {
    int count = grid.cells[axis], cell = home + step - 1;
    if ((unsigned)cell < (unsigned)count) return cell;
    return wraps_around(grid, axis) ? (cell < 0 ? count - 1 : 0) : -1;
}

struct CellsAround {
    int first[3];  // number of the first cell to visit in each row of the layer z = 0; ABSENT
    int width;  // cells of a row from the first one on
    int beyond;  // from the first cell of a row to the cell beyond a periodic side; 0 for none

    __device__ __forceinline__ CellsAround(const Grid& grid, const int3& home) : beyond(0) {
        int count = grid.cells[0], before = max(home.x - 1, 0);
        width = min(home.x + 2, count) - before;
        // Not by comparing home.x, a smaller of two numbers, with the larger one of them: ptxas 13.0 gets that wrong.
        if (wraps_around(grid, 0) && width < 3) beyond = before == home.x ? count - 1 : -before;
#pragma unroll
        for (int step = 0; step < 3; ++step) {
            int y = cell_beside(grid, 1, home.y, step);
            first[step] = y < 0 ? ABSENT : before + count * y;
        }
    }

    // Cell of row `step` of a layer, for the number of cells before that layer.
    __device__ __forceinline__ int first_of(int step, int cells_before) const {
        return cells_before + (step == 0 ? first[0] : step == 1 ? first[1] : first[2]);
    }
};

// Number of cells before a layer (0, 1, 2) of those around a cell; negative if the layer is absent.
__device__ __forceinline__ int cells_before_layer(const Grid& grid, const int3& home, int layer) {
    return DIM == 3 ? cell_beside(grid, 2, home.z, layer) * (grid.cells[0] * grid.cells[1]) : 0;
}
#endif
