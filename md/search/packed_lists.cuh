// Neighbour lists of a device.
//
// A list is a sequence of rows of 64 bits. A row holds three entries of 21 bits, from the lowest bit on, and in the highest bit
// whether another row follows. An entry is the slot of a partner less that of the particle, plus ZERO; unused entries, which are
// the last ones, are ZERO. A row of which the first entry is FAR has one partner alone, any slot, in the 32 bits behind that
// entry. One of which it is LINK has none: the list goes on in the row with that number. Row r of the list of particle i, for r
// below `rows`, is row r * n + i. A list goes on behind these, in the pool, where its rows follow each other.

#include "md/backend/shared_memory.cuh"

#ifndef COLUMN
#define COLUMN 16  // entries of a list that are kept in shared memory while it is made; few lists are longer
#endif

#ifndef SPAN
#define SPAN 0x100000u  // slots from a particle beyond which a partner is far; tests take fewer
#endif

#define ENTRIES 3
#define BITS 21
#define MASK 0x1fffffu
#define ZERO SPAN
#define FAR (2 * SPAN - 1)
#define LINK (2 * SPAN - 2)

#define AHEAD ((int)(405504 / sizeof(real)))  // particles: half of those that an H100 or H200 works on at the same time

struct alignas(8) list_row {
    unsigned low, high;

    __device__ __forceinline__ unsigned first() const { return low & MASK; }
    __device__ __forceinline__ unsigned second() const { return number() & MASK; }
    __device__ __forceinline__ unsigned third() const { return high >> (2 * BITS - 32) & MASK; }
    __device__ __forceinline__ bool more() const { return (int)high < 0; }

    // Number behind the first entry.
    __device__ __forceinline__ unsigned number() const { return __funnelshift_r(low, high, BITS); }
};

// Loads a row of a list at this place: the compiler does not move it behind a branch.
__device__ __forceinline__ list_row load_here(const list_row* row) {
#if defined(__CUDA_ARCH__)
    list_row found;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(found.low), "=r"(found.high) : "l"(row));
    return found;
#else
    return *row;
#endif
}

__device__ __forceinline__ list_row row_of(unsigned a, unsigned b, unsigned c, bool more) {
    return list_row{a | b << BITS, b >> (32 - BITS) | c << (2 * BITS - 32) | (unsigned)more << 31};
}

// Returns a row with one number behind its first entry.
__device__ __forceinline__ list_row row_of(unsigned first, unsigned number, bool more) {
    return list_row{first | number << BITS, number >> (32 - BITS) | (unsigned)more << 31};
}

// A list while it is written entry by entry.
struct ListWriter {
    int i;
    list_row *lists, *at;  // row that is written next, or null if there is no room for it
    long long pool, room;  // number of the first row of the pool, and rows of it
    long long* needed;     // rows of the pool that are needed in all; null if there is no pool
    int left, stride;      // rows that are left before a link is needed, and the distance to the next
    int run;               // rows of the pool that are taken at a time, at least 2
    unsigned entries[ENTRIES];
    int filled;
    bool is_short;  // whether there was too little room

    __device__ __forceinline__ ListWriter(int n, int i, list_row* lists, int rows, long long room, long long* needed, int run)
        : i(i), lists(lists), at(lists + i), pool((long long)rows * n), room(room), needed(needed), left(rows), stride(n),
          run(run), is_short(false) {
        clear();
    }

    __device__ __forceinline__ void add(int j) {
        unsigned entry = j - i + ZERO;
        bool is_near = entry < LINK;
        if (filled == ENTRIES || (filled && !is_near)) next();
        set(filled++, is_near ? entry : FAR);
        if (is_near) return;
        set(1, j);
        filled = ENTRIES;
    }

    __device__ __forceinline__ bool end() {
        if (at) *at = row(false);
        return is_short;
    }

  private:
    __device__ __forceinline__ void clear() {
        entries[0] = entries[1] = entries[2] = ZERO;
        filled = 0;
    }

    __device__ __forceinline__ void set(int place, unsigned entry) {
#pragma unroll
        for (int k = 0; k < ENTRIES; ++k) entries[k] = k == place ? entry : entries[k];
    }

    __device__ __forceinline__ list_row row(bool more) const {
        return entries[0] == FAR ? row_of(FAR, entries[1], more) : row_of(entries[0], entries[1], entries[2], more);
    }

    __device__ __forceinline__ void next() {
        if (left == 1) extend();
        if (at) {
            *at = row(true);
            at += stride;
        }
        --left;
        clear();
    }

    // Continues in a run of the pool.
    __device__ __forceinline__ void extend() {
        long long place = needed ? atomicAdd((unsigned long long*)needed, (unsigned long long)run) : 0;
        bool fits = at && needed && place + run <= room;
        if (fits) {
            *at = row_of(LINK, pool + place, true);
            at = lists + pool + place;
            stride = 1;
        } else {
            if (at) *at = row(false);
            at = nullptr;
            is_short = true;
        }
        left = run;
    }
};

#define RUN 8  // rows of the pool that a list takes at a time while its length is not known

// Writes a list from shared memory that may go on in the pool or have far partners; returns whether there was too little room.
__device__ __noinline__ bool write_any(int n, int i, list_row* lists, int rows, const int (*column)[BLOCK_THREADS], int count,
                                       long long room, long long* needed) {
    int own = 0, filled = ENTRIES;  // rows of the list, and entries of the last one
    for (int k = 0; k < count; ++k) {
        bool is_near = column[k][threadIdx.x] - i + ZERO < LINK;
        own += filled == ENTRIES || !is_near;
        filled = !is_near ? ENTRIES : filled == ENTRIES ? 1 : filled + 1;
    }
    ListWriter writer(n, i, lists, rows, room, needed, max(2, own - rows + 1));
    for (int k = 0; k < count; ++k) writer.add(column[k][threadIdx.x]);
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

    // Writes a list that is whole; returns whether there was too little room. needed: null if there is no pool.
    __device__ __forceinline__ bool write(int n, int i, list_row* lists, int rows, long long room, long long* needed) const {
        int count = this->count();
        if (count <= ENTRIES * rows && write_near(n, i, lists + i, count)) return false;
        return write_any(n, i, lists, rows, column, count, room, needed);
    }

  private:
    // Writes rows as long as no partner is far; returns whether they are the list.
    __device__ __forceinline__ bool write_near(int n, int i, list_row* to, int count) const {
        for (int k = 0;;) {
            unsigned a = entry(k, count, i), b = entry(k + 1, count, i), c = entry(k + 2, count, i);
            if (max(max(a, b), c) >= LINK) return false;
            k += ENTRIES;
            *to = row_of(a, b, c, k < count);
            if (k >= count) return true;
            to += n;
        }
    }

    __device__ __forceinline__ unsigned entry(int k, int count, int i) const {
        return k < count ? column[k][threadIdx.x] - i + ZERO : ZERO;
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

// Fetches the rows, and the first row of the list, of the particle that a thread processes AHEAD / BLOCK_THREADS blocks after this
// one. That thread will wait for the L2 cache only, not for the memory of the device.
template <class Any>
__device__ __forceinline__ void fetch_ahead(const Any& out, int n, const real* pos, const velocity* vel, const list_row* lists) {
    int place = blockIdx.x + AHEAD / BLOCK_THREADS;
    int k = block_at(out, place) * BLOCK_THREADS + threadIdx.x;
    if (place >= (int)gridDim.x || k >= n) return;
    fetch_row(pos, vel, n, k);
    fetch(lists + k);
}

template <int COUNT, class Grid, class Visit>
__device__ __forceinline__ void visit_together(int n, int i, const real* pos, const Grid& grid, const Vec& ri,
                                               const int (&partner)[COUNT], Visit& visit) {
    Vec dr[COUNT];
    real r2[COUNT];
    separate<COUNT>(grid, n, pos, ri, partner, dr, r2);
#pragma unroll
    for (int b = 0; b < COUNT; ++b) {
        if (partner[b] != i) visit(partner[b], r2[b], dr[b]);
    }
}

// Calls visit(j, r2, dr) for the partners in the list of a particle, of which the first row is given, with the distance to the
// nearest image. Returns whether there is a list. HAS_POOL: lists may go on in the pool, and all are there; else one that begins
// with LINK is not there.
template <bool HAS_POOL, class Grid, class Visit>
__device__ __forceinline__ bool for_each_listed(int n, int i, const real* pos, const list_row* lists, list_row following,
                                                const Grid& grid, const Vec& ri, Visit visit) {
    unsigned at = i, stride = n;
    bool more;
    do {
        list_row row = following;
        at += stride;
        more = row.more();
        unsigned first = row.first();
        int from = i - (int)ZERO, partner = from + (int)first;
        if (__builtin_expect(first >= LINK, 0)) {
            if (!HAS_POOL && first == LINK) return false;
            if (first == FAR) {
                partner = row.number();
            } else {
                partner = i;
                at = row.number();
                stride = 1;
            }
            row = row_of(ZERO, ZERO, ZERO, more);
        }
        if (more) following = lists[at];  // it is there when the positions are
        visit_together<2>(n, i, pos, grid, ri, {partner, from + (int)row.second()}, visit);
        if (row.third() != ZERO) visit_together<1>(n, i, pos, grid, ri, {from + (int)row.third()}, visit);
    } while (more);
    return true;
}
