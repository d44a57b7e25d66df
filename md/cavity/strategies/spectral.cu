// Many steps of a small cavity in one launch of one block; the sweeps of a step are four products of matrices.
//
// Contract. The constants INNER_X, INNER_Y (points inside the boundary) GROUPS and POINTS are defined. With X and Y the orthonormal
// bases along x and y (a row a mode), the transform of a field f is Y f X^T. All sweeps of a step together multiply the
// transform of the pressure by `decay`, and add `gain` times that of the right-hand side. Matrices are padded by zeros to
// multiples of 8 rows and columns. In each product a warp has 8 rows or columns of a basis, in registers if they are few,
// and of the tiles of the result that need them every GROUPS-th. A thread has POINTS points of a column.
#include "../scheme.cuh"
#include "double_cores.cuh"

#define BLOCKS_X ((INNER_X + 7) / 8)
#define BLOCKS_Y ((INNER_Y + 7) / 8)
#define PADDED_X (8 * BLOCKS_X)
#define PADDED_Y (8 * BLOCKS_Y)
#define STRIDE_X (PADDED_X + 4)  // of rows in shared memory: with 4 more, the lanes of a load are in different banks
#define STRIDE_Y (PADDED_Y + 4)
#define TILES_X ((BLOCKS_X + GROUPS - 1) / GROUPS)
#define TILES_Y ((BLOCKS_Y + GROUPS - 1) / GROUPS)
#define ROW (INNER_X + 2)
#define ALL ((INNER_Y + 2) * ROW)
#ifndef KEPT
#define KEPT (PADDED_X <= 40 && PADDED_Y <= 40)  // whether the bases stay in registers
#endif

struct Shared {
    double *basis_x, *basis_y, *first, *second;  // first, second: (PADDED_Y, STRIDE_X) operands and results in turns
    number *u, *v, *ut, *vt;                     // (INNER_Y + 2, ROW) velocities and tentative velocities
    __device__ __forceinline__ Shared(double* memory) {
        basis_x = memory, basis_y = basis_x + PADDED_X * STRIDE_X, first = basis_y + PADDED_Y * STRIDE_Y;
        second = first + PADDED_Y * STRIDE_X, u = (number*)(second + PADDED_Y * STRIDE_X);
        v = u + ALL, ut = v + ALL, vt = ut + ALL;
    }
};

// Part of a thread in products on tensor cores.
struct Lane {
    int major, minor, block, group;  // block: 8 rows or columns of a basis; group: the first tile
    __device__ __forceinline__ Lane() {
        int warp = threadIdx.x / 32;
        major = threadIdx.x % 32 / 4, minor = threadIdx.x % 4, block = warp / GROUPS;
        group = (warp + block / 2) % GROUPS;  // so that warps with more tiles are spread
    }
};

// What a lane needs of a basis as one operand: rows (or columns, if turned) of block `block`.
template <int STEPS, bool IS_TURNED> struct Operand {
    double entry[STEPS];
    __device__ __forceinline__ void load(const double* basis, int stride, const Lane& lane) {
        int own = 8 * lane.block + lane.major;
        if (8 * lane.block >= 4 * STEPS) return;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            int other = 4 * k + lane.minor;
            entry[k] = IS_TURNED ? basis[other * stride + own] : basis[own * stride + other];
        }
    }
};

struct Bases {
    Operand<PADDED_X / 4, false> to_modes_x;
    Operand<PADDED_X / 4, true> from_modes_x;
    Operand<PADDED_Y / 4, false> to_modes_y;
    Operand<PADDED_Y / 4, true> from_modes_y;
};

// Rows of `data` times a basis along x, or its transpose. Calls store(row, column, value, value of the next column).
template <class Basis, class Store>
__device__ __forceinline__ void multiply_x(const double* data, const Basis& basis, const Lane& lane, Store store) {
    if (lane.block >= BLOCKS_X) return;
#pragma unroll
    for (int tile = 0; tile < TILES_Y; ++tile) {
        int row = 8 * (lane.group + tile * GROUPS) + lane.major;
        if (row >= PADDED_Y) continue;
        double sums[2][2] = {};
#pragma unroll
        for (int k = 0; k < PADDED_X / 4; ++k) {
            add_product(sums[k % 2], data[row * STRIDE_X + 4 * k + lane.minor], basis.entry[k]);
        }
        store(row, 8 * lane.block + 2 * lane.minor, sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]);
    }
}

// A basis along y, or its transpose, times `data`. Calls store(tile, row, column, value, value of the next column).
template <class Basis, class Store>
__device__ __forceinline__ void multiply_y(const double* data, const Basis& basis, const Lane& lane, Store store) {
    if (lane.block >= BLOCKS_Y) return;
#pragma unroll
    for (int tile = 0; tile < TILES_X; ++tile) {
        int column = 8 * (lane.group + tile * GROUPS);
        if (column >= PADDED_X) continue;
        double sums[2][2] = {};
#pragma unroll
        for (int k = 0; k < PADDED_Y / 4; ++k) {
            add_product(sums[k % 2], basis.entry[k], data[(4 * k + lane.minor) * STRIDE_X + column + lane.major]);
        }
        store(tile, 8 * lane.block + lane.major, column + 2 * lane.minor, sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]);
    }
}

// The modes of a lane: those of its entries in products with the basis along y.
struct Modes {
    double pressure[TILES_X][2], decay[TILES_X][2], gain[TILES_X][2];
};

// The points of a thread, and their velocities.
struct Points {
    int x, y, count;  // of the first point, from the first inside
    number u[POINTS], v[POINTS];
    __device__ __forceinline__ Points() {
        x = threadIdx.x % INNER_X, y = threadIdx.x / INNER_X * POINTS;
        count = max(0, min(POINTS, INNER_Y - y));
    }
    __device__ __forceinline__ int place(int r) const { return (y + r + 1) * ROW + x + 1; }
};

// Values of a field at the points of a thread, and at those below and above.
struct Column {
    const number (&own)[POINTS];
    int count;
    number below, above;
    __device__ __forceinline__ Column(const number* field, const Points& points, const number (&own)[POINTS])
        : own(own), count(points.count), below(field[points.place(-1)]), above(field[points.place(points.count)]) {}
    __device__ __forceinline__ number south(int r) const { return r ? own[r ? r - 1 : 0] : below; }
    __device__ __forceinline__ number north(int r) const {
        return r + 1 < POINTS && r + 1 < count ? own[r + 1 < POINTS ? r + 1 : r] : above;
    }
};

// Stores the tentative velocities; those of the thread stay in `tentative_v`.
__device__ __forceinline__ void tentative(const Shared& shared, const Points& points, number (&tentative_v)[POINTS],
                                          const Factors& factors) {
    if (points.count == 0) return;
    Column u(shared.u, points, points.u), v(shared.v, points, points.v);
#pragma unroll
    for (int r = 0; r < POINTS; ++r) {
        if (r >= points.count) continue;
        int place = points.place(r);
        Cross of_u = {u.own[r], shared.u[place - 1], shared.u[place + 1], u.south(r), u.north(r)};
        Cross of_v = {v.own[r], shared.v[place - 1], shared.v[place + 1], v.south(r), v.north(r)};
        shared.ut[place] = u.own[r] + change(of_u, u.own[r], v.own[r], factors);
        shared.vt[place] = tentative_v[r] = v.own[r] + change(of_v, u.own[r], v.own[r], factors);
    }
}

// Stores a quarter of the right-hand side, with its sign turned, in the first matrix.
__device__ __forceinline__ void find_source(const Shared& shared, const Points& points, const number (&tentative_v)[POINTS],
                                            const Factors& factors) {
    number factor = -factors.quarter * factors.source;
    if (points.count == 0) return;
    Column v(shared.vt, points, tentative_v);
#pragma unroll
    for (int r = 0; r < POINTS; ++r) {
        if (r >= points.count) continue;
        const number* at = shared.ut + points.place(r);
        shared.first[(points.y + r) * STRIDE_X + points.x] = factor * ((at[1] - at[-1]) + (v.north(r) - v.south(r)));
    }
}

// All sweeps of a step: from the right-hand side in the first matrix to the pressure there.
__device__ __forceinline__ void solve_pressure(const Shared& shared, Bases& bases, Modes& modes, const Lane& lane) {
    auto to_second = [&](int row, int column, double value, double next) {
        double* to = shared.second + row * STRIDE_X + column;
        to[0] = value, to[1] = next;
    };
    if (!KEPT) bases.to_modes_x.load(shared.basis_x, STRIDE_X, lane);
    multiply_x(shared.first, bases.to_modes_x, lane, to_second);
    __syncthreads();
    if (!KEPT) bases.to_modes_y.load(shared.basis_y, STRIDE_Y, lane);
    multiply_y(shared.second, bases.to_modes_y, lane, [&](int tile, int row, int column, double value, double next) {
        double *to = shared.first + row * STRIDE_X + column, added[2] = {value, next};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            modes.pressure[tile][i] = modes.decay[tile][i] * modes.pressure[tile][i] + modes.gain[tile][i] * added[i];
            to[i] = modes.pressure[tile][i];
        }
    });
    __syncthreads();
    if (!KEPT) bases.from_modes_y.load(shared.basis_y, STRIDE_Y, lane);
    multiply_y(shared.first, bases.from_modes_y, lane,
               [&](int, int row, int column, double value, double next) { to_second(row, column, value, next); });
    __syncthreads();
    if (!KEPT) bases.from_modes_x.load(shared.basis_x, STRIDE_X, lane);
    multiply_x(shared.second, bases.from_modes_x, lane, [&](int row, int column, double value, double next) {
        double* to = shared.first + row * STRIDE_X + column;
        to[0] = value, to[1] = next;
    });
    __syncthreads();
}

// Pressure at a point inside or on the boundary, numbered from the first inside.
__device__ __forceinline__ double pressure_at(const double* p, int x, int y) {
    return y == INNER_Y ? 0 : p[max(y, 0) * STRIDE_X + min(max(x, 0), INNER_X - 1)];
}

// Subtracts the gradient of the pressure from the tentative velocities. Returns whether those of the thread are finite.
__device__ __forceinline__ bool correct(const Shared& shared, Points& points, const number (&tentative_v)[POINTS],
                                        const Factors& factors) {
    bool finite = true;
    if (points.count == 0) return finite;
    double below = pressure_at(shared.first, points.x, points.y - 1), own = pressure_at(shared.first, points.x, points.y);
#pragma unroll
    for (int r = 0; r < POINTS; ++r) {
        if (r >= points.count) continue;
        int place = points.place(r), y = points.y + r;
        double above = pressure_at(shared.first, points.x, y + 1);
        double along_x = pressure_at(shared.first, points.x + 1, y) - pressure_at(shared.first, points.x - 1, y);
        points.u[r] = shared.ut[place] - factors.gradient * (number)along_x;
        points.v[r] = tentative_v[r] - factors.gradient * (number)(above - below);
        finite &= isfinite(points.u[r]) && isfinite(points.v[r]);
        shared.u[place] = points.u[r], shared.v[place] = points.v[r];
        below = own, own = above;
    }
    return finite;
}

// Calls visit(index in the arrays, column, row) for all points on the boundary and inside.
template <class Visit> __device__ __forceinline__ void for_each_point(Visit visit) {
    for (int k = threadIdx.x; k < ALL; k += RESIDENT_THREADS) visit(k, k % ROW - 1, k / ROW - 1);
}

// Calls visit(tile, entry, index in the padded matrices) for the modes of a lane.
template <class Visit> __device__ __forceinline__ void for_each_mode(const Lane& lane, Visit visit) {
#pragma unroll
    for (int k = 0; k < 2 * TILES_X; ++k) {
        int row = 8 * lane.block + lane.major, column = 8 * (lane.group + k / 2 * GROUPS) + 2 * lane.minor + k % 2;
        if (row < PADDED_Y && column < PADDED_X) visit(k / 2, k % 2, row * PADDED_X + column);
    }
}

__device__ __forceinline__ void load_fields(const Shared& shared, const Fields& fields) {
    for (int k = threadIdx.x; k < PADDED_X * PADDED_X; k += RESIDENT_THREADS) {
        shared.basis_x[k / PADDED_X * STRIDE_X + k % PADDED_X] = fields.basis_x[k];
    }
    for (int k = threadIdx.x; k < PADDED_Y * PADDED_Y; k += RESIDENT_THREADS) {
        shared.basis_y[k / PADDED_Y * STRIDE_Y + k % PADDED_Y] = fields.basis_y[k];
    }
    for (int k = threadIdx.x; k < PADDED_Y * STRIDE_X; k += RESIDENT_THREADS) shared.first[k] = shared.second[k] = 0;
    for_each_point([&](int k, int, int) {
        shared.u[k] = shared.ut[k] = fields.u[k], shared.v[k] = shared.vt[k] = fields.v[k];
    });
    __syncthreads();
}

__device__ __forceinline__ void set_boundary(const Shared& shared, number lid) {
    for_each_point([&](int k, int x, int y) {
        bool side = x < 0 || x == INNER_X;
        if (!side && y >= 0 && y < INNER_Y) return;
        shared.u[k] = shared.ut[k] = y == INNER_Y && !side ? lid : 0, shared.v[k] = shared.vt[k] = 0;
    });
}

extern "C" __global__ void RESIDENT advance(int n, int bytes, int steps, Fields fields, Factors factors, int* status) {
    extern __shared__ uint4 memory[];
    Shared shared((double*)memory);
    Lane lane;
    Bases bases;
    Modes modes;
    Points points;
    number tentative_v[POINTS];
    load_fields(shared, fields);
    for_each_mode(lane, [&](int tile, int i, int k) {
        modes.pressure[tile][i] = fields.transform[k];
        modes.decay[tile][i] = fields.decay[k], modes.gain[tile][i] = fields.gain[k];
    });
#pragma unroll
    for (int r = 0; r < POINTS; ++r) {
        if (r < points.count) points.u[r] = shared.u[points.place(r)], points.v[r] = shared.v[points.place(r)];
    }
    if (KEPT) {
        bases.to_modes_x.load(shared.basis_x, STRIDE_X, lane), bases.from_modes_x.load(shared.basis_x, STRIDE_X, lane);
        bases.to_modes_y.load(shared.basis_y, STRIDE_Y, lane), bases.from_modes_y.load(shared.basis_y, STRIDE_Y, lane);
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        tentative(shared, points, tentative_v, factors);
        __syncthreads();
        find_source(shared, points, tentative_v, factors);
        __syncthreads();
        solve_pressure(shared, bases, modes, lane);
        if (!correct(shared, points, tentative_v, factors)) atomicMin(status, step + 1);
        if (step == 0) set_boundary(shared, fields.lid);
        __syncthreads();
    }
    for_each_point([&](int k, int x, int y) {
        fields.u[k] = shared.u[k], fields.v[k] = shared.v[k];
        fields.p[k] = (number)pressure_at(shared.first, x, y);
    });
    for_each_mode(lane, [&](int tile, int i, int k) { fields.transform[k] = modes.pressure[tile][i]; });
}
