// Cells of a user's linked lists; see compiled_code.cu.

// Which cell a particle is in, of cells as wide as the cutoff or wider.
__device__ __forceinline__ int3 cell_at(const double* p, double3 low, double3 width, int3 cells) {
    return make_int3(min(int((p[0] - low.x) / width.x), cells.x - 1), min(int((p[1] - low.y) / width.y), cells.y - 1),
                     min(int((p[2] - low.z) / width.z), cells.z - 1));
}
