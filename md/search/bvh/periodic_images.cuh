// Images of a position at periodic sides, for traversals of nodes that may extend beyond the box; see
// periodic_images.py.

// Whether the box from `low` to `high` is within reach of an image of a position. Of the digits of `image` 1 is a
// length up, 2 a length down.
__device__ __forceinline__ bool is_needed(const Grid& grid, const Vec& r, int image, const Vec& low, const Vec& high,
                                          real reach) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        int digit = image % 3;
        real length = grid.length[axis];
        if (digit == 1 && !(grid.periodic[axis] && r.x[axis] + length - high.x[axis] < reach)) return false;
        if (digit == 2 && !(grid.periodic[axis] && low.x[axis] - r.x[axis] + length < reach)) return false;
    }
    return true;
}

// Whether the box from `low` to `high` is within reach of any image of a position other than the position itself.
__device__ __forceinline__ bool needs_images(const Grid& grid, const Vec& r, const Vec& low, const Vec& high,
                                             real reach) {
    bool needs = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = r.x[axis], length = grid.length[axis];
        needs |= grid.periodic[axis] && (x + length - high.x[axis] < reach || low.x[axis] - x + length < reach);
    }
    return needs;
}

__device__ __forceinline__ Vec image_of(const Grid& grid, Vec r, int image) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        if (image % 3 == 1) r.x[axis] += grid.length[axis];
        if (image % 3 == 2) r.x[axis] -= grid.length[axis];
    }
    return r;
}

// Whether an image of a is the one nearest to b, which the tree may store at `stored`, a length away. So no particle is
// visited by two images.
__device__ __forceinline__ bool is_nearest(const Grid& grid, const Vec& a, const Vec& b, const Vec& stored, int image) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        real half = grid.half[axis], d = a.x[axis] - b.x[axis], offset = stored.x[axis] - b.x[axis];
        int nearest = d > half ? -1 : d < -half ? 1 : 0, out = offset > half ? 1 : offset < -half ? -1 : 0;
        int moved = image % 3 == 2 ? -1 : image % 3;
        if (moved - out != nearest) return false;
    }
    return true;
}
