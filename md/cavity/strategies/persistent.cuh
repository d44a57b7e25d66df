// Regions of the kernel of md/cavity/strategies/persistent.py: which block and which lane has which points.
//
// Contract. The constants INNER_X, INNER_Y (points inside the boundary), SWEEPS, GRID_X, GRID_Y (blocks), COLUMNS (of a lane),
// ROWS (of a warp), WARPS (of a block) and HALO are defined. A point is counted from the first one inside. A block has the
// pressure of a region of 32 * COLUMNS by ROWS * WARPS points; it owns part of them, and the HALO layers around that part
// are copies of what other blocks own.
#include "../scheme.cuh"
#include "exchanged_words.cuh"

#define WIDTH (32 * COLUMNS)
#define HEIGHT (ROWS * WARPS)
#define PITCH ((INNER_X + 3) / 4 * 4)          // of the arrays of exchanged numbers
#define STRIDE (WIDTH + 4)                     // of a row of velocities in shared memory, which starts at column -4
#define EAST ((INNER_X - 1) % COLUMNS)         // column of a lane that is the last one inside
#define PADDED (HEIGHT > INNER_Y)              // whether rows of the region lie above the last one inside
#ifndef MOST_POLLS
#define MOST_POLLS (1 << 21)                   // of one exchange, before it is given up
#endif

typedef decltype(word_of(number())) Word;
struct alignas(COLUMNS * sizeof(number) > 16 ? 16 : COLUMNS * sizeof(number)) Part {
    number value[(COLUMNS * sizeof(number) > 16 ? 16 : COLUMNS * sizeof(number)) / sizeof(number)];
};
#define PARTS (COLUMNS * sizeof(number) / sizeof(Part))

// Loads the numbers of a lane in as few parts as 16 bytes allow, APART parts apart: with 32, each part of a warp is in one
// piece, and no two lanes use the same bank.
template <int APART = 1> __device__ __forceinline__ void load_row(const number* from, number (&to)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Part part = ((const Part*)from)[k * APART];
#pragma unroll
        for (int i = 0; i < COLUMNS / (int)PARTS; ++i) to[k * (COLUMNS / PARTS) + i] = part.value[i];
    }
}

template <int APART = 1> __device__ __forceinline__ void store_row(number* to, const number (&from)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Part part;
#pragma unroll
        for (int i = 0; i < COLUMNS / (int)PARTS; ++i) part.value[i] = from[k * (COLUMNS / PARTS) + i];
        ((Part*)to)[k * APART] = part;
    }
}

// First point of region `k` of `count` along an axis of `inner` points, in steps of `unit` points; the last region ends
// with the axis, or at most `unit` - 1 points beyond.
__device__ __forceinline__ int region_start(int k, int count, int inner, int extent, int unit) {
    return count == 1 ? 0 : k * ((inner - extent + unit - 1) / unit) / (count - 1) * unit;
}

// Part of an axis that a block has: points first .. first + extent, of which it owns begin .. end.
struct Span {
    int first, begin, end;
};

__device__ __forceinline__ Span span_of(int k, int count, int inner, int extent, int unit) {
    Span span;
    span.first = region_start(k, count, inner, extent, unit);
    span.begin = k == 0 ? 0 : span.first + HALO;
    span.end = k == count - 1 ? inner : region_start(k + 1, count, inner, extent, unit) + HALO;
    return span;
}

// Where a thread works.
struct Place {
    int lane, warp, column, row, last_lane;  // column and row: of its first point; last_lane: has the last column inside
    Span x, y;

    __device__ __forceinline__ Place() {
        int block = blockIdx.x;
        lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        x = span_of(block % GRID_X, GRID_X, INNER_X, WIDTH, COLUMNS);
        y = span_of(block / GRID_X, GRID_Y, INNER_Y, HEIGHT, 1);
        column = x.first + lane * COLUMNS, row = y.first + warp * ROWS;
        last_lane = block % GRID_X == GRID_X - 1 ? (INNER_X - 1 - x.first) / COLUMNS : 32;
    }
    __device__ __forceinline__ bool owns_row(int r) const { return row + r >= y.begin && row + r < y.end; }
    __device__ __forceinline__ bool owns_column(int k) const { return column + k >= x.begin && column + k < x.end; }
    __device__ __forceinline__ bool is_inside(int r, int k) const { return column + k < INNER_X && row + r < INNER_Y; }
    // Whether other blocks have copies of the lane's points of a row.
    __device__ __forceinline__ bool is_published(int r) const {
        bool near_x = (x.begin > 0 && column < x.begin + HALO) || (x.end < INNER_X && column >= x.end - HALO);
        bool near_y = (y.begin > 0 && row + r < y.begin + HALO) || (y.end < INNER_Y && row + r >= y.end - HALO);
        return owns_row(r) && owns_column(0) && (near_x || near_y);
    }
    // Whether the lane's points of a row are copies of what other blocks own.
    __device__ __forceinline__ bool is_copied(int r) const {
        bool near_x = column >= max(x.begin - HALO, 0) && column < min(x.end + HALO, INNER_X);
        bool near_y = row + r >= max(y.begin - HALO, 0) && row + r < min(y.end + HALO, INNER_Y);
        return near_x && near_y && !(owns_row(r) && owns_column(0));
    }
};

// The lowest bit of each exchanged number tells in which exchange it was written: each buffer is used in every second
// exchange, and the bit changes from one use to the next. So a reader needs no flag, and a copy is off by one unit in the
// last place at most.
__device__ __forceinline__ void publish(number* to, const number (&values)[COLUMNS], unsigned tag) {
    Word words[COLUMNS];
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) words[k] = (word_of(values[k]) & ~(Word)1) | tag;
    store_words(to, words);
}

__device__ __forceinline__ void receive(const number* from, number (&values)[COLUMNS]) {
    Word words[COLUMNS];
    load_words(from, words);
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) values[k] = number_of(words[k]);
}

// A word whose lowest bit is 0 if all numbers were written in the exchange of the tag.
__device__ __forceinline__ unsigned missing(const number (&values)[COLUMNS], unsigned tag) {
    unsigned wrong = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) add_difference(wrong, (unsigned)word_of(values[k]), tag);
    return wrong;
}
