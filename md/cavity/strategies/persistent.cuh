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
#define OF_PART (COLUMNS / (int)PARTS)         // numbers

// Loads the numbers of a lane in as few parts as 16 bytes allow, APART parts apart: with 32, each part of a warp is in one
// piece, and no two lanes use the same bank.
template <int APART = 1> __device__ __forceinline__ void load_row(const number* from, number (&to)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Part part = ((const Part*)from)[k * APART];
#pragma unroll
        for (int i = 0; i < OF_PART; ++i) to[k * OF_PART + i] = part.value[i];
    }
}

template <int APART = 1> __device__ __forceinline__ void store_row(number* to, const number (&from)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Part part;
#pragma unroll
        for (int i = 0; i < OF_PART; ++i) part.value[i] = from[k * OF_PART + i];
        ((Part*)to)[k * APART] = part;
    }
}

// First point of region `k` of `count` along an axis of `inner` points, in steps of `unit` points; the last region ends
// with the axis, or at most `unit` - 1 points beyond.
__device__ __forceinline__ constexpr int region_start(int k, int count, int inner, int extent, int unit) {
    return count == 1 ? 0 : k * ((inner - extent + unit - 1) / unit) / (count - 1) * unit;
}

// What a block copies is owned by its direct neighbours: the blocks between two others own at least HALO points.
static_assert(GRID_X < 3 || region_start(1, GRID_X, INNER_X, WIDTH, COLUMNS) >= HALO, "the tile is too narrow");
static_assert(GRID_Y < 3 || region_start(1, GRID_Y, INNER_Y, HEIGHT, 1) >= HALO, "the tile is too low");

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
    // `k` and whether rows can lie outside are known when compiled: most points need no test.
    __device__ __forceinline__ bool is_inside(int r, int k) const {
        bool in_x = (WIDTH <= INNER_X && k <= EAST) || column + k < INNER_X;
        return in_x && (!PADDED || row + r < INNER_Y);
    }
    // Whether other blocks have copies of the lane's points of a row, in their layers from `nearest` outwards.
    __device__ __forceinline__ bool is_published(int r, int nearest) const {
        bool near_x = (x.begin > 0 && is_layer(column + COLUMNS - x.begin, nearest)) ||
                      (x.end < INNER_X && is_layer(x.end - column, nearest));
        bool near_y = (y.begin > 0 && is_layer(row + r + 1 - y.begin, nearest)) ||
                      (y.end < INNER_Y && is_layer(y.end - row - r, nearest));
        return owns_row(r) && owns_column(0) && (near_x || near_y);
    }
    // Whether the lane's points of a row are copies of what other blocks own, in the layers from `nearest` outwards.
    __device__ __forceinline__ bool is_copied(int r, int nearest) const {
        int layer_x = max(x.begin - column, min(column, INNER_X - COLUMNS) + COLUMNS - x.end);
        int layer_y = max(y.begin - row - r, row + r + 1 - y.end), layer = max(layer_x, layer_y);
        bool in_reach = column < INNER_X && row + r < INNER_Y && layer <= HALO;
        return in_reach && layer >= nearest && !(owns_row(r) && owns_column(0));
    }
    static __device__ __forceinline__ bool is_layer(int layer, int nearest) { return layer >= nearest && layer <= HALO; }
};

// The lowest bit of each exchanged number tells in which exchange it was written: each buffer is used in every second
// exchange, and the bit changes from one use to the next. So a reader needs no flag, and a copy is off by one unit in the
// last place at most. A row of a buffer has the first parts of all lanes, then the second ones.
__device__ __forceinline__ void publish(unsigned when, number* to, const number (&values)[COLUMNS], unsigned tag) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Word words[OF_PART];
#pragma unroll
        for (int i = 0; i < OF_PART; ++i) words[i] = (word_of(values[k * OF_PART + i]) & ~(Word)1) | tag;
        store_words(when, to + k * (PITCH / PARTS), words);
    }
}

__device__ __forceinline__ void receive(unsigned when, const number* from, number (&values)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < (int)PARTS; ++k) {
        Word words[OF_PART];
#pragma unroll
        for (int i = 0; i < OF_PART; ++i) words[i] = word_of(values[k * OF_PART + i]);
        load_words(when, from + k * (PITCH / PARTS), words);
#pragma unroll
        for (int i = 0; i < OF_PART; ++i) values[k * OF_PART + i] = number_of(words[i]);
    }
}

// A word whose lowest bit is 0 if all numbers were written in the exchange of the tag.
__device__ __forceinline__ unsigned missing(const number (&values)[COLUMNS], unsigned tag) {
    unsigned wrong = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) add_difference(wrong, (unsigned)word_of(values[k]), tag);
    return wrong;
}
