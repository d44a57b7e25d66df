// Traversals of a tree for the particle of one leaf; see traversal.py, and tree.py for the numbers of nodes.

#if defined(HAS_LAW)
#include "md/search/bvh/periodic_images.cuh"
#include "md/search/bvh/tree.cuh"

#define ROOM 96  // entries of the stack of a thread; as in traversal.py

// The tree and the particle arrays that its leaves refer to.
struct TreeView {
    int n;
    const real *pos, *vel;
    const int* order;  // the slot of the particle of each leaf; null where rows are in the order of leaves
    const real* nodes;
    const int* ropes;
};

// Search radius of a query, and its square for inner nodes and for leaves.
struct QueryReach {
    real distance, inner2, leaf2;
};

// The particle that a traversal is for: leaf, slot, position, velocity. Only leaves beyond `after` are visited, which
// is its own leaf or -1.
struct Query {
    int leaf, after, i;
    Vec r, v;
};

__device__ __forceinline__ Query query_of(const TreeView& view, int leaf, bool later_only) {
    int i = slot_of(view.order, leaf);
    return {leaf, later_only ? leaf : -1, i, load(view.pos, view.n, i), load(view.vel, view.n, i)};
}

// Calls visit(j, displacement) for a leaf within reach, except the query's own, and for one image of each only.
template <bool CHECK_IMAGES, class Visit>
__device__ __forceinline__ void visit_leaf(const TreeView& view, const Grid& grid, const Query& query, int partner,
                                           const Vec& stored, int image, Visit& visit) {
    if (partner == query.leaf) return;
    int j = slot_of(view.order, partner);
    Vec rj = load(view.pos, view.n, j);
    if (CHECK_IMAGES && !is_nearest(grid, query.r, rj, stored, image)) return;
    visit(j, displacement(grid, query.r, rj));
}

// Traversal along ropes, from the root or from the node after the query's own leaf.
struct RopeTraversal {
    template <bool CHECK_IMAGES, class Visit>
    __device__ __forceinline__ void traverse(const TreeView& view, const QueryReach& reach, const Grid& grid,
                                             const Query& query, const Vec& at, int image, Visit& visit) {
        int leaves = view.n - 1, node = query.after < 0 ? 0 : view.ropes[2 * (leaves + query.after) + 1];
        while (node >= 0) {
            Node here = load_node(view.nodes, node);
            int partner = node - leaves;
            bool near = gap2(at, here.low, here.high) < (partner < 0 ? reach.inner2 : reach.leaf2);
            node = near ? here.ropes.x : here.ropes.y;
            if (near && partner >= 0) visit_leaf<CHECK_IMAGES>(view, grid, query, partner, here.low, image, visit);
        }
    }
};

// Traversal with a stack, as in [karras2012blog]. A left child has the number of the last leaf below it, whether it is a
// leaf or not, so that this leaf is known without a load; the last leaf below a right child is the one below its
// parent.
template <class Stack>
struct StackTraversal {
    Stack stack;
    template <bool CHECK_IMAGES, class Visit>
    __device__ __forceinline__ void traverse(const TreeView& view, const QueryReach& reach, const Grid& grid,
                                             const Query& query, const Vec& at, int image, Visit& visit) {
        int leaves = view.n - 1, top = 1;
        stack.at(0) = 0;
        while (top > 0) {
            int node = stack.at(--top);
            Node here = load_node(view.nodes, node);
            int partner = node - leaves;
            if (!(gap2(at, here.low, here.high) < (partner < 0 ? reach.inner2 : reach.leaf2))) continue;
            if (partner >= 0) {
                visit_leaf<CHECK_IMAGES>(view, grid, query, partner, here.low, image, visit);
                continue;
            }
            int left = here.ropes.x;
            if ((left < leaves ? left : left - leaves) > query.after) stack.at(top++) = left;
            stack.at(top++) = view.ropes[2 * left + 1];
        }
    }
};

// A stack in local memory of the thread, and one in the block's shared memory, where entry k of all threads is
// contiguous.
struct LocalStack {
    int entry[ROOM];
    __device__ __forceinline__ int& at(int k) { return entry[k]; }
};

struct SharedStack {
    int* entry;
    __device__ __forceinline__ int& at(int k) { return entry[k * BLOCK_THREADS + threadIdx.x]; }
};

// Traverses the tree for a particle and for each of its images that may have partners.
template <class Traversal, class Visit>
__device__ __forceinline__ void traverse_images(const TreeView& view, const QueryReach& reach, const Grid& grid,
                                                const Query& query, Traversal& traversal, Visit& visit) {
    Node root = load_node(view.nodes, 0);
    bool check_images = needs_images(grid, query.r, root.low, root.high, reach.distance);
    if (!check_images) {
        traversal.template traverse<false>(view, reach, grid, query, query.r, 0, visit);
        return;
    }
#pragma unroll 1
    for (int image = 0; image < (DIM == 3 ? 27 : 9); ++image) {
        if (!is_needed(grid, query.r, image, root.low, root.high, reach.distance)) continue;
        traversal.template traverse<true>(view, reach, grid, query, image_of(grid, query.r, image), image, visit);
    }
}
#endif
