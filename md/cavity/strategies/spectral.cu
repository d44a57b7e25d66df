// Many steps of a small cavity in one launch of one block; the sweeps of a step are four products of matrices.
//
// Contract. The constants INNER_X, INNER_Y (points inside the boundary) and POINTS are defined. With X and Y the orthonormal
// bases along x and y (a row a mode), the transform of a field f is Y f X^T. All sweeps of a step together multiply the
// transform of the pressure by `decay`, and add `gain` times that of the right-hand side. Matrices are padded by zeros to
// multiples of 8 rows and columns. Of each product a warp has 16 rows and 8 columns; the second operand is always a basis,
// of which a lane needs so few numbers that they stay in registers. A thread has POINTS points of a column.
#include "../scheme.cuh"
#include "double_cores.cuh"

#define BLOCKS_X ((INNER_X + 7) / 8)
#define BLOCKS_Y ((INNER_Y + 7) / 8)
#define TILES_X ((INNER_X + 15) / 16)
#define TILES_Y ((INNER_Y + 15) / 16)
#define PADDED_X (8 * BLOCKS_X)
#define PADDED_Y (8 * BLOCKS_Y)
#define STRIDE_X (PADDED_X + 4)  // of rows in shared memory: with 4 more, the lanes of a load are in different banks
#define STRIDE_Y (PADDED_Y + 4)
#define MATRIX (PADDED_Y * STRIDE_X > PADDED_X * STRIDE_Y ? PADDED_Y * STRIDE_X : PADDED_X * STRIDE_Y)
#define ROW (INNER_X + 2)
#define ALL ((INNER_Y + 2) * ROW)

struct Shared {
    double *basis_x, *basis_y, *first, *second;  // first, second: operands and results in turns
    number *u, *v, *ut, *vt;                     // (INNER_Y + 2, ROW) velocities and tentative velocities
    __device__ __forceinline__ Shared(double* memory) {
        basis_x = memory, basis_y = basis_x + PADDED_X * STRIDE_X, first = basis_y + PADDED_Y * STRIDE_Y;
        second = first + MATRIX, u = (number*)(second + MATRIX);
        v = u + ALL, ut = v + ALL, vt = ut + ALL;
    }
};

// Part of a lane in products with 16 TILES rows and 8 BLOCKS columns: 16 rows and 8 columns of its warp.
template <int TILES, int BLOCKS> struct Part {
    int major, minor, tile, block;
    bool works;
    __device__ __forceinline__ Part() {
        int warp = threadIdx.x / 32;
        major = threadIdx.x % 32 / 4, minor = threadIdx.x % 4, tile = warp / BLOCKS, block = warp % BLOCKS;
        works = tile < TILES;
    }
    // Row and column of entry `i` of a result.
    __device__ __forceinline__ int row(int i) const { return 16 * tile + 8 * (i / 2) + major; }
    __device__ __forceinline__ int column(int i) const { return 8 * block + 2 * minor + i % 2; }
};

// What a lane needs of a basis as second operand, of BLOCKS blocks: its transpose, to modes, or itself.
template <int BLOCKS, bool TO_MODES> struct Basis {
    double entry[BLOCKS][2];
    template <class OfLane> __device__ __forceinline__ void load(const double* basis, const OfLane& part) {
        const int stride = 8 * BLOCKS + 4;
        int own = 8 * part.block + part.major;
        if (!part.works) return;
#pragma unroll
        for (int k = 0; k < 2 * BLOCKS; ++k) {
            int other = 4 * k + part.minor;
            entry[k / 2][k % 2] = TO_MODES ? basis[own * stride + other] : basis[other * stride + own];
        }
    }
};

struct alignas(16) Pair {
    double first, second;
};

// A matrix of ROWS rows times a basis. In memory are the matrix, or its transpose if IS_TURNED, with rows FROM numbers apart,
// and the result with rows TO numbers apart. `change(entry, value)` gives what is stored.
template <int ROWS, int FROM, int TO, bool IS_TURNED, int BLOCKS, bool TO_MODES, class OfLane, class Change>
__device__ __forceinline__ void multiply(const double* data, const Basis<BLOCKS, TO_MODES>& basis, double* result,
                                         const OfLane& part, Change change) {
    if (!part.works) return;
    double sums[4] = {};
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) {
        double rows[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int own = min(part.row(2 * (i % 2)), ROWS - 1);  // rows beyond the matrix give results that are not stored
            int other = 8 * k + 4 * (i / 2) + part.minor;
            rows[i] = IS_TURNED ? data[other * FROM + own] : data[own * FROM + other];
        }
        add_product(sums, rows, basis.entry[k]);
    }
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        Pair pair = {change(i, sums[i]), change(i + 1, sums[i + 1])};
        if (part.row(i) < ROWS) *(Pair*)(result + part.row(i) * TO + part.column(i)) = pair;
    }
}

// Rows are points or modes along y, or along x.
typedef Part<TILES_Y, BLOCKS_X> RowsY;
typedef Part<TILES_X, BLOCKS_Y> RowsX;

struct Bases {
    RowsY rows_y;
    RowsX rows_x;
    Basis<BLOCKS_X, true> to_modes_x;
    Basis<BLOCKS_Y, true> to_modes_y;
    Basis<BLOCKS_Y, false> from_modes_y;
    Basis<BLOCKS_X, false> from_modes_x;
};

// The modes of a lane, those of its entries of (x, y) matrices of modes, and their factors.
struct Modes {
    double pressure[4], decay[4], gain[4];
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
__device__ __forceinline__ void solve_pressure(const Shared& shared, const Bases& bases, Modes& modes) {
    const RowsY& along_y = bases.rows_y;
    const RowsX& along_x = bases.rows_x;
    auto same = [](int, double value) { return value; };
    multiply<PADDED_Y, STRIDE_X, STRIDE_X, false>(shared.first, bases.to_modes_x, shared.second, along_y, same);
    __syncthreads();
    multiply<PADDED_X, STRIDE_X, STRIDE_Y, true>(
        shared.second, bases.to_modes_y, shared.first, along_x, [&](int i, double added) {
            return modes.pressure[i] = modes.decay[i] * modes.pressure[i] + modes.gain[i] * added;
        });
    __syncthreads();
    multiply<PADDED_X, STRIDE_Y, STRIDE_Y, false>(shared.first, bases.from_modes_y, shared.second, along_x, same);
    __syncthreads();
    multiply<PADDED_Y, STRIDE_Y, STRIDE_X, true>(shared.second, bases.from_modes_x, shared.first, along_y, same);
    __syncthreads();
}

// Pressure at a point inside or on the boundary, numbered from the first inside.
__device__ __forceinline__ double pressure_at(const double* p, int x, int y) {
    return y == INNER_Y ? 0 : p[max(y, 0) * STRIDE_X + min(max(x, 0), INNER_X - 1)];
}

// Subtracts the gradient of the pressure from the tentative velocities. Returns whether the fields of the thread are finite.
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
        finite &= isfinite(points.u[r]) && isfinite(points.v[r]) && isfinite((number)own);
        shared.u[place] = points.u[r], shared.v[place] = points.v[r];
        below = own, own = above;
    }
    return finite;
}

// Calls visit(index in the arrays, column, row) for all points on the boundary and inside.
template <class Visit> __device__ __forceinline__ void for_each_point(Visit visit) {
    for (int k = threadIdx.x; k < ALL; k += BLOCK_THREADS) visit(k, k % ROW - 1, k / ROW - 1);
}

// Calls visit(entry, index in the padded (y, x) matrices) for the modes of a lane.
template <class Visit> __device__ __forceinline__ void for_each_mode(const RowsX& part, Visit visit) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (part.works && part.row(i) < PADDED_X) visit(i, part.column(i) * PADDED_X + part.row(i));
    }
}

__device__ __forceinline__ void load_fields(const Shared& shared, const Fields& fields) {
    for (int k = threadIdx.x; k < PADDED_X * PADDED_X; k += BLOCK_THREADS) {
        shared.basis_x[k / PADDED_X * STRIDE_X + k % PADDED_X] = fields.basis_x[k];
    }
    for (int k = threadIdx.x; k < PADDED_Y * PADDED_Y; k += BLOCK_THREADS) {
        shared.basis_y[k / PADDED_Y * STRIDE_Y + k % PADDED_Y] = fields.basis_y[k];
    }
    for (int k = threadIdx.x; k < MATRIX; k += BLOCK_THREADS) shared.first[k] = shared.second[k] = 0;
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
    Bases bases;
    Modes modes = {};
    Points points;
    number tentative_v[POINTS];
    load_fields(shared, fields);
    for_each_mode(bases.rows_x, [&](int i, int k) {
        modes.pressure[i] = fields.transform[k], modes.decay[i] = fields.decay[k], modes.gain[i] = fields.gain[k];
    });
#pragma unroll
    for (int r = 0; r < POINTS; ++r) {
        if (r < points.count) points.u[r] = shared.u[points.place(r)], points.v[r] = shared.v[points.place(r)];
    }
    bases.to_modes_x.load(shared.basis_x, bases.rows_y), bases.from_modes_x.load(shared.basis_x, bases.rows_y);
    bases.to_modes_y.load(shared.basis_y, bases.rows_x), bases.from_modes_y.load(shared.basis_y, bases.rows_x);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        tentative(shared, points, tentative_v, factors);
        __syncthreads();
        find_source(shared, points, tentative_v, factors);
        __syncthreads();
        solve_pressure(shared, bases, modes);
        if (!correct(shared, points, tentative_v, factors)) atomicMin(status, step + 1);
        if (step == 0) set_boundary(shared, fields.lid);
        __syncthreads();
    }
    for_each_point([&](int k, int x, int y) {
        fields.u[k] = shared.u[k], fields.v[k] = shared.v[k];
        fields.p[k] = (number)pressure_at(shared.first, x, y);
    });
    for_each_mode(bases.rows_x, [&](int i, int k) { fields.transform[k] = modes.pressure[i]; });
}
