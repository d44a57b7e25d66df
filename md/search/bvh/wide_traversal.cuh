// Descent of a block of threads in a wide bounding volume hierarchy; see wide_bvh.py. A block works on a node of level 1, a
// thread on each of its particles. All threads of the block reach each barrier.

#include "md/search/bvh/wide_boxes.cuh"
#include "md/particles/byte_coordinates.cuh"

#define MOST_NODES 256  // nodes within reach of a block on a level, or leaves
#define MOST_NEAR 64    // leaves within reach of a leaf
#define WARPS (BLOCK / 32)

struct Descent {
    int nodes[2][MOST_NODES];     // within reach of the block: on one level, and on the level below
    int near[LEAVES][MOST_NEAR];  // leaves within reach of each leaf of the block
    int found[2][WARPS];          // nodes that each warp has found in this round, and in the last one
};

// Appends the values of the threads that have one to a list of `count`, in the order of the threads; returns the new count,
// which may be larger than the room. `round` is 0 or 1, alternately.
__device__ __forceinline__ int append(Descent& descent, int& round, bool has, int value, int* list, int count) {
    unsigned votes = __ballot_sync(~0u, has);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, *found = descent.found[round ^= 1];
    if (lane == 0) found[warp] = __popc(votes);
    __syncthreads();
    int place = count + __popc(votes & ((1u << lane) - 1));
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        if (w < warp) place += found[w];
        count += found[w];
    }
    if (has && place < MOST_NODES) list[place] = value;
    return count;
}

// Lists the leaves within reach of a node of level 1, ascending. Returns their number, and the list; or a number above
// MOST_NODES if there are more nodes than that on some level.
__device__ __forceinline__ int descend(Descent& descent, int block, const real* boxes, const Levels& levels, real reach2,
                                       const Grid& grid, const int*& leaves) {
    int level = levels.count - 1, count = 0, round = 0;
    int *here = descent.nodes[0], *below = descent.nodes[1];
    int first = first_of(levels, level), number = number_of(levels, level);
    Box own = load_box(boxes, levels.first[1] + block);
    for (int k = 0; k < number; k += BLOCK) {
        int node = k + threadIdx.x;
        bool is_near = node < number && gap2(grid, own, load_box(boxes, first + node)) < reach2;
        count = append(descent, round, is_near, node, here, count);
    }
    __syncthreads();
    while (level > 0 && count <= MOST_NODES) {
        --level;
        first = first_of(levels, level);
        number = number_of(levels, level);
        int bits = level == 0 ? LEAVES_BITS : NODES_BITS, all = count << bits, found = 0;
        for (int k = 0; k < all; k += BLOCK) {
            int item = k + threadIdx.x, within = item & ((1 << bits) - 1);
            int node = item < all ? here[item >> bits] << bits | within : 0;
            bool is_there = item < all && node < number;
            bool is_near = is_there && gap2(grid, own, load_box(boxes, first + node)) < reach2;
            found = append(descent, round, is_near, node, below, found);
        }
        __syncthreads();
        int* swapped = here;
        here = below;
        below = swapped;
        count = found;
    }
    leaves = here;
    return count;
}

// Lists the leaves within reach of the thread's own leaf, among `count` of the block. Returns their number, which may be larger
// than the room. All lanes of the warp take part.
__device__ __forceinline__ int select(Descent& descent, int leaf, const int* leaves, int count, const real* boxes, real reach2,
                                      const Grid& grid) {
    int lane = threadIdx.x % 32, first = lane & ~(LEAF - 1), kept = 0;
    int* near = descent.near[threadIdx.x / LEAF];
    Box own = load_box(boxes, leaf);
    for (int k = 0; k < count; k += LEAF) {
        int place = k + lane - first, other = place < count ? leaves[place] : 0;
        bool is_near = place < count && gap2(grid, own, load_box(boxes, other)) < reach2;
        unsigned votes = __ballot_sync(~0u, is_near) >> first & ((1u << LEAF) - 1);
        int at = kept + __popc(votes & ((1u << (lane - first)) - 1));
        if (is_near && at < MOST_NEAR) near[at] = other;
        kept += __popc(votes);
    }
    __syncwarp();
    return kept;
}

#define LEAVES_AT_ONCE 4                      // of which the bytes are compared at once
#define KEPT (MOST_NEAR / LEAVES_AT_ONCE)  // words of a thread: a bit for each particle of the leaves near it

// Compares bytes with those of the particles of the next leaves of `near`, from leaf k on. Returns a bit for each particle
// that may be within reach, the highest for the first. The bytes of absent particles are any.
__device__ __forceinline__ unsigned passing_of(const int* leaves, int near, int k, const int* bytes, int own,
                                               const Units& units) {
    unsigned passing = 0;
#pragma unroll
    for (int b = 0; b < LEAVES_AT_ONCE; ++b) {
        const int4* four = (const int4*)(bytes + leaves[min(k + b, near - 1)] * LEAF);
#pragma unroll
        for (int half = 0; half < LEAF / 4; ++half) {
            int4 all = four[half];  // one load of 16 bytes: its members alone would be four
            passing = __funnelshift_l(beyond_reach(units, own, all.x), passing, 1);
            passing = __funnelshift_l(beyond_reach(units, own, all.y), passing, 1);
            passing = __funnelshift_l(beyond_reach(units, own, all.z), passing, 1);
            passing = __funnelshift_l(beyond_reach(units, own, all.w), passing, 1);
        }
    }
    int beyond = LEAVES_AT_ONCE - (near - k);
    return beyond > 0 ? passing & ~0u << LEAF * beyond : passing;
}

// Removes the highest bit of those of `passing_of`, and returns the number of its particle.
__device__ __forceinline__ int next_passing(unsigned& passing, const int* leaves, int k) {
    int bit = 31 - __clz(passing), place = 31 - bit;
    passing ^= 1u << bit;
    return leaves[k + place / LEAF] * LEAF + place % LEAF;
}

// Calls visit(j) for the particles of the first `near` leaves that are near by their bytes, the particle itself and absent ones
// included.
template <class Visit>
__device__ __forceinline__ void for_each_passing(const int* leaves, int near, const int* bytes, int own, const Units& units,
                                                 Visit visit) {
    for (int k = 0; k < near; k += LEAVES_AT_ONCE) {
        unsigned passing = passing_of(leaves, near, k, bytes, own, units);
        while (passing) visit(next_passing(passing, leaves, k));
    }
}

// Calls visit(j) for the particles of the first `near` leaves that are near by their bytes, except particle i, in the order of
// the leaves. The bits of all leaves come first, in `kept`: lanes that have none in some leaves need not wait for those that do.
template <class Visit>
__device__ __forceinline__ void visit_near(const int* leaves, int near, int n, int i, const int* bytes, const Units& units,
                                           unsigned (*kept)[BLOCK], Visit visit) {
    int filled = 0, own = bytes[i];
    unsigned long long firsts = 0;  // four bits for each of those kept: the number of its first leaf / LEAVES_AT_ONCE
    for (int k = 0; k < near; k += LEAVES_AT_ONCE) {
        unsigned passing = passing_of(leaves, near, k, bytes, own, units);
        if (!passing) continue;
        kept[filled][threadIdx.x] = passing;
        firsts |= (unsigned long long)(k / LEAVES_AT_ONCE) << 4 * filled++;
    }
    unsigned passing = 0;
    for (int taken = 0, k = 0; passing || taken < filled;) {
        if (!passing) {
            passing = kept[taken++][threadIdx.x];
            k = (int)(firsts & 15) * LEAVES_AT_ONCE;
            firsts >>= 4;
        }
        int j = next_passing(passing, leaves, k);
        if (j != i && j < n) visit(j);
    }
}

// Calls visit(leaf) for the leaves within reach of a box, ascending: one thread alone, whatever their number.
template <class Visit>
__device__ __forceinline__ void descend_alone(const Box& own, const real* boxes, const Levels& levels, real reach2,
                                              const Grid& grid, Visit visit) {
    int top = levels.count - 1, level = top, node = 0, last = number_of(levels, top);
    while (level < top || node < last) {
        bool is_there = node < number_of(levels, level);
        if (is_there && gap2(grid, own, load_box(boxes, first_of(levels, level) + node)) < reach2) {
            if (level > 0) {
                --level;
                node *= level == 0 ? LEAVES : NODES;
                continue;
            }
            visit(node);
        }
        ++node;
        while (level < top && (node % (level == 0 ? LEAVES : NODES) == 0 || node >= number_of(levels, level))) {
            node = (node - 1) / (level == 0 ? LEAVES : NODES) + 1;  // after the parent
            ++level;
        }
    }
}
