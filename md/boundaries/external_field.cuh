// Gravity and walls; see external_field.py. The loader makes `struct Outside` from the record.

#if defined(HAS_OUTSIDE)
// Radius of a particle; `radius` is null if all are equal.
__device__ __forceinline__ real radius_of(const Outside& o, const real* radius, int i) {
    return radius ? radius[i] : o.radius;
}

// Adds gravity, the walls at the ends of the axes and the motion of the container to a force. `now` holds the reversed
// acceleration of the container, and its velocity if dashpots depend on it.
__device__ __forceinline__ Vec outside(const Outside& o, real radius, const double* now, const Grid& grid, const Vec& r,
                                       const Vec& v, Vec acc) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        bool shaken = axis == o.axis;
        real force = o.pull[axis] + (shaken ? (real)now[0] : (real)0);
        real low = radius - r.x[axis], high = radius - (grid.length[axis] - r.x[axis]);
        if (o.spring[axis] > 0 && (low > 0 || high > 0)) {
            real speed = v.x[axis] + (shaken ? (real)now[1] : (real)0);
            if (low > 0) force += o.spring[axis] * low - o.damping[axis] * speed;
            if (high > 0) force -= o.spring[axis] * high + o.damping[axis] * speed;
        }
        acc.x[axis] += force;
    }
    return acc;
}
#endif
