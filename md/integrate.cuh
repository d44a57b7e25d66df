// Kick, drift, and the fault word; see integrate.py. Part of integrate.cu, and of a search's kernel where a step is fused into it.

__device__ __forceinline__ void place(const Grid& grid, const Vec& old, Vec r, real* pos, int n, int i, const int* id, long long step,
                                      unsigned long long* fault) {
    bool good = true, finite = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real x = r.x[axis], length = grid.length[axis];
        bool periodic = grid.periodic[axis] != 0;
        if (periodic) {
            if (x >= length) {
                x -= length;
            } else if (x < 0) {
                x += length;
                if (x >= length) x -= length;  // a tiny negative coordinate rounds up to the far side
            }
        }
        r.x[axis] = x;
        good = good && x >= 0 && (x < length || (x == length && !periodic));
        finite = finite && isfinite(x);
    }
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) r.x[axis] = good ? r.x[axis] : old.x[axis];
    store(pos, n, i, r);  // every position in memory stays inside the box
    if (!good) {
        unsigned long long word = 2ull * step + (finite ? 1 : 0);
        atomicMin(fault, word << 32 | (unsigned)id[i]);
    }
}

#if defined(FUSED)
__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    Vec v = add_scaled(vi, out.kick, acc);
    store(out.vel, n, i, v);
    place(grid, ri, add_scaled(ri, out.drift, v), out.pos, n, i, out.id, out.step, out.fault);
}
#endif
