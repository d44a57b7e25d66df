// Neighbour lists; see verlet.py.
//
// On a device lists are in fours of entries, which are interleaved: four g of particle i, below `rows` of them, is the four
// at g * n + i. Longer lists go on in a pool of fours behind these. Unused entries are the particle itself. The last entry of
// a four is stored as ~j if another four follows in the next row. The last entry of a four in the last row, or in the pool, is ~p
// if the four number p of the pool follows, and is no partner then.

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

// Calls visit(j) for every particle within reach in consecutive cells along axis 0. Cells that are consecutive in
// memory too, as all are without a rank, are one range of particles. Particles within reach are first marked in a bit
// mask, so that a warp diverges for these only.
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
        while (from < end) {
            unsigned near = 0, bit = 1;
#pragma unroll 1
            for (int j = from; bit && j < end; ++j, bit += bit) {
                Vec dr = separation<SHIFTED>(grid, seen, load(pos, n, j));
                if (dot(dr, dr) < reach2) near |= bit;
            }
            for (; near; near &= near - 1) visit(from + __ffs(near) - 1);
            from += 32;
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

#define INFINITELY_FAR __int_as_float(0x7f800000)

// The list of a particle while it is written.
struct List {
    int n, i, rows;
    int4 *at, *pool;  // the next four to be written, or null if there is no room for it
    int4 four;        // its entries, of which the last `count` are partners
    int row, count;
    bool is_short;

    __device__ __forceinline__ void add(int j, long long room, long long* needed) {
        if (count == 4) next(room, needed);
        four = make_int4(four.y, four.z, four.w, j);
        ++count;
    }

    __device__ __forceinline__ void next(long long room, long long* needed) {
        count = 0;
        if (++row < rows) {
            *at = make_int4(four.x, four.y, four.z, ~four.w);
            at += n;
            four = make_int4(i, i, i, i);
            return;
        }
        long long place = atomicAdd((unsigned long long*)needed, 1ull);
        bool fits = place < room;
        if (at) *at = make_int4(four.x, four.y, four.z, fits ? ~(int)place : four.w);
        at = fits && at ? pool + place : nullptr;
        if (!fits) is_short = true;
        four = make_int4(i, i, i, four.w);
        count = 1;
    }
};

extern "C" __global__ void BLOCKS(8) build_lists(int n, const real* pos, const int* start, const int* rank, Grid grid,
                                          real reach2, real* reference_pos, int* first, int* count, int* partners,
                                          int rows, long long room, long long* needed, float* travelled, int parts) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i);
    int3 home = home_cell(grid, ri);
    if (reference_pos) store(reference_pos, n, i, ri);
    bool shifted = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) shifted = shifted && (!grid.periodic[axis] || grid.cells[axis] >= 3);
    int4* fours = (int4*)partners;
    List list = {n, i, rows, fours + i, fours + (size_t)rows * n, make_int4(i, i, i, i), 0, 0, false};
    auto visit = [&](int j) {
        if (j != i) list.add(j, room, needed);
    };
    if (shifted) {
        for_each_near<true>(n, pos, start, rank, grid, reach2, ri, home, visit);
    } else {
        for_each_near<false>(n, pos, start, rank, grid, reach2, ri, home, visit);
    }
    if (list.at) *list.at = list.four;
    if (list.is_short) travelled[0] = travelled[1] = INFINITELY_FAR;  // halts all steps
}

extern "C" __global__ void BLOCKS(6) force(int n, const real* pos, const velocity* vel, const int* first, const int* count,
                                      const int* partners, int rows, Grid grid, Law law, Out out) {
    int i = block_of(out) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    unsigned at = i, last_row = (unsigned)(rows - 1) * n;  // of the fours
    bool more;
    do {
        int4 four = ((const int4*)partners)[at];
        more = four.w < 0;
        int last = more ? ~four.w : four.w;
        bool is_linked = more && at >= last_row;
        at = is_linked ? last_row + n + last : at + n;
        int partner[4] = {four.x, four.y, four.z, is_linked ? i : last};
        // Two at a time: more would need more registers, so that fewer threads could hide the latency of memory.
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            Vec rj[2] = {load(pos, n, partner[k]), load(pos, n, partner[k + 1])};
            real r2[2];
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                rj[b] = sub(ri, rj[b]);
                r2[b] = dot(rj[b], rj[b]);
            }
            if (__builtin_expect(max(r2[0], r2[1]) >= grid.nearest2, 0)) {
#pragma unroll
                for (int b = 0; b < 2; ++b) {
                    rj[b] = nearest_image(grid, rj[b]);
                    r2[b] = dot(rj[b], rj[b]);
                }
            }
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                if (partner[k + b] != i) acc = interact(law, vel, n, i, partner[k + b], r2[b], rj[b], vi, acc);
            }
        }
    } while (more);
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
