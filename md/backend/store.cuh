// The plain output of a force kernel: the accumulator goes to row i of an (n, DIM) array.

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    store(out.data, n, i, acc);
}
