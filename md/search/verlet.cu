// Neighbour lists; see verlet.py.

extern "C" __global__ void farthest(int n, const real* pos, const real* anchor, Grid grid, double* most) {
    int i = work_item();
    double found = 0;
    if (i < n) {
        Vec dr = displacement(grid, load(pos, n, i), load(anchor, n, i));
        found = dot(dr, dr);
    }
    // Numbers that are not negative are ordered as their bits are, and NaN stands above them all.
    unsigned long long bits = __double_as_longlong(found);
#pragma unroll
    for (int apart = 16; apart; apart /= 2) bits = max(bits, __shfl_xor_sync(~0u, bits, apart));
    unsigned long long* word = (unsigned long long*)most;
    if (threadIdx.x % 32 == 0 && bits > *(volatile unsigned long long*)word) atomicMax(word, bits);
}

// Calls visit(j) for every particle within reach in cells that follow one another along axis 0. Where they do so in
// memory too, their particles are one stretch.
template <bool SHIFTED, typename Visit>
__device__ __forceinline__ void look(int n, int cell, int last, const real* pos, const int* start, const int* rank,
                                     const Grid& grid, real reach2, const Vec& seen, Visit visit) {
    do {
        int place = rank[cell];
        int j = start[place];
        while (++cell <= last && rank[cell] == place + 1) ++place;
#pragma unroll 1
        for (int end = start[place + 1]; j < end; ++j) {
            Vec dr = separation<SHIFTED>(grid, seen, load(pos, n, j));
            if (dot(dr, dr) < reach2) visit(j);
        }
    } while (cell <= last);
}

// A cell past the end of an axis is one at its other end, from which the particle is seen a box length away. Returns
// false where there is none.
__device__ __forceinline__ bool beside(const Grid& grid, int axis, int& cell, Vec& seen) {
    int count = grid.cells[axis];
    if (cell >= 0 && cell < count) return true;
    seen.x[axis] += cell < 0 ? grid.length[axis] : -grid.length[axis];
    cell += cell < 0 ? count : -count;
    return grid.periodic[axis] != 0;
}

// Calls visit(j) for every particle within reach, the particle itself included. SHIFTED: there are three cells or more
// along every periodic axis, so that each is seen from one side only.
template <bool SHIFTED, typename Visit>
__device__ __forceinline__ void for_each_near(int n, const real* pos, const int* start, const int* rank,
                                              const Grid& grid, real reach2, const Vec& ri, const int3& home,
                                              Visit visit) {
#pragma unroll 1
    for (int b = 0; b < NEIGHBOUR_ROWS; ++b) {
        Vec seen = ri;
        if (SHIFTED) {
            int y = home.y + b % 3 - 1, z = DIM == 3 ? home.z + b / 3 - 1 : 0;
            if (!beside(grid, 1, y, seen)) continue;
            if (DIM == 3 && !beside(grid, DIM - 1, z, seen)) continue;
            int row = grid.cells[0] * (y + grid.cells[1] * z);
            int before = max(home.x - 1, 0), after = min(home.x + 1, grid.cells[0] - 1);
            look<true>(n, row + before, row + after, pos, start, rank, grid, reach2, seen, visit);
            int x = home.x == 0 ? -1 : home.x + 1;
            if ((x < 0 || x == grid.cells[0]) && beside(grid, 0, x, seen)) {
                look<true>(n, row + x, row + x, pos, start, rank, grid, reach2, seen, visit);
            }
        } else {
            int row = neighbour_row(grid, home, b);
            for (int a = 0; row >= 0 && a < 3; ++a) {
                int x = axis_neighbour(grid, 0, home.x, a);
                if (x >= 0) look<false>(n, row + x, row + x, pos, start, rank, grid, reach2, seen, visit);
            }
        }
    }
}

#define NOTED 12  // partners that a thread notes at the first look; with more it looks again

// A warp takes one stretch of `partners` for all its lists. Which one depends on the order of the warps, what a list
// holds does not.
template <bool SHIFTED>
__device__ __forceinline__ void enlist_warp(int n, int i, const real* pos, const int* start, const int* rank,
                                            const Grid& grid, real reach2, const Vec& ri, const int3& home, int* first,
                                            int* count, int* partners, long long room, unsigned long long* needed,
                                            unsigned long long* fastest, int (*noted)[256]) {
    int found = 0;
    if (i < n) {
        for_each_near<SHIFTED>(n, pos, start, rank, grid, reach2, ri, home, [&](int j) {
            if (j == i) return;
            if (found < NOTED) noted[found][threadIdx.x] = j;
            ++found;
        });
    }
    int lane = threadIdx.x % 32, upto = found;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        int before = __shfl_up_sync(~0u, upto, apart);
        if (lane >= apart) upto += before;
    }
    long long own = 0;
    if (lane == 31) own = atomicAdd(needed, (unsigned long long)upto);
    own = __shfl_sync(~0u, own, 31) + upto - found;
    if (i >= n) return;
    bool fits = own + found <= room;
    if (!fits) {  // no step is taken, and the host sees in `needed` how much room to make
        fastest[0] = fastest[1] = 0x7f800000;  // an infinite speed
    }
    first[i] = fits ? (int)own : 0;
    count[i] = fits ? found : 0;
    if (!fits) return;
    int* place = partners + own;
    if (found <= NOTED) {
        for (int k = 0; k < found; ++k) place[k] = noted[k][threadIdx.x];
    } else {
        for_each_near<SHIFTED>(n, pos, start, rank, grid, reach2, ri, home, [&](int j) {
            if (j != i) *place++ = j;
        });
    }
}

extern "C" __global__ void CROWDED enlist(int n, const real* pos, const int* start, const int* rank, Grid grid,
                                          real reach2, real* anchor, int* first, int* count, int* partners, long long room,
                                  long long* needed, unsigned long long* fastest, int parts) {
    int i = work_item();
    Vec ri = load(pos, n, min(i, n - 1));
    int3 home = home_cell(grid, ri);
    if (i < n) store(anchor, n, i, ri);
    auto total = (unsigned long long*)needed;
    __shared__ int noted[NOTED][256];
    bool shifted = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) shifted = shifted && (!grid.periodic[axis] || grid.cells[axis] >= 3);
    if (shifted) {
        enlist_warp<true>(n, i, pos, start, rank, grid, reach2, ri, home, first, count, partners, room, total, fastest,
                          noted);
    } else {
        enlist_warp<false>(n, i, pos, start, rank, grid, reach2, ri, home, first, count, partners, room, total, fastest,
                           noted);
    }
}

template <bool INTERIOR>
__device__ __forceinline__ Vec fold(int n, int i, const real* pos, const real* vel, const int* list, int count,
                                    const Grid& grid, const Law& law, const Vec& ri, const Vec& vi, Vec acc) {
#pragma unroll 2
    for (int k = 0; k < count; ++k) {
        int j = list[k];
        Vec dr = separation<INTERIOR>(grid, ri, load(pos, n, j));
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
    return acc;
}

extern "C" __global__ void CROWDED force(int n, const real* pos, const real* vel, const int* first, const int* count,
                                 const int* partners, Grid grid, Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i), acc = zero();
    const int* list = partners + first[i];
    // A particle of the inner cells meets nobody across the box's sides; a warp takes one path.
    if (__all_sync(__activemask(), is_interior(grid, home_cell(grid, ri)))) {
        acc = fold<true>(n, i, pos, vel, list, count[i], grid, law, ri, vi, acc);
    } else {
        acc = fold<false>(n, i, pos, vel, list, count[i], grid, law, ri, vi, acc);
    }
    finish(out, grid, n, i, ri, vi, acc);
}
