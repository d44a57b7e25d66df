// Enough of CUDA to run a kernel on the host with all threads of all blocks at once, so that blocks can wait for each other.
// Each thread is a fiber; fibers take turns where they wait.
#include <setjmp.h>
#include <ucontext.h>
#define __syncwarp of_one_lane  // those of the header are for one lane
#include "cuda_on_host.h"
#undef __syncwarp
#undef __syncthreads
struct uint4 {
    unsigned x, y, z, w;
};
struct Message {
    unsigned words[12];
};
struct Block {
    std::vector<uint4> shared;
    int threads, arrived = 0, generation = 0;
};
struct Fiber {
    ucontext_t context;
    jmp_buf place;
    bool started = false, done = false;
    int rounds = 0;
    Message messages[2];
};
static std::vector<Block> blocks_at_once;
static std::vector<Fiber> fibers;
static jmp_buf turn_of_others;  // a context is entered once: later switches need no call of the system
static std::vector<std::vector<char>> stacks;
static int fiber_now, first_block;
const size_t STACK = 1 << 16;

inline Block& block_now() { return blocks_at_once[blockIdx.x - first_block]; }
inline uint4* shared_memory() { return block_now().shared.data(); }
inline void enter(int fiber) {
    fiber_now = fiber;
    blockIdx.x = first_block + fiber / blockDim.x;
    threadIdx.x = fiber % blockDim.x;
}
inline void yield_to_others() {
    int own = fiber_now;
    if (!_setjmp(fibers[own].place)) _longjmp(turn_of_others, 1);
    enter(own);
}
inline void __syncthreads() {
    Block& block = block_now();
    int seen = block.generation;
    if (++block.arrived == block.threads) {
        block.arrived = 0;
        ++block.generation;
    }
    while (seen == block.generation) yield_to_others();
}
// The numbers that all lanes of the warp bring to the same place.
template <class T> std::array<T, 32> of_all_lanes(T own) {
    static_assert(sizeof(T) <= sizeof(Message));
    int first = fiber_now - fiber_now % 32, round = ++fibers[fiber_now].rounds;
    memcpy(&fibers[fiber_now].messages[round % 2], &own, sizeof own);
    std::array<T, 32> all;
    for (int k = 0; k < 32; ++k) {
        while (fibers[first + k].rounds < round) yield_to_others();
        memcpy(&all[k], &fibers[first + k].messages[round % 2], sizeof own);
    }
    return all;
}
inline void __syncwarp() { of_all_lanes(0); }
template <class T> T lane_up(T own, int by) {
    int lane = threadIdx.x % 32;
    return of_all_lanes(own)[lane >= by ? lane - by : lane];
}
template <class T> T lane_down(T own, int by) {
    int lane = threadIdx.x % 32;
    return of_all_lanes(own)[lane + by < 32 ? lane + by : lane];
}
inline bool lanes_agree(bool own) {
    bool all = true;
    for (bool one : of_all_lanes(own)) all &= one;
    return all;
}
inline unsigned lane_ballot(bool own) {
    unsigned votes = 0, lane = 0;
    for (bool one : of_all_lanes(own)) votes |= (unsigned)one << lane++;
    return votes;
}
template <class T> T lane_of_number(T own, int lane) { return of_all_lanes(own)[lane % 32]; }
template <class T> T lane_xor(T own, int mask) {
    int lane = threadIdx.x % 32;
    return of_all_lanes(own)[lane ^ mask];
}
#define __shfl_sync(lanes, own, lane) lane_of_number(own, lane)
#define __shfl_xor_sync(lanes, own, mask) lane_xor(own, mask)
#define __ballot_sync(lanes, yes) lane_ballot(yes)
#define __any_sync(lanes, yes) (lane_ballot(yes) != 0)
#define __shfl_up_sync(lanes, own, by) lane_up(own, by)
#define __shfl_down_sync(lanes, own, by) lane_down(own, by)
#define __all_sync(lanes, yes) lanes_agree(yes)

inline void __threadfence() {}
inline double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

template <class T> T atomicCAS(T* word, T expected, T value) {
    T old = *word;
    if (old == expected) *word = value;
    return old;
}

static void (*kernel_of_grid)();
inline void run_fiber(int fiber) {
    enter(fiber);
    kernel_of_grid();
    fibers[fiber_now].done = true;
    _longjmp(turn_of_others, 1);
}
// Runs blocks `first` .. `first + blocks` of `threads` threads of a kernel, given as a function without arguments.
inline void run_blocks(int first, int blocks, int threads, size_t shared_bytes, void (*kernel)()) {
    kernel_of_grid = kernel;
    first_block = first;
    blockDim.x = threads;
    blocks_at_once.assign(blocks, Block{std::vector<uint4>(shared_bytes / 16 + 1, uint4{~0u, ~0u, ~0u, ~0u}), threads});
    fibers = std::vector<Fiber>(blocks * threads);
    while (stacks.size() < fibers.size()) stacks.emplace_back(STACK);
    for (size_t k = 0; k < fibers.size(); ++k) {
        getcontext(&fibers[k].context);
        fibers[k].context.uc_stack.ss_sp = stacks[k].data();
        fibers[k].context.uc_stack.ss_size = STACK;
        makecontext(&fibers[k].context, (void (*)())run_fiber, 1, k);
    }
    for (volatile bool busy = true; busy;) {
        busy = false;
        for (volatile int k = 0; k < blocks * threads; k = k + 1) {
            if (fibers[k].done) continue;
            busy = true;
            if (_setjmp(turn_of_others)) continue;
            enter(k);
            if (fibers[k].started) _longjmp(fibers[k].place, 1);
            fibers[k].started = true;
            setcontext(&fibers[k].context);
        }
    }
}
