// Many steps in one launch: the pressure and its right-hand side stay in registers, the velocities in shared memory.
//
// Contract. A lane has COLUMNS columns, a warp ROWS rows. Sums are shared by diagonal neighbours: that of the east and the
// north neighbour of a point is that of the south and the west neighbour of the point to its north-east. Beyond the region,
// the pressure is that of the last point inside, and above the region it is 0: these are the boundary values at the sides
// of the cavity; elsewhere the values are wrong, and a wrong value spreads by one point a sweep, which the halo allows for.
// Blocks get new copies of their halo before wrong values reach what they own.
#include "persistent.cuh"

#define LAST (ROWS - 1)
#define EARLY (LAST / 3)  // inner rows of a sweep that are done before the wait for the neighbouring warps

#define NO_SWEEP_BETWEEN (SWEEPS >= HALO - 1 && (SWEEPS + 1) % HALO == 0)  // the last two exchanges of a step

static_assert(ROWS >= 3 && EARLY <= LAST - 2, "the rows at the edges of a warp come before the last inner row");

struct Shared {
    number *u, *v;   // (HEIGHT + 2, STRIDE): region and one point around it; column c at 4 + c
    number* edges;   // (2, 2 * WARPS + 1, PARTS, 32 parts): zeros, then the lowest and highest row of each warp; in turns
    int below, above, own;  // offsets in `edges` of the rows around those of the warp, and of its lowest row

    __device__ __forceinline__ Shared(number* memory, const Place& at) {
        u = memory, v = u + (HEIGHT + 2) * STRIDE + 4, edges = v + (HEIGHT + 2) * STRIDE + 4;
        own = (1 + 2 * at.warp) * WIDTH + at.lane * (COLUMNS / PARTS);
        below = at.warp == 0 ? own : own - WIDTH;
        above = at.warp == WARPS - 1 ? at.lane * (COLUMNS / PARTS) : own + 2 * WIDTH;
    }
    __device__ __forceinline__ number* turn(int k) const { return edges + k * (2 * WARPS + 1) * WIDTH; }
    __device__ __forceinline__ int velocity(const Place& at, int r) const {
        return (at.warp * ROWS + r + 1) * STRIDE + 4 + at.lane * COLUMNS;
    }
};

__device__ __forceinline__ number west_of(const number (&row)[COLUMNS], const Place& at) {
    number beside = __shfl_up_sync(~0u, row[COLUMNS - 1], 1);
    return at.lane == 0 ? row[0] : beside;
}

__device__ __forceinline__ void east_of(const number (&row)[COLUMNS], const Place& at, number (&east)[COLUMNS]) {
    number beside = __shfl_down_sync(~0u, row[0], 1);
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) {
        east[k] = k + 1 < COLUMNS ? row[(k + 1) % COLUMNS] : beside;
        if (k == EAST && at.lane == at.last_lane) east[k] = row[k];
    }
}

// Sums over the east and north neighbours of a row's points.
__device__ __forceinline__ void upper_sums(const number (&row)[COLUMNS], const number (&north)[COLUMNS], const Place& at,
                                           number (&sums)[COLUMNS]) {
    east_of(row, at, sums);
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) sums[k] += north[k];
}

// Sums over the west and south neighbours of a row's points, from the upper sums of the row to its south.
__device__ __forceinline__ void lower_sums(const number (&row)[COLUMNS], const number (&south)[COLUMNS],
                                           const number (&upper_of_south)[COLUMNS], const Place& at,
                                           number (&sums)[COLUMNS]) {
    sums[0] = south[0] + west_of(row, at);
#pragma unroll
    for (int k = 1; k < COLUMNS; ++k) sums[k] = upper_of_south[k - 1];
}

struct Pressure {
    number p[ROWS][COLUMNS], b[ROWS][COLUMNS];  // the pressure, and a quarter of the right-hand side with its sign turned
    const Place& at;
    const Shared& shared;
    int turn = 0;

    __device__ __forceinline__ Pressure(const Place& at, const Shared& shared) : at(at), shared(shared) {}

    __device__ __forceinline__ void set(int r, const number (&lower)[COLUMNS], const number (&upper)[COLUMNS]) {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            p[r][k] = (number)0.25 * (lower[k] + upper[k]) + b[r][k];
            if (r >= INNER_Y - (HEIGHT - ROWS) && at.row + r >= INNER_Y) p[r][k] = 0;  // first: known when compiled
        }
    }
    __device__ __forceinline__ void store_edges() {
        store_row<32>(shared.turn(turn) + shared.own, p[0]);
        store_row<32>(shared.turn(turn) + shared.own + WIDTH, p[LAST]);
    }
    // One Jacobi sweep in place. The rows at the edges of the warp come first after the wait, so that the neighbouring
    // warps have them early.
    __device__ __forceinline__ void sweep() {
        number lower[COLUMNS], upper[COLUMNS], first[COLUMNS], last_lower[COLUMNS], before_last[COLUMNS];
        number last_east[COLUMNS];
        upper_sums(p[0], p[1], at, first);
        lower_sums(p[1], p[0], first, at, lower);
        upper_sums(p[LAST - 1], p[LAST], at, before_last);
        lower_sums(p[LAST], p[LAST - 1], before_last, at, last_lower);
        east_of(p[LAST], at, last_east);
        number west = west_of(p[0], at);
#pragma unroll
        for (int r = 1; r < LAST; ++r) {
            if (r == 1 + EARLY) edge_rows(first, last_lower, last_east, west);
            number next[COLUMNS];
            if (r == LAST - 1) {
                set(r, lower, before_last);
            } else {
                upper_sums(p[r], p[r + 1], at, upper);
                lower_sums(p[r + 1], p[r], upper, at, next);
                set(r, lower, upper);
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) lower[k] = next[k];
            }
        }
    }
    __device__ __forceinline__ void edge_rows(const number (&first)[COLUMNS], const number (&last_lower)[COLUMNS],
                                              const number (&last_east)[COLUMNS], number west) {
        number beside[COLUMNS], sums[COLUMNS];
        __syncthreads();
        load_row<32>(shared.turn(turn) + shared.below, beside);
        sums[0] = beside[0] + west;
#pragma unroll
        for (int k = 1; k < COLUMNS; ++k) sums[k] = beside[k] + p[0][k - 1];
        load_row<32>(shared.turn(turn) + shared.above, beside);
        set(0, sums, first);
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) sums[k] = beside[k] + last_east[k];
        set(LAST, last_lower, sums);
        turn ^= 1;
        store_edges();
    }
};

// Tentative velocities in place of the velocities, in the whole region. Rows of other warps are read before any is changed.
__device__ __forceinline__ void tentative(const Place& at, const Shared& shared, const Factors& factors) {
    number south[2][COLUMNS], here[2][COLUMNS], north[2][COLUMNS], above[2][COLUMNS], next[2][COLUMNS];
    number* velocities[2] = {shared.u, shared.v};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        load_row(velocities[i] + shared.velocity(at, -1), south[i]);
        load_row(velocities[i] + shared.velocity(at, ROWS), above[i]);
        load_row(velocities[i] + shared.velocity(at, 0), here[i]);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            number* row = velocities[i] + shared.velocity(at, r);
            if (r < LAST) load_row(row + STRIDE, north[i]);
            number west = __shfl_up_sync(~0u, here[i][COLUMNS - 1], 1), east = __shfl_down_sync(~0u, here[i][0], 1);
            if (at.lane == 0) west = row[-1];
            if (at.lane == 31) east = row[COLUMNS];
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) {
                if (r == LAST) north[i][k] = above[i][k];
                Cross cross = {here[i][k], k ? here[i][(k + COLUMNS - 1) % COLUMNS] : west,
                               k + 1 < COLUMNS ? here[i][(k + 1) % COLUMNS] : east, south[i][k], north[i][k]};
                number changed = here[i][k] + change(cross, here[0][k], here[1][k], factors);
                next[i][k] = at.is_inside(r, k) ? changed : here[i][k];
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            store_row(velocities[i] + shared.velocity(at, r), next[i]);
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) south[i][k] = here[i][k], here[i][k] = north[i][k];
        }
    }
    __syncthreads();
}

// Right-hand side from the divergence of the tentative velocities.
__device__ __forceinline__ void find_source(Pressure& pressure, const Factors& factors) {
    const Place& at = pressure.at;
    number factor = (number)-0.25 * factors.source;
    number south[COLUMNS], here[COLUMNS], north[COLUMNS], u[COLUMNS];
    load_row(pressure.shared.v + pressure.shared.velocity(at, -1), south);
    load_row(pressure.shared.v + pressure.shared.velocity(at, 0), here);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const number* row = pressure.shared.u + pressure.shared.velocity(at, r);
        load_row(pressure.shared.v + pressure.shared.velocity(at, r + 1), north);
        load_row(row, u);
        number west = __shfl_up_sync(~0u, u[COLUMNS - 1], 1), east = __shfl_down_sync(~0u, u[0], 1);
        if (at.lane == 0) west = row[-1];
        if (at.lane == 31) east = row[COLUMNS];
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            number along_x = (k + 1 < COLUMNS ? u[(k + 1) % COLUMNS] : east) - (k ? u[(k + COLUMNS - 1) % COLUMNS] : west);
            pressure.b[r][k] = at.is_inside(r, k) ? factor * (along_x + (north[k] - south[k])) : 0;
            south[k] = here[k], here[k] = north[k];
        }
    }
}

// Exchange of numbers with the neighbouring blocks, by arrays in which each block writes what it owns.
struct Exchange {
    const Place& at;
    int* failed;              // in global memory: an exchange was given up
    unsigned published, copied;  // rows, as bits, of which the lane's points go to others, or are copies
    unsigned published_source, copied_source;  // likewise, of the right-hand side
    size_t place;                // of the lane's first point in the arrays
    int most = MOST_POLLS;

    // A block finds the right-hand side itself but for the two outermost layers; no sweep uses that of the last.
    __device__ __forceinline__ Exchange(const Place& at, int* failed)
        : at(at), failed(failed), published(0), copied(0), published_source(0), copied_source(0) {
        place = (size_t)at.row * PITCH + at.column / COLUMNS * OF_PART;
        for (int r = 0; r < ROWS; ++r) {
            published |= (unsigned)at.is_published(r, 1) << r, copied |= (unsigned)at.is_copied(r, 1) << r;
            published_source |= (unsigned)at.is_published(r, HALO - 1) << r;
            copied_source |= (unsigned)at.is_copied(r, HALO - 1) << r;
        }
    }
    static __device__ __forceinline__ unsigned tag(unsigned turn) { return turn >> 1 & 1; }
    __device__ __forceinline__ number* buffer(number* arrays, unsigned turn) const {
        return arrays + (turn & 1) * ((size_t)INNER_Y * PITCH) + place;
    }
    __device__ __forceinline__ void send(unsigned rows, number* arrays, unsigned turn, const number (&values)[ROWS][COLUMNS]) const {
        number* to = buffer(arrays, turn);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) publish(rows & 1u << r, to + r * PITCH, values[r], tag(turn));
    }
    // Starts all loads of `rows`. A barrier of the warp has to follow: it keeps the compiler from waiting for one load before
    // the next.
    __device__ __forceinline__ void fetch(unsigned rows, number* arrays, unsigned turn, number (&values)[ROWS][COLUMNS]) const {
        const number* from = buffer(arrays, turn);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) receive(rows & 1u << r, from + r * PITCH, values[r]);
    }
    // Those of `rows` of which a number was not yet written in the exchange.
    __device__ __forceinline__ unsigned still_missing(unsigned rows, unsigned turn, const number (&values)[ROWS][COLUMNS]) const {
        unsigned late = 0;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) add_masked(late, missing(values[r], tag(turn)) << r, 1u << r);
        return rows & late;
    }
    __device__ __forceinline__ void store(const number (&values)[ROWS][COLUMNS], number* field, const Shared& shared) const {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (copied >> r & 1) store_row(field + shared.velocity(at, r), values[r]);
        }
    }
    // Whether the lanes of the warp are to poll once more. After an exchange that took too long the others do not wait.
    __device__ __forceinline__ bool again(bool wait, int& polls) {
        if (__all_sync(~0u, !wait)) return false;
        if (++polls < most) return true;
        atomicMax(failed, 1);
        most = 0;
        return false;
    }
    // Waits for the copies of two arrays, the rows `one` of the first and `other` of the second.
    __device__ __forceinline__ void receive_both(unsigned one, number* first, unsigned first_turn, number (&values)[ROWS][COLUMNS],
                                                 unsigned other, number* second, unsigned second_turn,
                                                 number (&others)[ROWS][COLUMNS]) {
        int polls = 0;
        do {
            fetch(one, first, first_turn, values);
            fetch(other, second, second_turn, others);
            __syncwarp();
            one = still_missing(one, first_turn, values), other = still_missing(other, second_turn, others);
        } while (again(one | other, polls));
        __syncwarp();
    }
    __device__ __forceinline__ void receive_rows(unsigned rows, number* arrays, unsigned turn, number (&values)[ROWS][COLUMNS]) {
        int polls = 0;
        do {
            fetch(rows, arrays, turn, values);
            __syncwarp();
            rows = still_missing(rows, turn, values);
        } while (again(rows, polls));
        __syncwarp();
    }
};

template <bool WITH_SOURCE>
__device__ __forceinline__ void exchange_pressure(Pressure& pressure, Exchange& exchange, const Fields& fields,
                                                  unsigned turn, unsigned round) {
    exchange.send(exchange.published, fields.pressure, turn, pressure.p);
    if (WITH_SOURCE) {
        exchange.send(exchange.published_source, fields.source, round, pressure.b);
        exchange.receive_both(exchange.copied, fields.pressure, turn, pressure.p, exchange.copied_source, fields.source, round,
                              pressure.b);
    } else {
        exchange.receive_rows(exchange.copied, fields.pressure, turn, pressure.p);
    }
    pressure.store_edges();
}

// Subtracts the gradient of the pressure, and publishes the velocities if there are other blocks. Returns 0, or a number
// that is not finite if a velocity that the block owns is not.
template <bool IS_ALONE>
__device__ __forceinline__ number correct(Pressure& pressure, const Factors& factors, const Exchange& exchange,
                                          const Fields& fields, unsigned round) {
    const Place& at = pressure.at;
    number south[COLUMNS], above[COLUMNS], east[COLUMNS], u[COLUMNS], v[COLUMNS], sum = 0;
    number *to_u = exchange.buffer(fields.velocity_u, round), *to_v = exchange.buffer(fields.velocity_v, round);
    __syncthreads();
    load_row<32>(pressure.shared.turn(pressure.turn) + pressure.shared.below, south);
    load_row<32>(pressure.shared.turn(pressure.turn) + pressure.shared.above, above);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int place = pressure.shared.velocity(at, r);
        load_row(pressure.shared.u + place, u);
        load_row(pressure.shared.v + place, v);
        east_of(pressure.p[r], at, east);
        number west = west_of(pressure.p[r], at), row_sum = 0;
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            number north = r < LAST ? pressure.p[r < LAST ? r + 1 : r][k] : above[k];
            number along_x = east[k] - (k ? pressure.p[r][k ? k - 1 : 0] : west), along_y = north - south[k];
            if (at.is_inside(r, k)) u[k] -= factors.gradient * along_x, v[k] -= factors.gradient * along_y;
            row_sum += u[k] * 0, row_sum += v[k] * 0;
            south[k] = pressure.p[r][k];
        }
        if (at.owns_row(r)) sum += row_sum;
        store_row(pressure.shared.u + place, u);
        store_row(pressure.shared.v + place, v);
        if (IS_ALONE) continue;
        publish(exchange.published & 1u << r, to_u + r * PITCH, u, Exchange::tag(round));
        publish(exchange.published & 1u << r, to_v + r * PITCH, v, Exchange::tag(round));
    }
    return at.owns_column(0) ? sum : 0;
}

// The end of the exchange after a step. The right-hand side is not needed any more, so that its registers are free.
__device__ __forceinline__ void receive_all(Pressure& pressure, Exchange& exchange, const Fields& fields, unsigned turn,
                                            unsigned round) {
    const Shared& shared = pressure.shared;
    number moved[ROWS][COLUMNS] = {};
    exchange.receive_both(exchange.copied, fields.pressure, turn, pressure.p, exchange.copied, fields.velocity_u, round, moved);
    exchange.store(moved, shared.u, shared);
    exchange.receive_rows(exchange.copied, fields.velocity_v, round, moved);
    exchange.store(moved, shared.v, shared);
    __syncwarp();
    pressure.turn ^= 1;  // other warps may not have read the edges for the gradient yet
    pressure.store_edges();
}

// Calls `visit(place in shared memory, column, row)` for the points of the region and those around it, up to the boundary.
template <class Visit>
__device__ __forceinline__ void for_each_point(const Place& at, Visit visit) {
    for (int k = threadIdx.x; k < (HEIGHT + 2) * (WIDTH + 2); k += BLOCK_THREADS) {
        int row = k / (WIDTH + 2), column = k % (WIDTH + 2);
        int x = at.x.first + column - 1, y = at.y.first + row - 1;
        if (x <= INNER_X && y <= INNER_Y) visit(row * STRIDE + 3 + column, x, y);
    }
}

__device__ __forceinline__ void load_fields(Pressure& pressure, const Fields& fields) {
    const Place& at = pressure.at;
    const Shared& shared = pressure.shared;
    int size = 2 * ((HEIGHT + 2) * STRIDE + 4) + 2 * (2 * WARPS + 1) * WIDTH;
    for (int k = threadIdx.x; k < size; k += BLOCK_THREADS) shared.u[k] = 0;
    __syncthreads();
    for_each_point(at, [&](int place, int x, int y) {
        size_t point = (size_t)(y + 1) * (INNER_X + 2) + x + 1;
        shared.u[place] = fields.u[point], shared.v[place] = fields.v[point];
    });
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            size_t point = (size_t)(at.row + r + 1) * (INNER_X + 2) + at.column + k + 1;
            pressure.p[r][k] = at.is_inside(r, k) ? fields.p[point] : 0;
        }
    }
    pressure.store_edges();
}

__device__ __forceinline__ void set_boundary(const Place& at, const Shared& shared, number lid) {
    __syncthreads();
    for_each_point(at, [&](int place, int x, int y) {
        bool side = x < 0 || x == INNER_X;
        if (side || y < 0 || y == INNER_Y) shared.u[place] = y == INNER_Y && !side ? lid : 0, shared.v[place] = 0;
    });
}

__device__ __forceinline__ void store_fields(const Pressure& pressure, const Fields& fields) {
    const Place& at = pressure.at;
    for_each_point(at, [&](int place, int x, int y) {
        bool own_x = (x >= at.x.begin && x < at.x.end) || x < 0 || x == INNER_X;
        bool own_y = (y >= at.y.begin && y < at.y.end) || y < 0 || y == INNER_Y;
        size_t point = (size_t)(y + 1) * (INNER_X + 2) + x + 1;
        if (own_x && own_y) fields.u[point] = pressure.shared.u[place], fields.v[point] = pressure.shared.v[place];
    });
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            if (!(at.owns_row(r) && at.owns_column(k))) continue;
            int x = at.column + k, y = at.row + r;
            for (int i = x == 0 ? -1 : 0; i <= (x == INNER_X - 1 ? 1 : 0); ++i) {
                number* point = fields.p + (size_t)(y + 1) * (INNER_X + 2) + x + i + 1;
                *point = pressure.p[r][k];
                if (y == 0) point[-(INNER_X + 2)] = pressure.p[r][k];
                if (y == INNER_Y - 1) point[INNER_X + 2] = 0;
            }
        }
    }
}

// Takes `steps` steps after `done` earlier ones. A sweep needs one layer of the halo, the right-hand side one more until it
// has been exchanged, and the gradient another one.
extern "C" __global__ void RESIDENT advance(int n, int bytes, int steps, int done, Fields fields, Factors factors, int* status) {
    extern __shared__ uint4 memory[];
    constexpr bool alone = GRID_X * GRID_Y == 1;
    Place at;
    Shared shared((number*)memory, at);
    Pressure pressure(at, shared);
    Exchange exchange(at, status + 1);
    unsigned round = 2 + done, turn = 2 + done * (unsigned)EXCHANGES;
    load_fields(pressure, fields);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        tentative(at, shared, factors);
        find_source(pressure, factors);
        int layers = alone ? SWEEPS + 1 : HALO - 1, left = SWEEPS;
        bool is_first = true;
#pragma unroll 1
        while (true) {
            int sweeps = min(left, layers);
#pragma unroll 2  // so that no numbers are moved from register to register
            for (int k = 0; k < sweeps; ++k) pressure.sweep();
            left -= sweeps, layers -= sweeps;
            if (alone || (left == 0 && layers > 0)) break;
            if (is_first) {
                exchange_pressure<true>(pressure, exchange, fields, turn, round);
            } else {
                exchange_pressure<false>(pressure, exchange, fields, turn, round);
            }
            is_first = false, layers = HALO, ++turn;
        }
        if (NO_SWEEP_BETWEEN) __syncthreads();  // as a sweep has: all that was exchanged has arrived
        if (!alone) exchange.send(exchange.published, fields.pressure, turn, pressure.p);
        if (correct<alone>(pressure, factors, exchange, fields, round) != 0) atomicMin(status, step + 1);
        if (!alone) receive_all(pressure, exchange, fields, turn, round), ++turn, ++round;
        if (step == 0) set_boundary(at, shared, fields.lid);  // last: copies have boundary values of before
    }
    __syncthreads();
    store_fields(pressure, fields);
}
