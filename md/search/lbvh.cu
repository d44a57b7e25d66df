// A walk through a tree of boxes; see lbvh.py, and tree.py for how nodes are numbered.

#include "md/images.cuh"
#include "md/tree.cuh"

// How far a particle walks, and the square of that, for inner nodes and for leaves; see far_of in lbvh.py.
struct Far {
    real reach, inner2, leaf2;
};

// Folds the law over all leaves in reach of a position: that of i, or of its image.
template <bool ASKS>
__device__ __forceinline__ Vec walk(int n, const real* pos, const real* vel, const real* nodes, const Far& far,
                                    const Grid& grid, const Law& law, int i, const Vec& ri, const Vec& vi, const Vec& at,
                                    int image, Vec acc) {
    int node = 0;
    while (node >= 0) {
        Node here = load_node(nodes, node);
        int j = node - (n - 1);
        bool near = gap2(at, here.low, here.high) < (j < 0 ? far.inner2 : far.leaf2);
        node = near ? here.way.x : here.way.y;
        if (!near || j < 0 || j == i) continue;
        Vec rj = load(pos, n, j);
        if (ASKS && !is_nearest(grid, ri, rj, here.low, image)) continue;
        Vec dr = displacement(grid, ri, rj);
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
    return acc;
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const real* nodes, const int* way,
                                 const real* radius, Reach reach, Grid grid, Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i), acc;
    Far far = {reach.reach, reach.reach2};
    if (radius) {
        far.reach += reach.scale * radius[i];
        far.inner2 = far.reach * far.reach;
    }
    far.leaf2 = max(far.inner2, reach.leaf2);
    Node root = load_node(nodes, 0);
    bool asks = needs_images(grid, ri, root.low, root.high, far.reach);
    if (asks) {
        acc = walk<true>(n, pos, vel, nodes, far, grid, law, i, ri, vi, ri, 0, zero());
    } else {
        acc = walk<false>(n, pos, vel, nodes, far, grid, law, i, ri, vi, ri, 0, zero());
    }
    for (int image = 1; image < (asks ? (DIM == 3 ? 27 : 9) : 1); ++image) {
        if (!is_needed(grid, ri, image, root.low, root.high, far.reach)) continue;
        Vec at = image_of(grid, ri, image);
        acc = walk<true>(n, pos, vel, nodes, far, grid, law, i, ri, vi, at, image, acc);
    }
    finish(out, grid, n, i, ri, vi, acc);
}
