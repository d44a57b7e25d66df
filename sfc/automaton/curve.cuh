// A curve on the device: the automaton of curve.py, with the same tables.
//
// Contract. The loader defines DIM, BASE and CELLS = BASE^DIM, so that divisions are by constants. A table row is one
// state; its columns are cell digits (rank, next) or positions (cell, succ).

typedef unsigned long long u64;

// Index along the curve of a cell inside the grid of side BASE^order.
__device__ __forceinline__ u64 curve_encode(const u64* cell, int order, u64 side, const unsigned short* rank,
                                            const unsigned short* next, unsigned state) {
    u64 index = 0, scale = side;
    for (int level = order - 1; level >= 0; --level) {
        scale /= BASE;
        unsigned digit = 0;
#pragma unroll
        for (int axis = DIM - 1; axis >= 0; --axis) {
            unsigned d = BASE == 2 ? (unsigned)(cell[axis] >> level) & 1u : (unsigned)(cell[axis] / scale % BASE);
            digit = digit * BASE + d;
        }
        index = index * CELLS + rank[state * CELLS + digit];
        state = next[state * CELLS + digit];
    }
    return index;
}

// Cell at an index along the curve; `last` is the greatest index, BASE^(DIM order) - 1.
__device__ __forceinline__ void curve_decode(u64 index, int order, u64 last, const unsigned short* cell,
                                             const unsigned short* succ, unsigned state, u64* found) {
    u64 scale = last / CELLS + 1;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) found[axis] = 0;
    for (int level = 0; level < order; ++level) {
        unsigned position = (unsigned)(index / scale);
        index -= position * scale;
        scale /= CELLS;
        unsigned digit = cell[state * CELLS + position];
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            found[axis] = found[axis] * BASE + digit % BASE;
            digit /= BASE;
        }
        state = succ[state * CELLS + position];
    }
}
