// The box and its cells, for kernels that take a `Grid grid`: the struct is made from the record of md.particles.cell_grid.
// The functions mirror those of the same names in prelude.py.

// Adding this number to one that is smaller, and subtracting it again, rounds to an integer.
#define ROUNDS_TO_INTEGERS (sizeof(real) == 4 ? (real)12582912 : (real)6755399441055744)

// A difference of two positions inside the box, between their nearest periodic images. The number of box lengths between them is
// -1, 0 or 1; it is computed without a comparison, which would take twice as many instructions. At exactly half a box length
// both images are nearest: the sign may then differ from the one on the CPU.
__device__ __forceinline__ Vec nearest_image(const Grid& grid, Vec v) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real images = v.x[axis] * grid.per_image[axis] + ROUNDS_TO_INTEGERS;
        images -= ROUNDS_TO_INTEGERS;
        v.x[axis] -= images * grid.image[axis];
    }
    return v;
}

// a - b between the nearest periodic images. A difference shorter than half the shortest periodic axis is one of nearest images.
__device__ __forceinline__ Vec displacement(const Grid& grid, const Vec& a, const Vec& b) {
    Vec v = sub(a, b);
    return __builtin_expect(dot(v, v) >= grid.nearest2, 0) ? nearest_image(grid, v) : v;
}

// Cell of one coordinate. The upper side of the box belongs to the last cell; positions beyond an open side belong to the
// first or last cell.
__device__ __forceinline__ int axis_cell(const Grid& grid, int axis, real x) {
    return max(0, min((int)(x * grid.per_side[axis]), grid.cells[axis] - 1));
}

__device__ __forceinline__ int3 home_cell(const Grid& grid, const Vec& r) {
    int3 home;
    home.x = axis_cell(grid, 0, r.x[0]);
    home.y = axis_cell(grid, 1, r.x[1]);
    home.z = DIM == 3 ? axis_cell(grid, 2, r.x[DIM - 1]) : 0;
    return home;
}

__device__ __forceinline__ int cell_number(const Grid& grid, const int3& cell) {
    return cell.x + grid.cells[0] * (cell.y + grid.cells[1] * cell.z);
}

// Cell number `step` (0, 1, 2) of those to visit along an axis around cell `home`; -1 for none.
__device__ __forceinline__ int axis_neighbour(const Grid& grid, int axis, int home, int step) {
    int count = grid.cells[axis];
    bool wraps = grid.periodic[axis] != 0;
    int cell = home + step - 1;
    if (step == 0) {
        if (wraps && count < 3) return -1;  // the same cell as the one after, or as home
        return cell >= 0 ? cell : (wraps ? count - 1 : -1);
    }
    if (step == 2) return cell < count ? cell : (wraps && count > 1 ? 0 : -1);
    return home;
}

// Number of the first cell of row `step` (0 .. 8 in 3D, 0 .. 2 in 2D) of those around a cell; negative if absent.
#define NEIGHBOUR_ROWS (DIM == 3 ? 9 : 3)
__device__ __forceinline__ int neighbour_row(const Grid& grid, const int3& home, int step) {
    int y = axis_neighbour(grid, 1, home.y, step % 3);
    int z = DIM == 3 ? axis_neighbour(grid, 2, home.z, step / 3) : 0;
    return y < 0 || z < 0 ? -1 : grid.cells[0] * (y + grid.cells[1] * z);
}

// Whether a cell is at no side of the box, so that no pair from it crosses a periodic side.
__device__ __forceinline__ bool is_interior(const Grid& grid, const int3& cell) {
    bool inside = cell.x > 0 && cell.x < grid.cells[0] - 1 && cell.y > 0 && cell.y < grid.cells[1] - 1;
    return inside && (DIM == 2 || (cell.z > 0 && cell.z < grid.cells[2] - 1));
}

// a - b: plain for particles of an interior cell, else between the nearest images.
template <bool INTERIOR>
__device__ __forceinline__ Vec separation(const Grid& grid, const Vec& a, const Vec& b) {
    return INTERIOR ? sub(a, b) : displacement(grid, a, b);
}
