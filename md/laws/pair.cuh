// What laws of pairs share; see pair.py.

// Sum of the radii of two particles, in d: the distance at which they touch; 1 where there are no radii.
__device__ __forceinline__ real pair_size(const real* radius, int i, int j) {
    return radius ? radius[i] + radius[j] : (real)1;
}
