// What laws of pairs share; see pair.py. A law's functor includes this first.

// The accumulator of a particle that has met no other yet, and what the accumulator amounts to in the end, of a law that has
// no functions of these names of its own: the force, summed from zero.
template <class Any>
__device__ __forceinline__ Vec initial(const Any& law, const Vec& ri) {
    return zero();
}

template <class Any, class Acc>
__device__ __forceinline__ Acc result(const Any& law, const Vec& ri, const Vec& vi, const Acc& acc) {
    return acc;
}

// Sum of the radii of two particles, in d: the distance at which they touch; 1 where there are no radii.
__device__ __forceinline__ real pair_size(const real* radius, int i, int j) {
    return radius ? radius[i] + radius[j] : (real)1;
}
