// Numbers of a particle that goes from rank to rank; see rank_arrays.cu.

#define EACH (2 * DIM)

__device__ __forceinline__ void read_numbers(const real* numbers, int each, int k, Vec& r, Vec& v) {
    const real* own = numbers + (size_t)each * k;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        r.x[axis] = own[axis];
        v.x[axis] = own[DIM + axis];
    }
}
