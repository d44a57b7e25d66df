// Sums over the particles; see sums.py.

#include "md/backend/warp.cuh"

#define MOST_BINS 1000  // as in sums.py: 48000 bytes of shared memory in 3D
#define COLUMNS (3 + DIM)

// Adds the sums of a thread to those of a bin, and sets the sums of the thread to 0.
__device__ __forceinline__ void add_to_bin(double* own, double* bin) {
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) {
        if (own[k] != 0) atomicAdd(bin + k, own[k]);
        own[k] = 0;
    }
}

// A thread sums in registers as long as its particles are in the same bin.
extern "C" __global__ void tally(int threads, int n, const real* pos, const real* vel, Grid grid, int parts,
                                 double* sums) {
    __shared__ double block[MOST_BINS * COLUMNS];
    int entries = grid.cells[0] * grid.cells[1] * grid.cells[2] * COLUMNS, bin = 0;
    for (int k = threadIdx.x; k < entries; k += blockDim.x) block[k] = 0;
    __syncthreads();
    double own[COLUMNS] = {};
    for (long long i = work_item(); i < n; i += threads) {
        Vec r = load(pos, n, i);
        bool out = false;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) out |= r.x[axis] < 0 || r.x[axis] > grid.length[axis];
        if (out) continue;
        int here = cell_number(grid, home_cell(grid, r));
        if (here != bin) add_to_bin(own, block + bin * COLUMNS);
        bin = here;
        Vec v = load(vel, n, i);
        double v2 = 0;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            v2 += (double)v.x[axis] * v.x[axis];
            own[3 + axis] += v.x[axis];
        }
        own[0] += 1;
        own[1] += sqrt(v2);
        own[2] += v2;
    }
    add_to_bin(own, block + bin * COLUMNS);
    __syncthreads();
    for (int k = threadIdx.x; k < entries; k += blockDim.x) {
        if (block[k] != 0) atomicAdd(sums + k, block[k]);
    }
}

extern "C" __global__ void add_up(int threads, int n, const double* energy, const int* touching, const int* started,
                                  int parts, double* sums) {
    double own[3] = {};
    for (long long i = work_item(); i < n; i += threads) {
        own[0] += energy[i];
        own[1] += touching[i];
        own[2] += started[i];
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) add_sum(sums + k, own[k]);
}
