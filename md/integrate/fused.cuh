// Kick, drift, and the fault word; see fused.py. Part of a search's kernel if a step is fused into it.

__device__ __forceinline__ unsigned bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned long long bits_of(double x) { return __double_as_longlong(x); }

// Whether a position is inside the box, by the bits of its coordinates, which are ordered as the numbers if these are not
// negative; false for -0 too.
__device__ __forceinline__ bool is_inside(const Grid& grid, const Vec& r) {
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) inside = inside && bits_of(r.x[axis]) < bits_of(grid.length[axis]);
    return inside;
}

// Returns a position wrapped into the box; or the old one, with the particle in the fault word, if that fails.
__device__ __forceinline__ Vec placed(const Grid& grid, const Vec& old, Vec r, int i, const int* id,
                                      const long long* step, unsigned long long* fault) {
    if (is_inside(grid, r)) return r;  // most are
    bool good = true, finite = true;
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

#if defined(HAS_PEERS)
#include "md/domain/on_device/flags.cuh"
#endif

#if defined(FUSED)
#define MOVES_PARTICLES  // `finish` stores the moved particles in out.pos

#define JUST_BUILT -1  // all bits set, which no computed number has: also of the words below, so that no speed halts a step
#define HALTING 2  // first of two words behind those of the distance, for steps that read the lists of the build
#define HALTING_PRUNED 4  // the same for steps that read pruned lists

// The smallest square of the largest speed in the step before, as its bits, with which this step is halted.
__device__ __forceinline__ const unsigned* halting_of(const Out& out) {
    bool is_pruned = out.bound && !out.prunes;  // whether the lists that this step reads were pruned
    return (const unsigned*)out.travelled + (is_pruned ? HALTING_PRUNED : HALTING) + (int)out.turn;
}

// Every other step begins with the last particles, which the step before has written last: they are in the cache. With peers the
// border blocks, which are the first ones, are in the middle.
__device__ __forceinline__ int block_at(const Out& out, int place) {
    int block = place, blocks = gridDim.x;
#if defined(HAS_PEERS)
    block += blocks / 2;
    if (block >= blocks) block -= blocks;
#endif
    return out.turn ? blocks - 1 - block : block;
}

// Loads the words of the guard, which `finish` reads, into the nearest cache, without waiting for them.
__device__ __forceinline__ void touch_guard(const Out& out) {
    if (!out.fastest) return;
    touch(out.fastest + (int)out.turn);
    touch(halting_of(out));
}

#if defined(HAS_PEERS)
// Before a step: lets the peers know that all stores of the steps before are done, by the first block; and waits for theirs, in
// blocks of border particles, which alone read ghosts and store them. So it takes no time: these are in the middle of the grid.
__device__ __forceinline__ void exchange_flags(const Peers& peers, int turn, int block) {
    bool is_first = blockIdx.x == 0, is_border = block * (int)blockDim.x < (int)peers.borders;
    if (!peers.count || !(is_first || is_border)) return;
    unsigned now = peers.count[turn] + 1;
    if (is_first) {
        for (int p = threadIdx.x; p < (int)peers.peers; p += blockDim.x) raise_flag(peers.flags_of[p], now);
        if (threadIdx.x == 0) peers.count[1 - turn] = now;
    }
    if (!is_border) return;
    for (int p = threadIdx.x; p < (int)peers.peers; p += blockDim.x) {
        wait_for_flag(peers.flags + peers.ranks[p], now, peers.lost, peers.patience);
    }
    __syncthreads();
}
#endif

__device__ __forceinline__ int block_of(const Out& out) {
    touch_guard(out);
    int block = block_at(out, blockIdx.x);
#if defined(HAS_PEERS)
    exchange_flags(out.peers, out.turn, block);
#endif
    return block;
}

__device__ __forceinline__ float rounded_up(float x) { return x; }
__device__ __forceinline__ float rounded_up(double x) { return __double2float_ru(x); }

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
__device__ __forceinline__ void raise(const Out& out, float fastest, int i, real speed2) {
    float floor = 0.8f * fastest, own = rounded_up(speed2);
    if (own <= floor && i != 0) return;
    int turn = out.turn;
    unsigned long long step = (out.fastest[turn] >> 32) + 1;
    atomicMax(out.fastest + 1 - turn, step << 32 | __float_as_uint(own <= floor ? floor : own));
}

// Smallest square of a speed, as its bits, with which a step from a distance travelled exceeds a limit, or somewhat less: it
// is safe by 1e-5 of that speed against rounding here. Without motion a step is taken as long as the distance is less than the
// limit, or zero.
__device__ __forceinline__ unsigned halting_from(const Out& out, float travelled, float limit) {
    if (!(travelled <= 0 || travelled < limit)) return 0;
    float room = __fadd_rd(limit, -__fadd_ru(travelled, out.rounding));
    if (!(room > 0)) return 1;
    float speed = room / (float)out.drift * (1 - 1e-5f);
    return max(1u, __float_as_uint(speed * speed));
}

// Notes how far particles may have travelled, and which speed halts the next step. Called by the thread of the first particle.
__device__ __forceinline__ void note(const Out& out, float fastest, bool halted) {
    int turn = out.turn, next = 1 - turn;
    float travelled = travelled_by_now(out, out.travelled[turn], fastest);
    unsigned* halting = (unsigned*)out.travelled;
    out.travelled[next] = travelled;
    halting[HALTING + next] = halting_from(out, travelled, out.limit);
    if (out.bound) {
        float bound = out.prunes ? fminf(out.limit, __fadd_rd(travelled, out.inner_limit)) : out.bound[turn];
        out.bound[next] = bound;
        halting[HALTING_PRUNED + next] = halting_from(out, travelled, bound);
    }
    *out.halted_steps += halted;
}

// Upper bound of the square of the speed of the move that ended at r, with the rounding of r: beyond an open side that is more
// than `out.rounding`, which is for positions inside the box.
__device__ __forceinline__ real speed2_of(const Out& out, const Grid& grid, const Vec& r, const Vec& v) {
    if (is_inside(grid, r)) return dot(v, v);
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

#if defined(HAS_PEERS)
// Stores the row of a border particle as a ghost of the ranks that need it; see
// md/domain/on_device/peers.py.
__device__ __forceinline__ void store_at_peers(const Peers& peers, int n, int i, const Vec& r, const Vec& v) {
    for (int p = 0; p < (int)peers.peers; ++p) {
        int k = peers.place[p * (int)peers.borders + i];
        if (k < 0 || !peers.marks[k]) continue;
        store_row((real*)peers.pos[p], (velocity*)peers.vel[p], n, k + peers.shift[p], r, v);
    }
}
#endif

// Called by the thread of the first particle.
__device__ __forceinline__ void keep_time(const Out& out, unsigned fastest, bool halted) {
    out.clock[1 - out.turn] = out.clock[out.turn] + !halted;
    if (out.fastest) note(out, __uint_as_float(fastest), halted);
}

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    unsigned fastest = out.fastest ? ((const unsigned*)out.fastest)[2 * (int)out.turn] : 0;  // bits of a square
    bool halted = out.fastest && fastest >= *halting_of(out);  // also for NaN
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
#if defined(HAS_PEERS)
    if (i < (int)out.peers.borders) store_at_peers(out.peers, n, i, r, v);
#endif
    if (out.fastest) raise(out, __uint_as_float(fastest), i, speed2_of(out, grid, r, v));
    if (i == 0) keep_time(out, fastest, halted);
}

#if defined(HAS_PEERS)
// Whether a row has no particle: it is 0 after the step too, and the thread of the first row keeps the time all the same.
__device__ __forceinline__ bool is_absent(const Out& out, int n, int i) {
    if (i < out.peers.live[0]) return false;
    if (i < out.peers.live[1]) store_row(out.pos, (velocity*)out.vel, n, i, zero(), zero());
    if (i == 0) {
        unsigned fastest = out.fastest ? ((const unsigned*)out.fastest)[2 * (int)out.turn] : 0;
        if (out.fastest) raise(out, __uint_as_float(fastest), i, 0);
        keep_time(out, fastest, out.fastest && fastest >= *halting_of(out));
    }
    return true;
}
#endif
#endif
