// Cells of linked lists; see kernels.cu.

// Cell of a point along an axis of a box; points outside are in the cells of its border.
__device__ __forceinline__ int along(double x, double lower, double length, int cells) {
    int at = (int)((x - lower) / length * cells);
    return min(max(at, 0), cells - 1);
}
