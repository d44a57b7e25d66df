// Many steps of a small cavity in one launch of one block; the sweeps of a step are four products of matrices.
//
// Contract. The constants INNER_X, INNER_Y (points inside the boundary) and GROUPS are defined. With X and Y the orthonormal
// bases along x and y (a row a mode), the transform of a field f is Y f X^T. All sweeps of a step together multiply the
// transform of the pressure by `decay`, and add `gain` times that of the right-hand side. Matrices are padded by zeros to
// multiples of 8 rows and columns. A warp has 8 rows of the result, and of its tiles of 8 columns every GROUPS-th.
#include "../scheme.cuh"
#include "double_cores.cuh"

#define PADDED_X ((INNER_X + 7) / 8 * 8)
#define PADDED_Y ((INNER_Y + 7) / 8 * 8)
#define STRIDE_X (PADDED_X + 4)  // of rows in shared memory: with 4 more, the lanes of a load are in different banks
#define STRIDE_Y (PADDED_Y + 4)
#define TILES ((PADDED_X / 8 + GROUPS - 1) / GROUPS)
#define ROW (INNER_X + 2)
#define POINTS ((INNER_X * INNER_Y + RESIDENT_THREADS - 1) / RESIDENT_THREADS)  // of a thread

struct Shared {
    double *basis_x, *basis_y, *first, *second;  // first, second: (PADDED_Y, STRIDE_X) operands and results in turns
    number *u, *v;                               // (INNER_Y + 2, ROW)
    __device__ __forceinline__ Shared(double* memory) {
        basis_x = memory, basis_y = basis_x + PADDED_X * STRIDE_X, first = basis_y + PADDED_Y * STRIDE_Y;
        second = first + PADDED_Y * STRIDE_X, u = (number*)(second + PADDED_Y * STRIDE_X);
        v = u + (INNER_Y + 2) * ROW;
    }
};

// The product of two matrices in shared memory, A with PADDED_Y rows and B with PADDED_X columns and 4 * STEPS rows. Calls
// store(tile, row, column, value, value of the next column) for the two entries that a lane has of each tile.
template <int STEPS, bool A_IS_TURNED, bool B_IS_TURNED, class Store>
__device__ __forceinline__ void multiply(const double* a, int a_stride, const double* b, int b_stride, Store store) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, major = lane / 4, minor = lane % 4;
    int row = warp / GROUPS * 8 + major;
    double left[STEPS];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
        left[k] = A_IS_TURNED ? a[(4 * k + minor) * a_stride + row] : a[row * a_stride + 4 * k + minor];
    }
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        int column = (warp % GROUPS + tile * GROUPS) * 8;
        if (column >= PADDED_X) continue;
        double sums[2][2] = {};
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            int line = 4 * k + minor, beside = column + major;
            add_product(sums[k % 2], left[k], B_IS_TURNED ? b[beside * b_stride + line] : b[line * b_stride + beside]);
        }
        store(tile, row, column + 2 * minor, sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]);
    }
}

// The modes of a lane: those of its entries in the products.
struct Modes {
    double pressure[TILES][2], decay[TILES][2], gain[TILES][2];
};

// Point inside the boundary, in shared memory with it; the last points of some threads are beyond the end.
__device__ __forceinline__ int place_of(int k) { return (k / INNER_X + 1) * ROW + k % INNER_X + 1; }

// Replaces the velocities by the tentative ones.
__device__ __forceinline__ void tentative(const Shared& shared, const Factors& factors) {
    number u[POINTS], v[POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        int k = threadIdx.x + i * RESIDENT_THREADS;
        if (k >= INNER_X * INNER_Y) continue;
        const number *at_u = shared.u + place_of(k), *at_v = shared.v + place_of(k);
        u[i] = at_u[0] + change({at_u[0], at_u[-1], at_u[1], at_u[-ROW], at_u[ROW]}, at_u[0], at_v[0], factors);
        v[i] = at_v[0] + change({at_v[0], at_v[-1], at_v[1], at_v[-ROW], at_v[ROW]}, at_u[0], at_v[0], factors);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        int k = threadIdx.x + i * RESIDENT_THREADS;
        if (k < INNER_X * INNER_Y) shared.u[place_of(k)] = u[i], shared.v[place_of(k)] = v[i];
    }
    __syncthreads();
}

// Stores a quarter of the right-hand side, with its sign turned, in the first matrix.
__device__ __forceinline__ void find_source(const Shared& shared, const Factors& factors) {
    number factor = -factors.quarter * factors.source;
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        int k = threadIdx.x + i * RESIDENT_THREADS;
        if (k >= INNER_X * INNER_Y) continue;
        const number *at_u = shared.u + place_of(k), *at_v = shared.v + place_of(k);
        shared.first[k / INNER_X * STRIDE_X + k % INNER_X] = factor * ((at_u[1] - at_u[-1]) + (at_v[ROW] - at_v[-ROW]));
    }
    __syncthreads();
}

// All sweeps of a step: from the right-hand side in the first matrix to the pressure there.
__device__ __forceinline__ void solve_pressure(const Shared& shared, Modes& modes) {
    multiply<PADDED_X / 4, false, true>(shared.first, STRIDE_X, shared.basis_x, STRIDE_X,
                                        [&](int, int row, int column, double value, double next) {
                                            double* to = shared.second + row * STRIDE_X + column;
                                            to[0] = value, to[1] = next;
                                        });
    __syncthreads();
    multiply<PADDED_Y / 4, false, false>(shared.basis_y, STRIDE_Y, shared.second, STRIDE_X,
                                         [&](int tile, int row, int column, double value, double next) {
                                             double* to = shared.first + row * STRIDE_X + column;
                                             double added[2] = {value, next};
#pragma unroll
                                             for (int i = 0; i < 2; ++i) {
                                                 double kept = modes.decay[tile][i] * modes.pressure[tile][i];
                                                 to[i] = modes.pressure[tile][i] = kept + modes.gain[tile][i] * added[i];
                                             }
                                         });
    __syncthreads();
    multiply<PADDED_Y / 4, true, false>(shared.basis_y, STRIDE_Y, shared.first, STRIDE_X,
                                        [&](int, int row, int column, double value, double next) {
                                            double* to = shared.second + row * STRIDE_X + column;
                                            to[0] = value, to[1] = next;
                                        });
    __syncthreads();
    multiply<PADDED_X / 4, false, false>(shared.second, STRIDE_X, shared.basis_x, STRIDE_X,
                                         [&](int, int row, int column, double value, double next) {
                                             double* to = shared.first + row * STRIDE_X + column;
                                             to[0] = value, to[1] = next;
                                         });
    __syncthreads();
}

// Pressure at a point inside or on the boundary, numbered from the first inside.
__device__ __forceinline__ double pressure_at(const double* p, int x, int y) {
    return y == INNER_Y ? 0 : p[max(y, 0) * STRIDE_X + min(max(x, 0), INNER_X - 1)];
}

// Subtracts the gradient of the pressure. Returns whether the thread's velocities are finite.
__device__ __forceinline__ bool correct(const Shared& shared, const Factors& factors) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        int k = threadIdx.x + i * RESIDENT_THREADS, x = k % INNER_X, y = k / INNER_X, place = place_of(k);
        if (k >= INNER_X * INNER_Y) continue;
        double along_x = pressure_at(shared.first, x + 1, y) - pressure_at(shared.first, x - 1, y);
        double along_y = pressure_at(shared.first, x, y + 1) - pressure_at(shared.first, x, y - 1);
        number u = shared.u[place] - factors.gradient * (number)along_x;
        number v = shared.v[place] - factors.gradient * (number)along_y;
        finite &= isfinite(u) && isfinite(v);
        shared.u[place] = u, shared.v[place] = v;
    }
    __syncthreads();
    return finite;
}

// Calls visit(index in the arrays, column, row) for all points on the boundary and inside.
template <class Visit> __device__ __forceinline__ void for_each_point(Visit visit) {
    for (int k = threadIdx.x; k < ROW * (INNER_Y + 2); k += RESIDENT_THREADS) visit(k, k % ROW - 1, k / ROW - 1);
}

__device__ __forceinline__ void load_fields(const Shared& shared, Modes& modes, const Fields& fields) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int k = threadIdx.x; k < PADDED_X * PADDED_X; k += RESIDENT_THREADS) {
        shared.basis_x[k / PADDED_X * STRIDE_X + k % PADDED_X] = fields.basis_x[k];
    }
    for (int k = threadIdx.x; k < PADDED_Y * PADDED_Y; k += RESIDENT_THREADS) {
        shared.basis_y[k / PADDED_Y * STRIDE_Y + k % PADDED_Y] = fields.basis_y[k];
    }
    for (int k = threadIdx.x; k < PADDED_Y * STRIDE_X; k += RESIDENT_THREADS) shared.first[k] = 0;
    for_each_point([&](int k, int, int) { shared.u[k] = fields.u[k], shared.v[k] = fields.v[k]; });
#pragma unroll
    for (int k = 0; k < 2 * TILES; ++k) {
        int tile = k / 2, row = warp / GROUPS * 8 + lane / 4;
        int column = (warp % GROUPS + tile * GROUPS) * 8 + 2 * (lane % 4) + k % 2;
        bool is_there = column < PADDED_X;
        modes.pressure[tile][k % 2] = is_there ? fields.transform[row * PADDED_X + column] : 0;
        modes.decay[tile][k % 2] = is_there ? fields.decay[row * PADDED_X + column] : 0;
        modes.gain[tile][k % 2] = is_there ? fields.gain[row * PADDED_X + column] : 0;
    }
    __syncthreads();
}

__device__ __forceinline__ void store_fields(const Shared& shared, const Modes& modes, const Fields& fields) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for_each_point([&](int k, int x, int y) {
        fields.u[k] = shared.u[k], fields.v[k] = shared.v[k];
        fields.p[k] = (number)pressure_at(shared.first, x, y);
    });
#pragma unroll
    for (int k = 0; k < 2 * TILES; ++k) {
        int tile = k / 2, row = warp / GROUPS * 8 + lane / 4;
        int column = (warp % GROUPS + tile * GROUPS) * 8 + 2 * (lane % 4) + k % 2;
        if (column < PADDED_X) fields.transform[row * PADDED_X + column] = modes.pressure[tile][k % 2];
    }
}

extern "C" __global__ void RESIDENT advance(int n, int bytes, int steps, Fields fields, Factors factors, int* status) {
    extern __shared__ uint4 memory[];
    Shared shared((double*)memory);
    Modes modes;
    load_fields(shared, modes, fields);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        tentative(shared, factors);
        find_source(shared, factors);
        solve_pressure(shared, modes);
        if (!correct(shared, factors)) atomicMin(status, step + 1);
        if (step > 0) continue;
        for_each_point([&](int k, int x, int y) {
            bool side = x < 0 || x == INNER_X;
            if (side || y < 0 || y == INNER_Y) shared.u[k] = y == INNER_Y && !side ? fields.lid : 0, shared.v[k] = 0;
        });
        __syncthreads();
    }
    store_fields(shared, modes, fields);
}
