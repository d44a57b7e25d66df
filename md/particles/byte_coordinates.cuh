// Coordinates of one byte for each axis; see units.py. The launcher makes `struct Units` from the record of the units.

#if defined(HAS_UNITS)
// Coordinates of a position, one byte for each axis: whole units, modulo 256.
__device__ __forceinline__ int bytes_of(const Units& units, const Vec& r) {
    int bytes = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        bytes |= (int)((long long)floor(r.x[axis] * units.per_unit[axis]) & 255) << (8 * axis);
    }
    return bytes;
}

// A number that is negative if two particles may be within reach. The difference of the bytes is one number: a byte may be one
// too small, by the borrow of the byte before.
__device__ __forceinline__ int beyond_reach(const Units& units, int a, int b) {
    int apart = a - b;
    return __dp4a(apart, apart, ~units.most);  // the sum of squares - most - 1
}
#endif
