// A walk through a tree of boxes; see lbvh.py, and tree.py for how nodes are named.

// Whether a position has somebody in reach of that image of it; of its digits 1 is up a length, 2 down.
__device__ __forceinline__ bool is_needed(const Grid& grid, const Vec& r, int image, real reach) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        int digit = image % 3;
        if (digit == 0) continue;
        bool close = digit == 1 ? r.x[axis] < reach : r.x[axis] > grid.length[axis] - reach;
        if (!grid.periodic[axis] || !close) return false;
    }
    return true;
}

// Whether `displacement` of two positions is that to this image of the first, so that two images meet nobody twice.
__device__ __forceinline__ bool is_nearest(const Grid& grid, const Vec& a, const Vec& b, int image) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        real d = a.x[axis] - b.x[axis];
        if (image % 3 != (d > grid.half[axis] ? 2 : d < -grid.half[axis] ? 1 : 0)) return false;
    }
    return true;
}

// Square of the distance from a position to a box.
__device__ __forceinline__ real gap2(const Vec& r, const Vec& low, const Vec& high) {
    real sum = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real apart = max(max(low.x[axis] - r.x[axis], r.x[axis] - high.x[axis]), (real)0);
        sum += apart * apart;
    }
    return sum;
}

// Folds the law over the particles of a leaf.
template <bool ASKS>
__device__ __forceinline__ Vec meet(int n, const real* pos, const real* vel, int width, const Grid& grid, const Law& law,
                                    int leaf, int i, const Vec& ri, const Vec& vi, int image, Vec acc) {
    for (int j = leaf * width, end = min(n, j + width); j < end; ++j) {
        Vec rj = load(pos, n, j);
        if (j == i || (ASKS && !is_nearest(grid, ri, rj, image))) continue;
        Vec dr = displacement(grid, ri, rj);
        acc = interact(law, vel, n, i, j, dot(dr, dr), dr, vi, acc);
    }
    return acc;
}

// Folds it over the leaves that a walk from a node finds in reach of a position: that of i, or of its image.
template <bool BACKWARD, bool ASKS>
__device__ __forceinline__ Vec walk(int n, const real* pos, const real* vel, const real* box, const int* way,
                                    const int* beyond, const Reach& reach, const Grid& grid, const Law& law, int leaves,
                                    int node, int i, const Vec& ri, const Vec& vi, const Vec& at, int image, Vec acc) {
    int rows = 2 * (2 * leaves - 1);
    while (node != leaves) {
        int place = node >= 0 ? node : leaves - 1 + ~node;
        bool near = gap2(at, load(box, rows, 2 * place), load(box, rows, 2 * place + 1)) < reach.reach2;
        if (node >= 0) {
            int2 ways = ((const int2*)way)[2 * node + BACKWARD];
            node = near ? ways.x : ways.y;
            continue;
        }
        int leaf = ~node;
        node = beyond[leaf];
        if (near) acc = meet<ASKS>(n, pos, vel, reach.width, grid, law, leaf, i, ri, vi, image, acc);
    }
    return acc;
}

// Its own leaf, then to the right and to the left of it.
template <bool ASKS>
__device__ __forceinline__ Vec walks(int n, const real* pos, const real* vel, const real* box, const int* way,
                                     const int* after, const int* before, const Reach& reach, const Grid& grid,
                                     const Law& law, int leaves, int i, const Vec& ri, const Vec& vi) {
    int own = i / reach.width, right = after[own], left = before[own];
    Vec acc = meet<ASKS>(n, pos, vel, reach.width, grid, law, own, i, ri, vi, 0, zero());
    acc = walk<false, ASKS>(n, pos, vel, box, way, after, reach, grid, law, leaves, right, i, ri, vi, ri, 0, acc);
    return walk<true, ASKS>(n, pos, vel, box, way, before, reach, grid, law, leaves, left, i, ri, vi, ri, 0, acc);
}

extern "C" __global__ void force(int n, const real* pos, const real* vel, const real* box, const int* way,
                                 const int* after, const int* before, Reach reach, Grid grid, Law law, Out out) {
    int i = work_item();
    if (i >= n) return;
    Vec ri = load(pos, n, i), vi = load(vel, n, i), acc;
    bool several = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = ri.x[axis];
        several |= grid.periodic[axis] && (x < reach.reach || x > grid.length[axis] - reach.reach);
    }
    int leaves = (n - 1) / reach.width + 1;
    if (several) {
        acc = walks<true>(n, pos, vel, box, way, after, before, reach, grid, law, leaves, i, ri, vi);
    } else {
        acc = walks<false>(n, pos, vel, box, way, after, before, reach, grid, law, leaves, i, ri, vi);
    }
    for (int image = 1; image < (several ? (DIM == 3 ? 27 : 9) : 1); ++image) {
        if (!is_needed(grid, ri, image, reach.reach)) continue;
        Vec at = ri;
        for (int axis = 0, digits = image; axis < DIM; ++axis, digits /= 3) {
            int digit = digits % 3;
            if (digit) at.x[axis] = digit == 1 ? at.x[axis] + grid.length[axis] : at.x[axis] - grid.length[axis];
        }
        int root = leaves > 1 ? 0 : ~0;
        acc = walk<false, true>(n, pos, vel, box, way, after, reach, grid, law, leaves, root, i, ri, vi, at, image, acc);
    }
    finish(out, grid, n, i, ri, vi, acc);
}
