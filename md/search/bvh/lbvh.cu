// A walk through a tree of boxes for each particle; see lbvh.py, traversal.cuh, and tree.py for how nodes are numbered.

#include "md/search/bvh/traversal.cuh"

// As far_of in lbvh.py.
__device__ __forceinline__ Far far_of(const real* radius, const Reach& reach, int i) {
    real own = reach.reach + (radius ? reach.scale * radius[i] : (real)0), own2 = radius ? own * own : reach.reach2;
    return {own, own2, max(own2, reach.leaf2)};
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const real* nodes, const int* way,
                                 const real* radius, Reach reach, Grid grid, Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    World world = {n, pos, vel, nullptr, nodes, way};
    Walker who = walker_of(world, i, false);
    Ropes ropes;
    auto acc = initial(law, who.r);
    auto react = [&](int j, const Vec& dr) { acc = interact(law, vel, n, i, j, dot(dr, dr), dr, who.v, acc); };
    traverse_images(world, far_of(radius, reach, i), grid, who, ropes, react);
    finish(out, grid, n, i, who.r, who.v, result(law, who.r, who.v, acc));
}
