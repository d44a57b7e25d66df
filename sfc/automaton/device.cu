// Encode and decode of device arrays; see device.py. The loader defines `integer`, the type of the cells given.

extern "C" __global__ void encode(long long n, const integer* cells, int order, u64 side, const unsigned short* rank,
                                  const unsigned short* next, unsigned state, u64* index, u64* bad) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 cell[DIM];
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        cell[axis] = (u64)cells[i * DIM + axis];  // a negative cell wraps far above any side
        inside = inside && cell[axis] < side;
    }
    if (inside) {
        index[i] = curve_encode(cell, order, side, rank, next, state);
    } else {
        atomicMin(bad, (u64)i);
    }
}

extern "C" __global__ void decode(long long n, const integer* index, int order, u64 last, const unsigned short* cell,
                                  const unsigned short* succ, unsigned state, long long* cells, u64* bad) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (index[i] < 0 || (u64)index[i] > last) {
        atomicMin(bad, (u64)i);
        return;
    }
    u64 found[DIM];
    curve_decode((u64)index[i], order, last, cell, succ, state, found);
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) cells[i * DIM + axis] = (long long)found[axis];
}
