// Neighbour lists of a device.
//
// Lists are in fours of entries, which are interleaved: four g of particle i, below `rows` of them, is the four
// at g * n + i. Longer lists go on in a pool of fours behind these. Unused entries are the particle itself. The last entry of
// a four is stored as ~j if another four follows in the next row. The last entry of a four in the last row, or in the pool, is ~p
// if the four number p of the pool follows, and is no partner then.

#include "md/backend/shared_memory.cuh"

#ifndef AT_ONCE
#define AT_ONCE 2  // positions of partners loaded at the same time: more need registers, so that fewer threads run
#endif

#ifndef COLUMN
#define COLUMN 16  // entries of a list that are kept in shared memory while it is made; few lists are longer
#endif

// A list while it is written entry by entry.
struct ListWriter {
    int n, i, rows;
    int4 *at, *pool;  // the next four to be written, or null if there is no room for it
    int4 four;        // its entries, of which the last `filled` are partners
    int row, filled;
    bool is_short;    // whether there was too little room

    __device__ __forceinline__ ListWriter(int n, int i, int rows, int* partners)
        : n(n), i(i), rows(rows), at((int4*)partners + i), pool((int4*)partners + (size_t)rows * n),
          four(make_int4(i, i, i, i)), row(0), filled(0), is_short(false) {}

    __device__ __forceinline__ void add(int j, long long room, long long* needed) {
        if (filled == 4) next(room, needed);
        four = make_int4(four.y, four.z, four.w, j);
        ++filled;
    }

    __device__ __forceinline__ bool end() {
        if (at) *at = four;
        return is_short;
    }

  private:
    __device__ __forceinline__ void next(long long room, long long* needed) {
        filled = 0;
        if (++row < rows) {
            *at = make_int4(four.x, four.y, four.z, ~four.w);
            at += n;
            four = make_int4(i, i, i, i);
            return;
        }
        long long place = atomicAdd((unsigned long long*)needed, 1ull);
        bool fits = place < room;
        if (at) *at = make_int4(four.x, four.y, four.z, fits ? ~(int)place : four.w);
        at = fits && at ? pool + place : nullptr;
        if (!fits) is_short = true;
        four = make_int4(i, i, i, four.w);
        filled = 1;
    }
};

// Writes a list that goes on in the pool, from shared memory; returns whether there was too little room.
__device__ __noinline__ bool write_pooled(int n, int i, int rows, int* partners, const int (*column)[BLOCK_THREADS], int count,
                                          long long room, long long* needed) {
    ListWriter writer(n, i, rows, partners);
    for (int k = 0; k < count; ++k) writer.add(column[k][threadIdx.x], room, needed);
    return writer.end();
}

// The entries of a list, counted, and kept in shared memory as far as there is room for them.
struct ListColumn {
    int (*column)[BLOCK_THREADS];    // of each thread of the block
    unsigned begin, next;  // offsets in shared memory of the first entry and of the next to be added

    __device__ __forceinline__ explicit ListColumn(int (*column)[BLOCK_THREADS])
        : column(column), begin(shared_offset(column, column[0] + threadIdx.x)), next(begin) {}

    // Adds an entry if it passes. There is no branch.
    __device__ __forceinline__ void add(int j, bool passes) {
        store_below<sizeof(*column)>(column, next, begin + COLUMN * sizeof(*column), j, passes);
    }

    __device__ __forceinline__ void clear() { next = begin; }
    __device__ __forceinline__ void overflow() { next += (COLUMN + 1) * sizeof(*column); }  // it is not whole then
    __device__ __forceinline__ int count() const { return (next - begin) / sizeof(*column); }
    __device__ __forceinline__ bool is_whole() const { return count() <= COLUMN; }

    // Writes a list that is whole; returns whether there was too little room.
    __device__ __forceinline__ bool write(int n, int i, int rows, int* partners, long long room, long long* needed) const {
        if (count() > 4 * rows) return write_pooled(n, i, rows, partners, column, count(), room, needed);
        write_rows(n, i, partners);
        return false;
    }

    // Writes a list that the rows have room for.
    __device__ __forceinline__ void write_rows(int n, int i, int* partners) const {
        int4* to = (int4*)partners + i;
        int count = this->count();
        for (int k = 0;;) {
            int4 four = {entry(k, count, i), entry(k + 1, count, i), entry(k + 2, count, i), entry(k + 3, count, i)};
            k += 4;
            if (k < count) four.w = ~four.w;
            *to = four;
            if (k >= count) return;
            to += n;
        }
    }

  private:
    __device__ __forceinline__ int entry(int k, int count, int i) const {
        return k < count ? column[k][threadIdx.x] : i;
    }
};

// Computes the separations of a particle from others, between the nearest images, and their squares. The positions are loaded
// at the same time.
template <int COUNT, class Grid>
__device__ __forceinline__ void separate(const Grid& grid, int n, const real* pos, const Vec& ri, const int* others, Vec* dr,
                                         real* r2) {
    real most = 0;
#pragma unroll
    for (int b = 0; b < COUNT; ++b) dr[b] = load(pos, n, others[b]);
#pragma unroll
    for (int b = 0; b < COUNT; ++b) {
        dr[b] = sub(ri, dr[b]);
        r2[b] = dot(dr[b], dr[b]);
        most = max(most, r2[b]);
    }
    if (__builtin_expect(most >= grid.nearest2, 0)) {
#pragma unroll
        for (int b = 0; b < COUNT; ++b) {
            dr[b] = nearest_image(grid, dr[b]);
            r2[b] = dot(dr[b], dr[b]);
        }
    }
}

#define LOADED_AT_ONCE 2  // partners of which the positions are loaded at the same time while a list is made

// Halts all steps until the next build; see displacement_guard.py.
__device__ __forceinline__ void halt(float* travelled) {
    travelled[0] = travelled[1] = __int_as_float(0x7f800000);
#pragma unroll
    for (int k = 2; k < 6; ++k) travelled[k] = 0;
}

#define NO_LIST -1  // instead of the first entry of a list that is not there

// Calls visit(j, r2, dr) for the partners in the list of a particle, with the distance to the nearest image. Returns whether
// there is a list. HAS_POOL: lists may go on in the pool, and all are there.
template <bool HAS_POOL, class Grid, class Visit>
__device__ __forceinline__ bool for_each_listed(int n, int i, const real* pos, const int* partners, int rows,
                                                const Grid& grid, const Vec& ri, Visit visit) {
    unsigned at = i, last_row = (unsigned)(rows - 1) * n;  // of the fours
    bool more;
    do {
        int4 four = ((const int4*)partners)[at];
        more = four.w < 0;
        int last = more ? ~four.w : four.w;
        if (!HAS_POOL && four.x == NO_LIST) return false;
        bool is_linked = HAS_POOL && more && at >= last_row;
        at = is_linked ? last_row + n + last : at + n;
        int partner[4] = {four.x, four.y, four.z, is_linked ? i : last};
#pragma unroll
        for (int k = 0; k < 4; k += AT_ONCE) {
            Vec dr[AT_ONCE];
            real r2[AT_ONCE];
            separate<AT_ONCE>(grid, n, pos, ri, partner + k, dr, r2);
#pragma unroll
            for (int b = 0; b < AT_ONCE; ++b) {
                if (partner[k + b] != i) visit(partner[k + b], r2[b], dr[b]);
            }
        }
    } while (more);
    return true;
}
