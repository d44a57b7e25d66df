// Forces by a traversal of the tree for each particle; see lbvh.py and traversal.cuh, and tree.py for node numbers.

#include "md/search/bvh/traversal.cuh"

// Search radius of a particle, as in lbvh.py.
__device__ __forceinline__ QueryReach reach_of(const real* radius, const Reach& reach, int i) {
    real own = reach.reach + (radius ? reach.scale * radius[i] : (real)0), own2 = radius ? own * own : reach.reach2;
    return {own, own2, max(own2, reach.leaf2)};
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const real* nodes, const int* ropes,
                                 const real* radius, Reach reach, Grid grid, Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    TreeView view = {n, pos, vel, nullptr, nodes, ropes};
    Query query = query_of(view, i, false);
    RopeTraversal traversal;
    auto acc = initial(law, query.r);
    auto visit = [&](int j, const Vec& dr) { acc = interact(law, vel, n, i, j, dot(dr, dr), dr, query.v, acc); };
    traverse_images(view, reach_of(radius, reach, i), grid, query, traversal, visit);
    finish(out, grid, n, i, query.r, query.v, result(law, query.r, query.v, acc));
}
