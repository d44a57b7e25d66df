// A stream that comes in; see inflow.py.

#include "md/backend/warp.cuh"

__device__ __forceinline__ unsigned long long mixed(unsigned long long word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

// A number above 0 and up to 1, the same on every backend.
__device__ __forceinline__ double chance(long long seed, long long step, int id, int draw) {
    unsigned long long word = mixed((unsigned long long)seed + 0x9E3779B97F4A7C15ull * (unsigned long long)(step + 1));
    word = mixed(word ^ ((unsigned long long)id << 32 | (unsigned long long)draw));
    return ((double)(word >> 11) + 1.0) * 0x1p-53;
}

extern "C" __global__ void renew(int n, int parts, real* pos, real* vel, const int* id, long long step,
                                 const double* strides, Inlet inlet, Grid grid, long long* renewed) {
    int i = work_item();
    if (i >= n) return;
    int axis = inlet.axis;
    Vec r = load(pos, n, i), v = load(vel, n, i);
    double length = 0, x = 0, speed = 0;
#pragma unroll
    for (int k = 0; k < DIM; ++k) {
        if (k != axis) continue;
        length = grid.length[k];
        x = r.x[k];
        speed = v.x[k];
    }
    double before = x - speed * strides[1];
    if (before >= 0 && before < length) return;
    double beyond = before < 0 ? x : length - x;
#pragma unroll
    for (int k = 0; k < DIM; ++k) {
        double width = (double)grid.length[k] - 2 * inlet.margin[k];
        double size = sqrt(-2 * log(chance(inlet.seed, step, id[i], 3 * k)));
        double angle = chance(inlet.seed, step, id[i], 3 * k + 1);
        double fresh = inlet.velocity[k] + inlet.spread * size * cospi(2 * angle);
        double place = inlet.margin[k] + width * (1 - chance(inlet.seed, step, id[i], 3 * k + 2));
        if (k == axis) {
            fresh = copysign(fresh, inlet.velocity[k]);
            place = fresh > 0 ? beyond : length - beyond;
        }
        if (place >= (double)grid.length[k] || (real)place >= grid.length[k]) {
            place = grid.periodic[k] ? 0.0 : (double)grid.length[k] - inlet.margin[k];
        }
        r.x[k] = (real)place;
        v.x[k] = (real)fresh;
    }
    store(pos, n, i, r);
    store(vel, n, i, v);
    atomicAdd((unsigned long long*)renewed, 1ull);
}
