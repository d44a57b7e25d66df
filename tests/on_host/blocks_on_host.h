// Enough of CUDA to run a kernel on the host with all threads of a block: each is a fiber, and fibers take turns where they
// wait for others. Tensor cores are emulated from the layouts of their fragments, with products in half precision.
#include <setjmp.h>
#include <ucontext.h>
#define __syncwarp of_one_lane  // that of the header is for one lane
#include "cuda_on_host.h"
#undef __syncwarp
#undef __syncthreads
#define FIBERS 256
#define __saturatef(x) (((x) > 0) ? ((x) < 1 ? (x) : 1.0f) : 0.0f)
#pragma GCC push_options
#pragma GCC optimize("O2")  // emulated warps run longer than they take to compile
struct float2 {
    float x, y;
};
struct float3 {
    float x, y, z;
};
struct uint4 {
    unsigned x, y, z, w;
};
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static uint4 shared_memory[1 << 14];
static ucontext_t fibers[FIBERS];
static jmp_buf places[FIBERS], turn_of_others;  // a context is entered once: later switches need no call of the system
static std::vector<char> stacks[FIBERS];
static bool started[FIBERS], done[FIBERS];
static int rounds[FIBERS], arrived = 0, generation = 0;
struct Slot {
    unsigned words[8];
};
static Slot slots[2][FIBERS];

inline void yield_to_others() {
    int own = threadIdx.x;
    if (!_setjmp(places[own])) _longjmp(turn_of_others, 1);
    threadIdx.x = own;
}
inline void __syncthreads() {
    int seen = generation;
    if (++arrived == FIBERS) {
        arrived = 0;
        ++generation;
    }
    while (seen == generation) yield_to_others();
}
// The numbers that all lanes of the warp bring to the same place.
template <class T> std::array<T, 32> of_all_lanes(T own) {
    static_assert(sizeof(T) <= sizeof(Slot));
    int thread = threadIdx.x, first = thread - thread % 32, round = ++rounds[thread];
    memcpy(&slots[round % 2][thread], &own, sizeof own);
    for (int k = 0; k < 32; ++k) {
        while (rounds[first + k] < round) yield_to_others();
    }
    std::array<T, 32> all;
    for (int k = 0; k < 32; ++k) memcpy(&all[k], &slots[round % 2][first + k], sizeof own);
    return all;
}
inline void __syncwarp() { of_all_lanes(0); }
template <class T> T lane_shfl(T own, int lane) { return of_all_lanes(own)[lane & 31]; }
template <class T> T lane_up(T own, int by) {
    int lane = threadIdx.x % 32;
    auto all = of_all_lanes(own);
    return lane >= by ? all[lane - by] : own;
}
template <class T> T lane_xor(T own, int mask) {
    int lane = threadIdx.x % 32;
    return of_all_lanes(own)[lane ^ mask];
}
inline unsigned lane_ballot(int yes) {
    unsigned votes = 0;
    auto all = of_all_lanes(yes);
    for (int lane = 0; lane < 32; ++lane) votes |= (unsigned)(all[lane] != 0) << lane;
    return votes;
}
inline unsigned lane_max(unsigned own) {
    auto all = of_all_lanes(own);
    unsigned most = 0;
    for (unsigned one : all) most = max(most, one);
    return most;
}
#define __reduce_max_sync(lanes, own) lane_max(own)
#define __shfl_sync(lanes, own, lane) lane_shfl(own, lane)
#define __shfl_up_sync(lanes, own, by) lane_up(own, by)
#define __shfl_xor_sync(lanes, own, mask) lane_xor(own, mask)
#define __ballot_sync(lanes, yes) lane_ballot(yes)

inline unsigned packed(float first, float second) {
    _Float16 both[2] = {(_Float16)first, (_Float16)second};
    unsigned bits;
    memcpy(&bits, both, 4);
    return bits;
}
struct OfHalves {  // the number of each half: a conversion is a call of a library
    float of[1 << 16];
    OfHalves() {
        for (int bits = 0; bits < 1 << 16; ++bits) {
            unsigned short own = bits;
            _Float16 half;
            memcpy(&half, &own, 2);
            of[bits] = (float)half;
        }
    }
};
static const OfHalves of_halves;
inline float2 unpacked(unsigned bits) { return {of_halves.of[bits & 0xffff], of_halves.of[bits >> 16]}; }
inline unsigned shared_address(const void* place) { return (unsigned)((const char*)place - (const char*)shared_memory); }
inline unsigned word_of(unsigned address, int word) {
    unsigned bits;
    memcpy(&bits, (const char*)shared_memory + address + 4 * word, 4);
    return bits;
}
inline void load_columns(unsigned (&b)[4], unsigned row) {
    int lane = threadIdx.x % 32;
    auto rows = of_all_lanes(row);
    for (int m = 0; m < 4; ++m) b[m] = word_of(rows[8 * m + lane / 4], lane % 4);
}
inline void load_rows(unsigned (&b)[4], unsigned row) {
    int lane = threadIdx.x % 32, column = lane / 4;
    auto rows = of_all_lanes(row);
    for (int m = 0; m < 4; ++m) {
        float pair[2];
        for (int k = 0; k < 2; ++k) {
            float2 both = unpacked(word_of(rows[8 * m + 2 * (lane % 4) + k], column / 2));
            pair[k] = column % 2 ? both.y : both.x;
        }
        b[m] = packed(pair[0], pair[1]);
    }
}
inline unsigned lower_twice(unsigned both) { return (both & 0xffff) * 0x10001u; }
inline unsigned upper_twice(unsigned both) { return (both >> 16) * 0x10001u; }
inline float either(bool first, float a, float b) { return first ? a : b; }
inline unsigned times(unsigned a, unsigned b) {
    float2 left = unpacked(a), right = unpacked(b);
    return packed(left.x * right.x, left.y * right.y);
}
inline unsigned saturated(unsigned a, unsigned b, unsigned c) {
    float2 left = unpacked(a), right = unpacked(b), added = unpacked(c);
    float x = fmaf(left.x, right.x, added.x), y = fmaf(left.y, right.y, added.y);
    return packed(__saturatef(x), __saturatef(y));
}
inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const float (&c)[4]) {
    int lane = threadIdx.x % 32;
    auto all = of_all_lanes(Slot{{a[0], a[1], a[2], a[3], b0, b1}});
    float sums[4];
    for (int q = 0; q < 4; ++q) {
        int row = lane / 4 + 8 * (q / 2), column = 2 * (lane % 4) + q % 2;
        float sum = c[q];
        for (int k = 0; k < 16; ++k) {
            float2 left = unpacked(all[4 * (row % 8) + k % 8 / 2].words[row / 8 + 2 * (k / 8)]);
            float2 right = unpacked(all[4 * column + k % 8 / 2].words[4 + k / 8]);
            sum += k % 2 ? left.y * right.y : left.x * right.x;
        }
        sums[q] = sum;
    }
    for (int q = 0; q < 4; ++q) d[q] = sums[q];
}

inline void multiply(unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1, const unsigned (&c)[2]) {
    float2 low = unpacked(c[0]), high = unpacked(c[1]);
    float sums[4] = {low.x, low.y, high.x, high.y};
    multiply(sums, a, b0, b1, sums);
    d[0] = packed(sums[0], sums[1]);
    d[1] = packed(sums[2], sums[3]);
}

static void (*kernel_of_block)();
inline void fiber(int thread) {
    threadIdx.x = thread;
    kernel_of_block();
    done[thread] = true;
    _longjmp(turn_of_others, 1);
}
// Runs a kernel, given as a function without arguments, with all threads of block `number`.
inline void run_block(int number, void (*kernel)()) {
    blockIdx.x = number;
    blockDim.x = FIBERS;
    kernel_of_block = kernel;
    arrived = generation = 0;
    for (int k = 0; k < FIBERS; ++k) {
        stacks[k].resize(1 << 16);
        started[k] = done[k] = false;
        rounds[k] = 0;
        getcontext(&fibers[k]);
        fibers[k].uc_stack.ss_sp = stacks[k].data();
        fibers[k].uc_stack.ss_size = stacks[k].size();
        makecontext(&fibers[k], (void (*)())fiber, 1, k);
    }
    for (bool busy = true; busy;) {
        busy = false;
        for (int k = 0; k < FIBERS; ++k) {
            if (done[k]) continue;
            busy = true;
            threadIdx.x = k;
            if (_setjmp(turn_of_others)) continue;
            if (started[k]) _longjmp(places[k], 1);
            started[k] = true;
            setcontext(&fibers[k]);
        }
    }
}
#pragma GCC pop_options
