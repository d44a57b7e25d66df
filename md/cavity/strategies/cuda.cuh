// Points and boundary values of the kernels that are launched once a sweep, of md/cavity/strategies/cuda.py and tiled.py.
//
// Contract. The constants NX and NY (the shape of the fields), SPACING (numbers from one value of a field to the next) and
// HAS_TABLES are defined. The points inside are numbered by their place in memory: row by row, or by the tables of
// `Stencil`. A kernel has a thread for each of them, and after those one for each boundary point. A boundary point whose
// entry in `sources` is not negative copies what is computed at that point inside, so that no second launch is needed.
#include "../scheme.cuh"

#define INNER ((NX - 2) * (NY - 2))

// A field: values are SPACING numbers apart.
template <class Number> struct Spaced {
    Number* first;
    __device__ __forceinline__ Number& operator[](int place) const { return first[(size_t)place * SPACING]; }
};
typedef Spaced<number> Field;
typedef Spaced<const number> Given;

// Places of a point inside and of its neighbours.
struct Around {
    int centre, west, east, south, north;
};

__device__ __forceinline__ Around around_of(int k, const Stencil& stencil) {
    if (HAS_TABLES) return {stencil.centre[k], stencil.west[k], stencil.east[k], stencil.south[k], stencil.north[k]};
    int point = (k / (NX - 2) + 1) * NX + k % (NX - 2) + 1;
    return {point, point - 1, point + 1, point - NX, point + NX};
}

__device__ __forceinline__ Cross cross_at(const Given& field, const Around& at) {
    return {field[at.centre], field[at.west], field[at.east], field[at.south], field[at.north]};
}

// The pressure at a point inside after one more sweep.
__device__ __forceinline__ number swept(const Cross& at, number source, const Factors& factors) {
    return (at.west + at.east + at.south + at.north - source) * factors.quarter;
}

// The pressure at a boundary point after one more sweep.
template <class Edges>
__device__ __forceinline__ number swept_edge(int edge, const Given& p, const Given& source, const Edges& boundary,
                                             const Stencil& stencil, const Factors& factors) {
    int from = boundary.sources[edge];
    if (from < 0) return boundary.values[edge];
    Around at = around_of(from, stencil);
    return swept(cross_at(p, at), source[at.centre], factors);
}
