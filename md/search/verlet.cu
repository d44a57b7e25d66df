// Neighbour lists; see verlet.py.

#include "md/search/lists/fours.cuh"
#include "md/backend/warp.cuh"

extern "C" __global__ void farthest(int n, const real* pos, const real* reference_pos, Grid grid, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec dr = displacement(grid, load(pos, n, i), load(reference_pos, n, i));
        found = dot(dr, dr);
    }
    raise_to_largest((unsigned long long*)most, as_word(found));
}

// Raises the largest square of a speed.
extern "C" __global__ void fastest(int n, const velocity* vel, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec v = load(vel, n, i);
        found = dot(v, v);
    }
    raise_to_largest((unsigned long long*)most, as_word(found));
}

// Calls visit(j) for every particle within reach in consecutive cells along axis 0. Cells that are consecutive in
// memory too, as all are without a rank, are one range of particles.
template <bool SHIFTED, typename Visit>
__device__ __forceinline__ void visit_cells(int n, int cell, int last, const real* pos, const int* start,
                                            const int* rank, const Grid& grid, real reach2, const Vec& seen,
                                            Visit visit) {
    do {
        int place = rank ? rank[cell] : cell, from = start[place];
        if (rank) {
            while (++cell <= last && rank[cell] == place + 1) ++place;
        } else {
            place = last;
            cell = last + 1;
        }
        int end = start[place + 1];
#pragma unroll 1
        for (int j = from; j < end; ++j) {
            Vec dr = separation<SHIFTED>(grid, seen, load(pos, n, j));
            if (dot(dr, dr) < reach2) visit(j);
        }
    } while (cell <= last);
}

// Wraps the number of a cell past the end of an axis, and shifts the position of the particle by a box length to match.
// Returns false if the axis is not periodic.
__device__ __forceinline__ bool wrap_cell(const Grid& grid, int axis, int& cell, Vec& seen) {
    int count = grid.cells[axis];
    if (cell >= 0 && cell < count) return true;
    seen.x[axis] += cell < 0 ? grid.length[axis] : -grid.length[axis];
    cell += cell < 0 ? count : -count;
    return grid.periodic[axis] != 0;
}

// Calls visit(j) for every particle within reach, the particle itself included. SHIFTED: there are three cells or more
// along every periodic axis, so that each cell is a neighbour from one side only.
template <bool SHIFTED, typename Visit>
__device__ __forceinline__ void for_each_near(int n, const real* pos, const int* start, const int* rank,
                                              const Grid& grid, real reach2, const Vec& ri, const int3& home,
                                              Visit visit) {
#pragma unroll 1
    for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
        Vec seen = ri;
        if (SHIFTED) {
            int y = home.y + b % 3 - 1, z = DIM == 3 ? home.z + b / 3 - 1 : 0;
            if (!wrap_cell(grid, 1, y, seen)) continue;
            if (DIM == 3 && !wrap_cell(grid, DIM - 1, z, seen)) continue;
            int row = grid.cells[0] * (y + grid.cells[1] * z);
            int before = max(home.x - 1, 0), after = min(home.x + 1, grid.cells[0] - 1);
            visit_cells<true>(n, row + before, row + after, pos, start, rank, grid, reach2, seen, visit);
            int x = home.x == 0 ? -1 : home.x + 1;
            if ((x < 0 || x == grid.cells[0]) && wrap_cell(grid, 0, x, seen)) {
                visit_cells<true>(n, row + x, row + x, pos, start, rank, grid, reach2, seen, visit);
            }
        } else {
            int row = neighbour_row(grid, home, b);
            for (int a = 0; row >= 0 && a < 3; ++a) {
                int x = axis_neighbour(grid, 0, home.x, a);
                if (x >= 0) visit_cells<false>(n, row + x, row + x, pos, start, rank, grid, reach2, seen, visit);
            }
        }
    }
}

// Calls visit(j) for every particle within reach, the particle itself included.
template <typename Visit>
__device__ __forceinline__ void for_each_near(int n, int i, const real* pos, const int* start, const int* rank,
                                              const Grid& grid, real reach2, Visit visit) {
    Vec ri = load(pos, n, i);
    int3 home = home_cell(grid, ri);
    bool shifted = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) shifted = shifted && (!grid.periodic[axis] || grid.cells[axis] >= 3);
    if (shifted) {
        for_each_near<true>(n, pos, start, rank, grid, reach2, ri, home, visit);
    } else {
        for_each_near<false>(n, pos, start, rank, grid, reach2, ri, home, visit);
    }
}

// Searches again for the partners of a particle that has too many for shared memory, and writes its list.
__device__ __noinline__ bool write_crowded(int n, int i, const real* pos, const int* start, const int* rank,
                                           Grid grid, real reach2, int* partners, int rows, long long room,
                                           long long* needed) {
    ListWriter writer(n, i, rows, partners);
    for_each_near(n, i, pos, start, rank, grid, reach2, [&](int j) {
        if (j != i) writer.add(j, room, needed);
    });
    return writer.end();
}

#define INFINITELY_FAR __int_as_float(0x7f800000)

extern "C" __global__ void BLOCKS(8) build_lists(int n, const real* pos, const int* start, const int* rank, Grid grid,
                                          real reach2, real* reference_pos, int* first, int* count, int* partners,
                                          int rows, long long room, long long* needed, float* travelled, int parts) {
    __shared__ int kept[COLUMN][256];
    int i = work_item();
    if (i >= n) return;
    if (reference_pos) store(reference_pos, n, i, load(pos, n, i));
    ListColumn list = {kept, 0};
    for_each_near(n, i, pos, start, rank, grid, reach2, [&](int j) {
        if (j != i) list.add(j);
    });
    bool is_short = list.is_whole() ? list.write(n, i, rows, partners, room, needed)
                                    : write_crowded(n, i, pos, start, rank, grid, reach2, partners, rows, room, needed);
    if (is_short) travelled[0] = travelled[1] = INFINITELY_FAR;  // halts all steps
}

extern "C" __global__ void HALF_BLOCKS(12) force(int n, const real* pos, const velocity* vel, const int* first, const int* count,
                                      const int* partners, int rows, Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    for_each_listed<true>(n, i, pos, partners, rows, grid, ri, [&](int j, real r2, const Vec& dr) {
        acc = interact(law, vel, n, i, j, r2, dr, vi, acc);
    });
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
