// Particles sorted by cell; see coherent.py.

#include "md/particles/cell_rows.cuh"
#include "md/particles/cells_around.cuh"
#include "md/search/packed_lists.cuh"

#define MOST_RANGES 12  // that a thread lists before it visits their particles

// Ranges of particles in shared memory, which a thread lists and then visits.
struct ListedRanges {
    int2* at;  // the next to be listed or to be visited
    int particles, k, end;  // particles listed; the next particle of the present range, and its end

    __device__ __forceinline__ explicit ListedRanges(int2* column) : at(column), particles(0), k(0), end(0) {}

    // Lists a range unless it is empty. There is no branch.
    __device__ __forceinline__ void add(int from, int to) {
        *at = make_int2(from, to);
        at += from < to ? BLOCK_THREADS : 0;
        particles += to - from;
    }

    // Lists the ranges of three times `width` cells. A negative cell is none.
    __device__ __forceinline__ void add_three(const int* start, const int (&cells)[3], int width) {
        int from[3], to[3];  // all loaded at the same time
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            from[k] = to[k] = 0;
            if (cells[k] >= 0) from[k] = start[cells[k]], to[k] = start[cells[k] + width];
        }
#pragma unroll
        for (int k = 0; k < 3; ++k) add(from[k], to[k]);
    }

    // Begins to visit the particles listed. After the last one comes particle `i`.
    __device__ __forceinline__ void begin(int2* column, int i) {
        *at = make_int2(i, i + 1);
        at = column;
    }

    __device__ __forceinline__ int next() {
        if (k == end) {
            int2 range = *at;
            at += BLOCK_THREADS;
            k = range.x;
            end = range.y;
        }
        return k++;
    }
};

// Each thread lists the ranges of particles in the cells around its own, and then visits the particles in one loop: the lanes
// of a warp wait for the largest sum of particles, not for the most particles in each row or cell.
extern "C" __global__ void BLOCKS(12) force(int n, const real* pos, const velocity* vel, const int* start,
                                                 const int* rank, Grid grid, Law law, Out out) {
    __shared__ int2 listed[MOST_RANGES + 1][BLOCK_THREADS];
    int2* column = listed[0] + threadIdx.x;
    int i = (gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x;  // the sort before wrote the last rows last
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    int3 home = home_cell(grid, ri);
    CellsAround around(grid, home);
    int layer = 0;
    do {
        ListedRanges ranges(column);
        do {
            int cells_before = cells_before_layer(grid, home, layer);
            if (cells_before < 0) continue;
            if (rank) {
#pragma unroll 1
                for (int step = 0; step < 3; ++step) {
                    int cell = around.first_of(step, cells_before), cells[3];
                    if (cell < 0) continue;
#pragma unroll
                    for (int k = 0; k < 3; ++k) {
                        int apart = k < around.width ? k : around.beyond;
                        cells[k] = k == 0 || apart ? rank[cell + apart] : ABSENT;
                    }
                    ranges.add_three(start, cells, 1);
                }
            } else {
                int cells[3];
#pragma unroll
                for (int step = 0; step < 3; ++step) cells[step] = around.first_of(step, cells_before);
                ranges.add_three(start, cells, around.width);
                if (around.beyond) ranges.add_three(start + around.beyond, cells, 1);
            }
        } while (++layer < LAYERS && ranges.at <= listed[MOST_RANGES - (rank ? 9 : 6)] + threadIdx.x);
        ranges.begin(column, i);
        for (int left = ranges.particles; left > 0; left -= 2) {
            int partner[2] = {ranges.next(), ranges.next()};
            Vec dr[2];
            real r2[2];
            separate<2>(grid, n, pos, ri, partner, dr, r2);
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                if (partner[b] != i) acc = interact(law, vel, n, i, partner[b], r2[b], dr[b], vi, acc);
            }
        }
    } while (layer < LAYERS);
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}

extern "C" __global__ void force_rows(int n, const real* pos, const velocity* vel, const int* start, const int* rank,
                                      int division, real reach, real keep2, int parts, Grid grid, Law law,
                                      Out out) {
    __shared__ int2 listed[LISTED][LISTING];
    int i = work_item();
    if (i >= n) return;
    Vec ri, vi;
    load_row(pos, vel, n, i, ri, vi);
    auto acc = initial(law, ri);
    auto add = [&](int j, const Vec& dr) {
        if (j != i) acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    };
    if (__all_sync(__activemask(), is_away(grid, home_cell(grid, ri), division))) {  // a warp takes one path
        visit_rows<true>(listed, grid, division, reach, n, pos, ri, start, rank, nullptr, add);
    } else {
        visit_rows<false>(listed, grid, division, reach, n, pos, ri, start, rank, nullptr, add);
    }
    finish(out, grid, n, i, ri, vi, result(law, ri, vi, acc));
}
