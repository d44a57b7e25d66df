// Cells of a user's linked lists; see compiled_code.cu.

// Which cell a particle is in, of cells as wide as the cutoff or wider.
__device__ __forceinline__ int3 cell_at(const double* p, double3 low, double3 width, int3 cells) {
    int3 at = make_int3((p[0] - low.x) / width.x, (p[1] - low.y) / width.y, (p[2] - low.z) / width.z);
    return make_int3(max(min(at.x, cells.x - 1), 0), max(min(at.y, cells.y - 1), 0), max(min(at.z, cells.z - 1), 0));
}
