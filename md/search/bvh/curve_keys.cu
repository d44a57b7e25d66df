// Sort keys along a curve; see curve_keys.py.

extern "C" __global__ void extent_of_parts(int threads, int n, const real* pos, real* extents) {
    Vec low = load(pos, n, work_item() % n), high = low;
    for (int i = work_item(); i < n; i += threads) {
        Vec r = load(pos, n, i);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = min(low.x[axis], r.x[axis]);
            high.x[axis] = max(high.x[axis], r.x[axis]);
        }
    }
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        spread_of_block(low.x[axis], high.x[axis]);
        if (threadIdx.x == 0) {
            extents[2 * (axis * PARTS + blockIdx.x)] = low.x[axis];
            extents[2 * (axis * PARTS + blockIdx.x) + 1] = high.x[axis];
        }
    }
}

extern "C" __global__ void extent_of_all(int threads, const real* pos, const real* extents, Grid grid, real* extent) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real low = extents[2 * (axis * PARTS + threadIdx.x)], high = extents[2 * (axis * PARTS + threadIdx.x) + 1];
        spread_of_block(low, high);
        if (threadIdx.x == 0) {
            real length = grid.length[axis], least = -FAR * length, most = (1 + FAR) * length;
            extent[2 * axis] = min(max(low, least), most);
            extent[2 * axis + 1] = max(min(high, most), least);
        }
    }
}

// Spreads the bits of a coordinate, with DIM - 1 zero bits after each.
__device__ __forceinline__ unsigned long long with_gaps(unsigned long long x) {
#if DIM == 2
    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
#else
    x = (x | x << 32) & 0x001f00000000ffffull;
    x = (x | x << 16) & 0x001f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    return (x | x << 2) & 0x1249249249249249ull;
#endif
}

// A negative start state stands for the Morton curve: its index interleaves the bits of the coordinates.
extern "C" __global__ void curve_keys(int n, const real* pos, const real* extent, int bits, int start,
                                      const unsigned short* rank, const unsigned short* next, unsigned* keys) {
    int i = work_item();
    if (i >= n) return;
    real widest = extent[1] - extent[0];
#pragma unroll
    for (int axis = 1; axis < DIM; ++axis) widest = max(widest, extent[2 * axis + 1] - extent[2 * axis]);
    long long most = (1ll << bits) - 1;
    real scale = widest > 0 ? (real)(most + 1) / widest : (real)0;
    Vec r = load(pos, n, i);
    unsigned long long interleaved = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        long long cell = max(0ll, min((long long)((r.x[axis] - extent[2 * axis]) * scale), most));
        interleaved |= with_gaps((unsigned long long)cell & most) << axis;
    }
    if (start < 0) {
        put_key(keys, bits * DIM > 32, i, interleaved);
        return;
    }
    const unsigned all = (1u << DIM) - 1;
    unsigned long long key = 0;
    unsigned state = start;
    for (int level = bits - 1; level >= 0; --level) {
        unsigned digit = (unsigned)(interleaved >> DIM * level) & all;
        key = key << DIM | rank[state << DIM | digit];
        state = next[state << DIM | digit];
    }
    put_key(keys, bits * DIM > 32, i, key);
}
