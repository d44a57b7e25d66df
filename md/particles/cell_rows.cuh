// Rows of cells that are smaller than the cutoff, those within reach of a position; see cell_rows.py.

// Whether a periodic axis has so few cells that one may be within reach on both sides of another.
__device__ __forceinline__ bool is_narrow(const Grid& grid, int axis, int division) {
    return grid.periodic[axis] != 0 && grid.cells[axis] <= 2 * division;
}

// Whether no cell within reach of a cell is beyond a periodic side.
__device__ __forceinline__ bool is_away(const Grid& grid, const int3& cell, int division) {
    int home[3] = {cell.x, cell.y, cell.z};
    bool away = true;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        away = away && (grid.periodic[axis] == 0 ||
                        (home[axis] >= division && home[axis] + division < grid.cells[axis]));
    }
    return away;
}

// Ranges of entries, sorted by cell, in the cells within reach of a position: next() finds one after the other.
struct Ranges {
    int from, to;  // the present range, not empty

    __device__ __forceinline__ Ranges(const Grid& grid, const Vec& r, int division, real reach)
        : division(division), column(0), last_column(-1), y(0), last_y(-1) {
        int3 cell = home_cell(grid, r);
        home[0] = cell.x, home[1] = cell.y, home[2] = cell.z;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            real count = (real)grid.cells[axis];
            side[axis] = axis < DIM ? (real)1 / grid.per_side[axis % DIM] : (real)1;
            x[axis] = axis < DIM ? min(max(r.x[axis % DIM] * grid.per_side[axis % DIM], (real)0), count) : (real)0;
        }
        left = reach * reach;
        span(grid, 2, DIM == 3 ? left * grid.per_side[DIM - 1] * grid.per_side[DIM - 1] : (real)0, z, last_z);
        --z;
    }

    // Proceeds to the next range; returns whether there is one.
    __device__ __forceinline__ bool next(const Grid& grid, const int* start, const int* rank) {
        for (;;) {
            while (column > last_column) {
                if (!next_row(grid)) return false;
            }
            int count = grid.cells[0], cell = wrapped(column, count);
            int end = column < 0 ? min(last_column, -1) : column < count ? min(last_column, count - 1) : last_column;
            int first = row + cell, cells = end - column + 1;
            if (rank) {
                const int* ranks = rank + first;
                first = ranks[0];
                int joined = 1;
                while (joined < cells && ranks[joined] == first + joined) ++joined;
                cells = joined;
            }
            column += cells;
            from = start[first];
            to = start[first + cells];
            if (from < to) return true;
        }
    }

  private:
    int division, home[3], row, column, last_column, y, last_y, z, last_z;
    real x[3], side[3], left, left_z;

    // First and last cell to visit along an axis, for the square of the largest distance, in units of cells.
    __device__ __forceinline__ void span(const Grid& grid, int axis, real within2, int& first, int& last) const {
        first = last = home[axis];
        real before = x[axis] - (real)home[axis], after = (real)(home[axis] + 1) - x[axis];
        for (int k = 0; k < division; ++k) {
            first -= (before + k) * (before + k) <= within2;
            last += (after + k) * (after + k) <= within2;
        }
        bool narrow = is_narrow(grid, axis, division);
        int end = grid.cells[axis] - 1;
        if (narrow || grid.periodic[axis] == 0) first = max(first, 0), last = min(last, end);
        if (narrow) first = 0, last = end;
    }

    // Square of the distance along an axis to a cell; 0 on a narrow axis.
    __device__ __forceinline__ real gap2(const Grid& grid, int axis, int cell) const {
        if (is_narrow(grid, axis, division)) return 0;
        real gap = max(max((real)cell - x[axis], x[axis] - (real)(cell + 1)), (real)0) * side[axis];
        return gap * gap;
    }

    static __device__ __forceinline__ int wrapped(int cell, int count) {
        return cell < 0 ? cell + count : (cell >= count ? cell - count : cell);
    }

    __device__ __forceinline__ bool next_row(const Grid& grid) {
        while (++y > last_y) {
            if (++z > last_z) return false;
            left_z = left - (DIM == 3 ? gap2(grid, DIM - 1, z) : (real)0);
            span(grid, 1, left_z * grid.per_side[1] * grid.per_side[1], y, last_y);
            --y;
        }
        row = grid.cells[0] * (wrapped(y, grid.cells[1]) + grid.cells[1] * wrapped(z, grid.cells[2]));
        real left_y = left_z - gap2(grid, 1, y);
        span(grid, 0, left_y * grid.per_side[0] * grid.per_side[0], column, last_column);
        return true;
    }
};

#define LISTED 16  // ranges that a thread lists before it visits them
#define LISTING 256  // largest number of threads of a block

// Calls visit(j, dr) for each slot j in the cells within reach of a position, with dr to the nearest image. A thread lists
// some ranges and then visits them in one loop, so that the lanes of a warp wait for the longest sum of ranges, not for
// the longest range of every row. Slot j is entry j, or order[j] if there is an order.
template <bool INTERIOR, class Visit>
__device__ __forceinline__ void visit_rows(int2 (*listed)[LISTING], const Grid& grid, int division, real reach, int n,
                                           const real* pos, const Vec& ri, const int* start, const int* rank,
                                           const int* order, Visit visit) {
    Ranges ranges(grid, ri, division, reach);
    for (bool more = true; more;) {
        int count = 0;
        while (count < LISTED && (more = ranges.next(grid, start, rank))) {
            listed[count++][threadIdx.x] = make_int2(ranges.from, ranges.to);
        }
        for (int k = 0, end = 0, at = 0;;) {
            if (k == end) {
                if (at == count) break;
                int2 range = listed[at++][threadIdx.x];
                k = range.x;
                end = range.y;
            }
            int j = slot_of(order, k++);
            visit(j, separation<INTERIOR>(grid, ri, load(pos, n, j)));
        }
    }
}
