// Walks through a tree for one of its leaves; see traversal.py, and tree.py for how nodes are numbered.

#if defined(HAS_LAW)
#include "md/search/bvh/periodic_images.cuh"
#include "md/search/bvh/tree.cuh"

#define ROOM 96  // entries of a stack in a thread; as in traversal.py

// What is walked through, and who reads what.
struct World {
    int n;
    const real *pos, *vel;
    const int* order;  // the slot of the particle of each leaf; null where rows are in the order of leaves
    const real* nodes;
    const int* way;
};

// How far it looks, and the square of that, for inner nodes and for leaves.
struct Far {
    real reach, inner2, leaf2;
};

// Whose walk it is. It sees leaves beyond `after` alone, which is its own or -1.
struct Walker {
    int leaf, after, i;
    Vec r, v;
};

__device__ __forceinline__ Walker walker_of(const World& world, int leaf, bool is_later) {
    int i = slot_of(world.order, leaf);
    return {leaf, is_later ? leaf : -1, i, load(world.pos, world.n, i), load(world.vel, world.n, i)};
}

// Tells `react` of a leaf in reach, but of its own, and of each by one image alone.
template <bool ASKS, class React>
__device__ __forceinline__ void meet(const World& world, const Grid& grid, const Walker& who, int partner,
                                     const Vec& there, int image, React& react) {
    if (partner == who.leaf) return;
    int j = slot_of(world.order, partner);
    Vec rj = load(world.pos, world.n, j);
    if (ASKS && !is_nearest(grid, who.r, rj, there, image)) return;
    react(j, displacement(grid, who.r, rj));
}

// From node to node: from the root, or past its own leaf.
struct Ropes {
    template <bool ASKS, class React>
    __device__ __forceinline__ void walk(const World& world, const Far& far, const Grid& grid, const Walker& who,
                                         const Vec& at, int image, React& react) {
        int leaves = world.n - 1, node = who.after < 0 ? 0 : world.way[2 * (leaves + who.after) + 1];
        while (node >= 0) {
            Node here = load_node(world.nodes, node);
            int partner = node - leaves;
            bool near = gap2(at, here.low, here.high) < (partner < 0 ? far.inner2 : far.leaf2);
            node = near ? here.way.x : here.way.y;
            if (near && partner >= 0) meet<ASKS>(world, grid, who, partner, here.low, image, react);
        }
    }
};

// With a stack, as the source does it. A left child bears the number of the last leaf below it, be it a leaf or not, so
// that this is known without a look; the last leaf below a right one is that below its parent.
template <class Stack>
struct Stacked {
    Stack stack;
    template <bool ASKS, class React>
    __device__ __forceinline__ void walk(const World& world, const Far& far, const Grid& grid, const Walker& who,
                                         const Vec& at, int image, React& react) {
        int leaves = world.n - 1, top = 1;
        stack.at(0) = 0;
        while (top > 0) {
            int node = stack.at(--top);
            Node here = load_node(world.nodes, node);
            int partner = node - leaves;
            if (!(gap2(at, here.low, here.high) < (partner < 0 ? far.inner2 : far.leaf2))) continue;
            if (partner >= 0) {
                meet<ASKS>(world, grid, who, partner, here.low, image, react);
                continue;
            }
            int left = here.way.x;
            if ((left < leaves ? left : left - leaves) > who.after) stack.at(top++) = left;
            stack.at(top++) = world.way[2 * left + 1];
        }
    }
};

// A stack in the thread, and one in the block's shared memory, where the threads' entries stand side by side.
struct Local {
    int entry[ROOM];
    __device__ __forceinline__ int& at(int k) { return entry[k]; }
};

struct Shared {
    int* entry;
    __device__ __forceinline__ int& at(int k) { return entry[k * NARROW_THREADS + threadIdx.x]; }
};

// For a leaf's particle and its images.
template <class Walk, class React>
__device__ __forceinline__ void traverse_images(const World& world, const Far& far, const Grid& grid, const Walker& who,
                                            Walk& way, React& react) {
    Node root = load_node(world.nodes, 0);
    bool asks = needs_images(grid, who.r, root.low, root.high, far.reach);
    if (!asks) {
        way.template walk<false>(world, far, grid, who, who.r, 0, react);
        return;
    }
#pragma unroll 1
    for (int image = 0; image < (DIM == 3 ? 27 : 9); ++image) {
        if (!is_needed(grid, who.r, image, root.low, root.high, far.reach)) continue;
        way.template walk<true>(world, far, grid, who, image_of(grid, who.r, image), image, react);
    }
}
#endif
