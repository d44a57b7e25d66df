// Output of a force kernel on a sorted copy: row i is written to the slot it was copied from; see sorted_copy.py.

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    store(out.rows, n, out.order[i], acc);
}
