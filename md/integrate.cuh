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
__device__ __forceinline__ float rounded_up(float x) { return x; }
__device__ __forceinline__ float rounded_up(double x) { return __double2float_ru(x); }

// Raises a number that is not negative to another; such numbers are ordered as their bits are, NaN above them all.
__device__ __forceinline__ void raise(float* most, real x) {
    unsigned bits = __float_as_uint(rounded_up(x)), *word = (unsigned*)most;
#if __CUDA_ARCH__ >= 800
    unsigned warp = __activemask();
    bits = __reduce_max_sync(warp, bits);
    if (threadIdx.x % 32 != __ffs(warp) - 1) return;
#endif
    if (bits > *(volatile unsigned*)word) atomicMax(word, bits);
}

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    bool halted = out.halt && *out.halt;
    Vec v = halted ? vi : add_scaled(vi, out.kick, acc);
    store(out.vel, n, i, v);
    place(grid, ri, halted ? ri : add_scaled(ri, out.drift, v), out.pos, n, i, out.id, out.step, out.fault);
    if (out.fastest) raise(out.fastest, dot(v, v));
}
#endif
