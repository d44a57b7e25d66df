// Bounding box and cells of points on a device; see device.py. The loader defines DIM, `real` (float or double), and the
// unsigned integer `cell_t`.


// Least and largest coordinates of the points of each block, (blocks, DIM); NaN if one is not finite.
extern "C" __global__ void __launch_bounds__(256) extent(long long n, const real* points, double* low, double* high) {
    __shared__ real lows[8][DIM], highs[8][DIM];
    real least[DIM], most[DIM], zero = 0;
    long long first = blockIdx.x * 256ll + threadIdx.x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) least[axis] = most[axis] = points[(first < n ? first : 0) * DIM + axis];
    for (long long i = first; i < n; i += gridDim.x * 256ll) {
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            real x = points[i * DIM + axis];
            zero += x - x;
            least[axis] = x < least[axis] ? x : least[axis];
            most[axis] = x > most[axis] ? x : most[axis];
        }
    }
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        least[axis] += zero, most[axis] += zero;
        for (int apart = 16; apart; apart /= 2) {
            real other = __shfl_xor_sync(~0u, least[axis], apart);
            least[axis] = other < least[axis] || other != other ? other : least[axis];
            other = __shfl_xor_sync(~0u, most[axis], apart);
            most[axis] = other > most[axis] || other != other ? other : most[axis];
        }
        if (lane == 0) lows[warp][axis] = least[axis], highs[warp][axis] = most[axis];
    }
    __syncthreads();
    if ((int)threadIdx.x >= DIM) return;
    real below = lows[0][threadIdx.x], above = highs[0][threadIdx.x];
    for (int w = 1; w < 8; ++w) {
        real other = lows[w][threadIdx.x];
        below = other < below || other != other ? other : below;
        other = highs[w][threadIdx.x];
        above = other > above || other != other ? other : above;
    }
    low[blockIdx.x * DIM + threadIdx.x] = below;
    high[blockIdx.x * DIM + threadIdx.x] = above;
}

// `grid` has the lower corner, the upper corner and the width of the cells' box along each axis, `sides` the cells; `found`
// the first row without a cell and the number of rows outside. The arithmetic is that of the host, to the bit.
extern "C" __global__ void cells_in_grid(long long n, const real* points, const double* grid, const u64* sides, int clip,
                                         cell_t* cells, u64* found) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool outside = false, bad = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        double x = points[i * DIM + axis], low = grid[axis], high = grid[DIM + axis];
        bad = bad || x != x;
        outside = outside || !(low <= x && x <= high);
        x = x > low ? x : low;
        x = x < high ? x : high;
        double scaled = (x - low) / grid[2 * DIM + axis];
        u64 side = sides[axis], cell = (u64)((scaled > 0 ? scaled : 0.0) * (double)side);
        cells[i * DIM + axis] = (cell_t)(cell < side ? cell : side - 1);
    }
    if (outside) atomicAdd(&found[1], 1ull);
    if (bad || (outside && !clip)) atomicMin(&found[0], (u64)i);
}
