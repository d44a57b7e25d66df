// Points and boundary values of the kernels that are launched once a sweep, of md/cavity/strategies/cuda.py and tiled.py.
//
// Contract. The constants NX and NY, the shape of the fields, are defined. A kernel has a thread for each point inside, and
// after those one for each boundary point. A boundary point whose entry in `sources` is not negative copies what is
// computed at that point inside, so that no second launch is needed.
#include "../scheme.cuh"

#define INNER ((NX - 2) * (NY - 2))

__device__ __forceinline__ int inner_point(int k) { return (k / (NX - 2) + 1) * NX + k % (NX - 2) + 1; }

__device__ __forceinline__ bool is_inner(int point) {
    int x = point % NX, y = point / NX;
    return x > 0 && x < NX - 1 && y > 0 && y < NY - 1;
}

__device__ __forceinline__ Cross cross_at(const number* field, int point) {
    return {field[point], field[point - 1], field[point + 1], field[point - NX], field[point + NX]};
}

// The pressure at a point inside after one more sweep.
__device__ __forceinline__ number swept(const Cross& at, number source, const Factors& factors) {
    return (at.west + at.east + at.south + at.north - source) * factors.quarter;
}
