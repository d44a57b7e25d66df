// Kick, drift, and the fault word; see fused.py. Part of a search's kernel if a step is fused into it.

// Returns a position wrapped into the box; or the old one, with the particle in the fault word, if that fails.
__device__ __forceinline__ Vec placed(const Grid& grid, const Vec& old, Vec r, int i, const int* id,
                                      const long long* step, unsigned long long* fault) {
    bool inside = true, good = true, finite = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) inside = inside && r.x[axis] >= 0 && r.x[axis] < grid.length[axis];
    if (inside) return r;  // most are
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = r.x[axis], length = grid.length[axis];
        bool periodic = grid.periodic[axis] != 0;
        if (periodic) {
            if (x >= length) {
                x -= length;
            } else if (x < 0) {
                x += length;
                if (x >= length) x -= length;  // a tiny negative coordinate rounds up to the far side
            }
        }
        r.x[axis] = x;
        real highest = grid.highest[axis];
        good = good && x >= grid.lowest[axis] && (x < highest || (x == highest && !periodic));
        finite = finite && isfinite(x);
    }
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) r.x[axis] = good ? r.x[axis] : old.x[axis];
    if (!good) {
        unsigned long long word = 2ull * *step + (finite ? 1 : 0);
        atomicMin(fault, word << 32 | (unsigned)id[i]);
    }
    return r;  // every position in memory is inside the box, except at its open sides
}

// Stores a position as `placed` returns it.
__device__ __forceinline__ void place(const Grid& grid, const Vec& old, const Vec& r, real* pos, int n, int i,
                                      const int* id, long long step, unsigned long long* fault) {
    store(pos, n, i, placed(grid, old, r, i, id, &step, fault));
}

// Returns the number of the step. The thread of the first particle stores that of the next step.
__device__ __forceinline__ long long count_step(long long* clock, long long turn, int i) {
    long long step = clock[turn];
    if (i == 0) clock[1 - turn] = step + 1;
    return step;
}

// Scales a velocity that is longer than the largest speed to that length. A square that is infinite gives a velocity that
// is not a number, which is reported as a fault.
__device__ __forceinline__ Vec limited(real max_speed, const Vec& v) {
    real speed2 = dot(v, v);
    if (!(speed2 > max_speed * max_speed)) return v;
    return add_scaled(zero(), max_speed / sqrt(speed2) + (speed2 - speed2), v);
}

#if defined(HAS_OUTSIDE)
#include "md/boundaries/external_field.cuh"
#endif

#if defined(FUSED)
#define MOVES_PARTICLES  // `finish` stores the moved particles in out.pos

// Every other step begins with the last particles, which the step before has written last: they are in the cache. The words
// of the guard, which `finish` reads, are loaded into the nearest cache meanwhile.
__device__ __forceinline__ int block_of(const Out& out) {
    if (out.fastest) {
        touch(out.fastest + out.turn);
        touch(out.travelled + out.turn);
        if (out.bound) touch(out.bound + out.turn);
    }
    return out.turn ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

__device__ __forceinline__ float rounded_up(float x) { return x; }
__device__ __forceinline__ float rounded_up(double x) { return __double2float_ru(x); }

#define JUST_BUILT -1  // all bits set, which no computed number has

// Upper bound of the distance travelled by any particle since the build, for the distance at the step before and the square
// of the largest speed.
__device__ __forceinline__ float travelled_by_now(const Out& out, float before, float speed2) {
    if (__float_as_int(before) == JUST_BUILT) return 0;
    if (speed2 == 0) return before;
    float speed = speed2 * rsqrtf(speed2) * (1 + 1e-6f);  // rounded up; NaN for an infinite speed
    return __fadd_ru(before, __fadd_ru(__fmul_ru(speed, (float)out.drift), out.rounding));
}

// Raises the word of the next step to the square of a speed in this step. Numbers that are not negative are ordered as
// their bits, with NaN above them all. From step to step the word decreases by a fixed share at most, so that few
// particles are fast enough to write it; the thread of the first particle writes that lower bound.
__device__ __forceinline__ void raise(const Out& out, unsigned long long fastest, int i, real speed2) {
    float floor = 0.8f * __uint_as_float((unsigned)fastest), own = rounded_up(speed2);
    if (own <= floor && i != 0) return;
    unsigned long long step = (fastest >> 32) + 1;
    atomicMax(out.fastest + 1 - out.turn, step << 32 | __float_as_uint(own <= floor ? floor : own));
}

// Upper bound of the square of the speed of the move that ended at r, with the rounding of r: beyond an open side that is more
// than `out.rounding`, which is for positions inside the box.
__device__ __forceinline__ real speed2_of(const Out& out, const Grid& grid, const Vec& r, const Vec& v) {
    real far = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        if (!grid.periodic[axis] && (r.x[axis] < 0 || r.x[axis] > grid.length[axis])) far = max(far, max(r.x[axis], -r.x[axis]));
    }
    real speed2 = dot(v, v);
    if (far == 0) return speed2;
    real rounding = far * (sizeof(real) == 4 ? (real)1.2e-7 : (real)2.3e-16);  // twice the rounding of a coordinate
    real speed = sqrt(speed2) + DIM * rounding / out.drift;
    return speed * speed;
}

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    bool is_pruned = out.bound && !out.prunes;  // whether the lists that this step reads were pruned
    unsigned long long fastest = out.fastest ? out.fastest[out.turn] : 0;
    float before = out.fastest ? out.travelled[out.turn] : 0, limit = is_pruned ? out.bound[out.turn] : out.limit;
    float travelled = out.fastest ? travelled_by_now(out, before, __uint_as_float((unsigned)fastest)) : 0;
    bool halted = out.fastest && !(travelled <= 0 || travelled < limit);  // also for NaN
#if defined(HAS_FLIGHT)
#if defined(HAS_OUTSIDE)
    Vec pull = outside(out.outside, radius_of(out.outside, out.radius, i), out.now, grid, ri, vi, zero());
    Vec increment = add_scaled(acc, out.flight.dt, pull);
#else
    const Vec& increment = acc;
#endif
    Vec v = halted ? vi : limited(out.flight.max_speed, add_scaled(vi, (real)1, increment));
#else
#if defined(HAS_OUTSIDE)
    Vec push = outside(out.outside, radius_of(out.outside, out.radius, i), out.now, grid, ri, vi, acc);
#else
    const Vec& push = acc;
#endif
    Vec v = halted ? vi : add_scaled(vi, out.kick, push);
#endif
    Vec r = placed(grid, ri, halted ? ri : add_scaled(ri, out.drift, v), i, out.id, out.clock + out.turn, out.fault);
    store_row(out.pos, (velocity*)out.vel, n, i, r, v);
    if (i == 0) out.clock[1 - out.turn] = out.clock[out.turn] + !halted;
    if (!out.fastest) return;
    raise(out, fastest, i, speed2_of(out, grid, r, v));
    if (i == 0) {
        out.travelled[1 - out.turn] = travelled;
        if (out.bound) {
            out.bound[1 - out.turn] = is_pruned ? limit : fminf(limit, __fadd_rd(travelled, out.inner_limit));
        }
        *out.halted_steps += halted;
    }
}
#endif
