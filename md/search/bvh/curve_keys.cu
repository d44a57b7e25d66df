// Sort keys along a curve; see curve_keys.py.

#define AT_ONCE 4  // positions loaded at the same time

// The slot of sample k: at random among `every` slots, the same at each call.
__device__ __forceinline__ int sampled(unsigned k, int every, int n) {
    return min((int)(k * every + (k * 2654435761u >> 16) % every), n - 1);  // Knuth's multiplicative hash
}

extern "C" __global__ void extent_of_parts(int threads, int n, int every, const real* pos, real* extents) {
    unsigned samples = (n - 1) / every + 1;
    Vec low = load(pos, n, sampled(work_item() % samples, every, n)), high = low;
    for (unsigned k = work_item(); k < samples; k += AT_ONCE * threads) {
        Vec r[AT_ONCE];
#pragma unroll
        for (int b = 0; b < AT_ONCE; ++b) {
            r[b] = load(pos, n, sampled(k + b * threads < samples ? k + b * threads : k, every, n));
        }
#pragma unroll
        for (int b = 0; b < AT_ONCE; ++b) {
#pragma unroll
            for (int axis = 0; axis < DIM; ++axis) {
                low.x[axis] = min(low.x[axis], r[b].x[axis]);
                high.x[axis] = max(high.x[axis], r[b].x[axis]);
            }
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

// `steps` walks several levels of a curve at once. A negative start row stands for the Morton curve: its index interleaves the
// bits of the coordinates.
extern "C" __global__ void curve_keys(int n, const real* pos, const real* extent, int bits, int levels, int start,
                                      const int* steps, unsigned* keys) {
    int i = work_item();
    if (i >= n) return;
    real widest = extent[1] - extent[0];
#pragma unroll
    for (int axis = 1; axis < DIM; ++axis) widest = max(widest, extent[2 * axis + 1] - extent[2 * axis]);
    int at_once = start < 0 ? 1 : levels, groups = (bits + at_once - 1) / at_once;
    unsigned most = (1u << bits) - 1, cell[DIM];
    real scale = widest > 0 ? ((real)most + 1) / widest : (real)0;
    Vec r = load(pos, n, i);
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = min(max((r.x[axis] - extent[2 * axis]) * scale, (real)0), (real)most);
        cell[axis] = min((unsigned)x, most) << (32 - groups * at_once);  // the rounded largest number may be most + 1
    }
    unsigned long long key = 0;
    unsigned row = max(start, 0);
    for (int group = 0; group < groups; ++group) {
        unsigned place = row;  // with the next bits of each coordinate behind it
#pragma unroll
        for (int axis = DIM - 1; axis >= 0; --axis) {
            place = __funnelshift_l(cell[axis], place, at_once);
            cell[axis] <<= at_once;
        }
        unsigned step = start < 0 ? place << 16 : steps[place];
        key = key << DIM * at_once | step >> 16;
        row = step & 0xffff;
    }
    put_key(keys, bits * DIM > 32, i, key);
}
