// Particles that leave at one end of an axis and enter at the other; see inflow.py.

// Hash of a 64-bit word; as in inflow.py.
__device__ __forceinline__ unsigned long long mixed(unsigned long long word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

// Random number above 0 and up to 1, the same on every backend.
__device__ __forceinline__ double chance(long long seed, long long number, int draw) {
    unsigned long long count = (unsigned long long)(number + 1);
    unsigned long long word = mixed((unsigned long long)seed + 0x9E3779B97F4A7C15ull * count);
    word = mixed(word ^ (unsigned long long)draw);
    return ((double)(word >> 11) + 1.0) * 0x1p-53;
}

extern "C" __global__ void enter(int n, real* pos, real* vel, const int* id, Inlet inlet, Grid grid, const int* leavers,
                                 const long long* counts) {
    int k = work_item();
    if (k >= counts[1]) return;
    int i = leavers[k];
    long long number = counts[0];
    for (int other = 0; other < counts[1]; ++other) number += id[leavers[other]] < id[i];
    Vec r = load(pos, n, i), v;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        double length = grid.length[axis], place;
        double size = sqrt(-2 * log(chance(inlet.seed, number, 2 * axis)));
        double angle = chance(inlet.seed, number, 2 * axis + 1);
        double fresh = inlet.velocity[axis] + inlet.spread * size * cospi(2 * angle);
        if (axis == inlet.axis) {
            double x = r.x[axis], least = inlet.gap * (sizeof(real) == 4 ? 0x1p-23 : 0x1p-52) * length;
            fresh = copysign(fresh, inlet.velocity[axis]);
            double beyond = fresh > 0 ? x - (length - inlet.gap) : inlet.gap - x;
            place = fresh > 0 ? beyond : length - max(beyond, least);
        } else {
            double turns = inlet.start[axis] + number * inlet.turn[axis];
            place = inlet.margin[axis] + (turns - floor(turns)) * (length - 2 * inlet.margin[axis]);
        }
        r.x[axis] = min((real)place, inlet.last[axis]);
        v.x[axis] = (real)fresh;
    }
    store(pos, n, i, r);
    store(vel, n, i, v);
}

extern "C" __global__ void leave(int n, const real* pos, Inlet inlet, Grid grid, int* leavers, long long* counts) {
    int i = work_item();
    if (i >= n) return;
    Vec r = load(pos, n, i);
    bool out = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        double x = r.x[axis];
        bool is_beyond = inlet.velocity[axis] > 0 ? x >= (double)grid.length[axis] - inlet.gap : x < inlet.gap;
        out |= is_beyond & (axis == inlet.axis);
    }
    if (out) leavers[atomicAdd((unsigned long long*)counts + 1, 1ull)] = i;
}

extern "C" __global__ void count(int n, long long* counts) {
    if (work_item() > 0) return;
    counts[0] += counts[1];
    counts[1] = 0;
}
