// Neighbour lists of a device.
//
// Lists are in fours of entries, which are interleaved: four g of particle i, below `rows` of them, is the four
// at g * n + i. Longer lists go on in a pool of fours behind these. Unused entries are the particle itself. The last entry of
// a four is stored as ~j if another four follows in the next row. The last entry of a four in the last row, or in the pool, is ~p
// if the four number p of the pool follows, and is no partner then.

// The list of a particle while it is written.
struct List {
    int n, i, rows;
    int4 *at, *pool;  // the next four to be written, or null if there is no room for it
    int4 four;        // its entries, of which the last `count` are partners
    int row, count;
    bool is_short;

    __device__ __forceinline__ List(int n, int i, int rows, int* partners)
        : n(n), i(i), rows(rows), at((int4*)partners + i), pool((int4*)partners + (size_t)rows * n),
          four(make_int4(i, i, i, i)), row(0), count(0), is_short(false) {}

    __device__ __forceinline__ void end() {
        if (at) *at = four;
    }

    __device__ __forceinline__ void add(int j, long long room, long long* needed) {
        if (count == 4) next(room, needed);
        four = make_int4(four.y, four.z, four.w, j);
        ++count;
    }

    __device__ __forceinline__ void next(long long room, long long* needed) {
        count = 0;
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
        count = 1;
    }
};

// Calls visit(j, r2, dr) for the partners in the list of a particle, with the distance to the nearest image.
template <class Grid, class Visit>
__device__ __forceinline__ void for_each_listed(int n, int i, const real* pos, const int* partners, int rows,
                                                const Grid& grid, const Vec& ri, Visit visit) {
    unsigned at = i, last_row = (unsigned)(rows - 1) * n;  // of the fours
    bool more;
    do {
        int4 four = ((const int4*)partners)[at];
        more = four.w < 0;
        int last = more ? ~four.w : four.w;
        bool is_linked = more && at >= last_row;
        at = is_linked ? last_row + n + last : at + n;
        int partner[4] = {four.x, four.y, four.z, is_linked ? i : last};
        // Two at a time: more would need more registers, so that fewer threads could hide the latency of memory.
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            Vec rj[2] = {load(pos, n, partner[k]), load(pos, n, partner[k + 1])};
            real r2[2];
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                rj[b] = sub(ri, rj[b]);
                r2[b] = dot(rj[b], rj[b]);
            }
            if (__builtin_expect(max(r2[0], r2[1]) >= grid.nearest2, 0)) {
#pragma unroll
                for (int b = 0; b < 2; ++b) {
                    rj[b] = nearest_image(grid, rj[b]);
                    r2[b] = dot(rj[b], rj[b]);
                }
            }
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                if (partner[k + b] != i) visit(partner[k + b], r2[b], rj[b]);
            }
        }
    } while (more);
}
