// Functions shared by all pair laws; see pair.py. The .cuh file of a law includes this first.

// Defaults of `initial` and `result` for a law that does not define them: the accumulator is the force, summed from zero.
template <class Any>
__device__ __forceinline__ Vec initial(const Any& law, const Vec& ri) {
    return zero();
}

template <class Any, class Acc>
__device__ __forceinline__ Acc result(const Any& law, const Vec& ri, const Vec& vi, const Acc& acc) {
    return acc;
}

// Sum of the radii of two particles, in d: the distance at which they touch; 1 without radii.
__device__ __forceinline__ real pair_size(const real* radius, int i, int j) {
    return radius ? radius[i] + radius[j] : (real)1;
}

// Sums of a particle over the partners within one radius, for `result_of_windows` of a law with `windows` (pair.py): their
// number, and the position and velocity of the particle less those of each.
struct WindowSums {
    int count;
    Vec pos, vel;
};
