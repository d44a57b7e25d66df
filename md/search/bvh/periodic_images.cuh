// Images of a position at periodic sides, for a walk through boxes that may reach out of the box; see periodic_images.py.

// Whether a position has anything in reach of that image of it: of the digits of `image` 1 is up a length, 2 down.
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

// Whether a position has anything in reach of any image of it but itself.
__device__ __forceinline__ bool needs_images(const Grid& grid, const Vec& r, const Vec& low, const Vec& high, real reach) {
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

// Whether that image of a is nearest to b, which may stand in the tree at `there`, a length away: two images meet nobody
// twice.
__device__ __forceinline__ bool is_nearest(const Grid& grid, const Vec& a, const Vec& b, const Vec& there, int image) {
    for (int axis = 0; axis < DIM; ++axis, image /= 3) {
        real half = grid.half[axis], d = a.x[axis] - b.x[axis], gone = there.x[axis] - b.x[axis];
        int nearest = d > half ? -1 : d < -half ? 1 : 0, out = gone > half ? 1 : gone < -half ? -1 : 0;
        int moved = image % 3 == 2 ? -1 : image % 3;
        if (moved - out != nearest) return false;
    }
    return true;
}
