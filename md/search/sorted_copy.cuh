// The output of a force kernel on a sorted copy: row i goes to the slot that the copy has it from; see sorted_copy.py.

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    store(out.rows, n, out.order[i], acc);
}
