// Sums over the particles within radii as matrix products on tensor cores; see tensor.py.
//
// A block of threads takes BX x BY x BZ cells. It stages the particles of these cells and of those around as numbers of half
// precision, each a high and a low part, relative to the centre of the block. A warp then takes 16 particles of a row
// against 16 staged ones at a time: one product gives the squares of 256 distances, masks follow from these, and a second
// product of the masks and the staged numbers gives the sums. A mask between 0 and 1 is of a pair too close to a radius for
// half precision. Then a count, or a sum of integer weights, is no integer, and the particle is summed again in float32.

#include "md/backend/tensor_cores.cuh"

#define STAGING_WARPS (STAGING_THREADS / 32)
#define PARTS 4  // of the cells along axis 0, which are at least the cutoff wide in all
#define BX 16
#define BY (DIM == 3 ? 2 : 4)
#define BZ (DIM == 3 ? 2 : 1)
#define ROW_CELLS (BX + 2 * PARTS)
#define REGION_ROWS ((BY + 2) * (DIM == 3 ? BZ + 2 : 1))
#define HOME_ROWS (BY * BZ)
#define PARTNER_ROWS (DIM == 3 ? 9 : 3)
#define PADDING 15           // entries after each row, which no mask selects
#define FAR_SQUARE 60000.0f  // of an entry that no mask selects
#define FARTHEST_POWER 100   // of 2, in a scale of velocities
#define WINDOWS ((int)(sizeof(((Windows*)0)->radius2) / sizeof(float)))
#define LAW_WINDOWS ((int)(sizeof(((Windows*)0)->window_of) / sizeof(int)))

// A vector in half precision: high parts of x and y; of z, and low part of x; low parts of y and z.
struct Halves {
    unsigned xy, zx, yz;
};

__device__ __forceinline__ Halves halves_of(float x, float y, float z) {
    Halves h;
    h.xy = packed(x, y);
    float2 high = unpacked(h.xy);
    float high_z = unpacked(packed(z, 0)).x;
    h.zx = packed(z, x - high.x);
    h.yz = packed(y - high.y, z - high_z);
    return h;
}

__device__ __forceinline__ float3 vector_of(unsigned xy, unsigned zx, unsigned yz) {
    float2 a = unpacked(xy), b = unpacked(zx), c = unpacked(yz);
    return make_float3(a.x + b.y, a.y + c.x, b.x + c.y);
}

__device__ __forceinline__ float square(const float3& r) { return fmaf(r.x, r.x, fmaf(r.y, r.y, r.z * r.z)); }

// Particles of a row of cells around a block, in three ranges: of the cells before those of the block, which are at the
// other end of a periodic axis if the block is at an end; beside it; and after it.
struct Row {
    int from[3], count[3];
    float shift[3];  // of the coordinates of the particles, by an image
};

struct Region {
    Row row[REGION_ROWS];
    int end[REGION_ROWS][3];                 // of the ranges
    int offset[REGION_ROWS][ROW_CELLS + 1];  // of the cells of a row among the staged particles
    int base[REGION_ROWS + 1];               // of the rows
    int home[HOME_ROWS][BX + 1];             // first slot of each cell of the block, and end
    int groups[HOME_ROWS + 1];               // number of the first 16 particles of a row
    int next, plain;
    unsigned fastest;  // bits of the largest component of a velocity
};

// The sums of a window, the particle itself included: in units of the scales, relative to the centre of the block.
struct Sums7 {
    float count;
    float3 pos, vel;
};

// Rounds a coordinate to a whole number of units of the scale: differences to it are exact.
__device__ __forceinline__ float rounded(float x, float scale) { return rintf(x * scale) / scale; }

// Position relative to the centre of the block, in units of the scale.
__device__ __forceinline__ float3 relative(const Vec& r, const float3& centre, float scale) {
    return make_float3((r.x[0] - centre.x) * scale, (r.x[1] - centre.y) * scale,
                       DIM == 3 ? (r.x[DIM - 1] - centre.z) * scale : 0.0f);
}

__device__ __forceinline__ float3 scaled(const Vec& v, float scale) {
    return make_float3(v.x[0] * scale, v.x[1] * scale, DIM == 3 ? v.x[DIM - 1] * scale : 0.0f);
}

__device__ __forceinline__ Vec plain_vector(const float3& v, float scale) {
    Vec out;
    out.x[0] = v.x * scale;
    out.x[1] = v.y * scale;
    if (DIM == 3) out.x[DIM - 1] = v.z * scale;
    return out;
}

// Wraps the number of a cell past an end of an axis; returns false if the axis is not periodic.
__device__ __forceinline__ bool wrap(int& cell, const Grid& grid, int axis) {
    int count = grid.cells[axis];
    if (cell >= 0 && cell < count) return true;
    cell += cell < 0 ? count : -count;
    return grid.periodic[axis] != 0;
}

// Cell of a row of the block that contains a slot, found by a warp.
__device__ __forceinline__ int cell_of(const int* cells, int size, int slot) {
    int lane = threadIdx.x % 32;
    return __popc(__ballot_sync(~0u, lane > 0 && lane < size && cells[lane] <= slot));
}

// Slot of entry k of a row, and the shift of its particle.
__device__ __forceinline__ int entry(const Row& row, int k, float& shift) {
    int part = 0;
    if (k >= row.count[0]) {
        k -= row.count[0];
        part = 1;
        if (k >= row.count[1]) {
            k -= row.count[1];
            part = 2;
        }
    }
    shift = row.shift[part];
    return row.from[part] + k;
}

// Range of cell x of a row of the region.
__device__ __forceinline__ int part_of(int x, int size) { return (x >= PARTS) + (x >= size + PARTS); }

// Lists the cells of the region, with their places among the staged particles.
__device__ __forceinline__ void survey(Region& region, const int* start, const Grid& grid, const int3& first,
                                       const int3& size) {
    for (int k = threadIdx.x; k < REGION_ROWS * ROW_CELLS; k += STAGING_THREADS) {
        int r = k / ROW_CELLS, x = k % ROW_CELLS;
        int3 cell = {first.x + x - PARTS, first.y + r % (BY + 2) - 1, DIM == 3 ? first.z + r / (BY + 2) - 1 : 0};
        bool there = x < size.x + 2 * PARTS && r % (BY + 2) < size.y + 2 && (DIM == 2 || r / (BY + 2) < size.z + 2);
        there = wrap(cell.x, grid, 0) && there;
        there = wrap(cell.y, grid, 1) && there;
        if (DIM == 3) there = wrap(cell.z, grid, DIM - 1) && there;
        int number = cell.x + grid.cells[0] * (cell.y + grid.cells[1] * cell.z), part = part_of(x, size.x);
        int from = there ? start[number] : 0;
        region.offset[r][x] = from;  // the slot, for now
        if (x == 0 || x == PARTS || x == size.x + PARTS) region.row[r].from[part] = from;
        if (x == PARTS - 1 || x == size.x + PARTS - 1 || x == size.x + 2 * PARTS - 1) {
            region.end[r][part] = there ? start[number + 1] : 0;
        }
    }
    for (int k = threadIdx.x; k < HOME_ROWS * (BX + 1); k += STAGING_THREADS) {
        int h = k / (BX + 1), x = k % (BX + 1), y = h % BY, z = h / BY;
        int number = first.x + min(x, size.x) + grid.cells[0] * (first.y + y + grid.cells[1] * (first.z + z));
        region.home[h][x] = y < size.y && z < size.z ? start[number] : 0;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        int r = threadIdx.x, total = 0;
        if (r < REGION_ROWS) {
            Row& row = region.row[r];
            for (int part = 0; part < 3; ++part) {
                row.count[part] = region.end[r][part] - row.from[part];
                row.shift[part] = 0;
                total += row.count[part];
            }
            if (first.x == 0) row.shift[0] = -grid.length[0];
            if (first.x + size.x == grid.cells[0]) row.shift[2] = grid.length[0];
            total += PADDING;
        }
        int upto = total;
#pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
            int before = __shfl_up_sync(~0u, upto, apart);
            if (threadIdx.x >= apart) upto += before;
        }
        if (r < REGION_ROWS) region.base[r + 1] = upto;
        if (r == 0) region.base[0] = 0;
    } else if (threadIdx.x == 32) {
        int groups = 0;
        for (int h = 0; h < HOME_ROWS; ++h) {
            region.groups[h] = groups;
            groups += (region.home[h][BX] - region.home[h][0] + 15) / 16;
        }
        region.groups[HOME_ROWS] = groups;
        region.next = region.plain = region.fastest = 0;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < REGION_ROWS * (ROW_CELLS + 1); k += STAGING_THREADS) {
        int r = k / (ROW_CELLS + 1), x = k % (ROW_CELLS + 1), part = part_of(x, size.x), offset = region.base[r];
        const Row& row = region.row[r];
        if (part > 0) offset += row.count[0];
        if (part > 1) offset += row.count[1];
        if (x < size.x + 2 * PARTS) region.offset[r][x] += offset - row.from[part];
        if (x == size.x + 2 * PARTS) region.offset[r][x] = region.base[r + 1] - PADDING;
    }
    __syncthreads();
}

// Stages the particles of the region, and returns the scale of velocities, a power of two. Particles too far from the
// centre, or velocities that have no scale, make the block a plain one.
__device__ __forceinline__ float stage(Region& region, uint4* staged_pos, uint4* staged_vel, int n, const real* pos,
                                       const real* vel, const Grid& grid, const Windows& windows, const int3& first,
                                       const int3& size, const float3& centre) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool good = true;
    unsigned fastest = 0;
    for (int r = warp; r < REGION_ROWS; r += STAGING_WARPS) {
        const Row& row = region.row[r];
        int base = region.base[r], count = region.base[r + 1] - PADDING - base;
        int y = first.y + r % (BY + 2) - 1, z = DIM == 3 ? first.z + r / (BY + 2) - 1 : 0;
        float3 shift = {0, y < 0 ? -grid.length[1] : y >= grid.cells[1] ? grid.length[1] : 0, 0};
        if (DIM == 3) shift.z = z < 0 ? -grid.length[DIM - 1] : z >= grid.cells[2] ? grid.length[DIM - 1] : 0;
        for (int k = lane; k < count + PADDING; k += 32) {
            uint4 place = {0, 0, 0, packed(FAR_SQUARE, 0)}, speed = {0, 0, 0, 0};
            if (k < count) {
                int j = entry(row, k, shift.x);
                Vec r = load(pos, n, j), v = load(vel, n, j);
                r.x[0] += shift.x;
                r.x[1] += shift.y;
                if (DIM == 3) r.x[DIM - 1] += shift.z;
                float3 near = relative(r, centre, windows.scale);
                Halves h = halves_of(near.x, near.y, near.z);
                float n2 = square(vector_of(h.xy, h.zx, h.yz));
                good = good && n2 <= windows.farthest2;  // false for NaN
                place = make_uint4(h.xy, h.zx, h.yz, packed(n2, n2 - unpacked(packed(n2, 0)).x));
                // As they are, until the scale is known; and a weight of the particle, by which masks are checked.
                float last = DIM == 3 ? v.x[DIM - 1] : 0.0f, weight = 1 + (((unsigned)j * 40503u) >> 8) % 255;
                speed = make_uint4(__float_as_uint(v.x[0]), __float_as_uint(v.x[1]), __float_as_uint(last),
                                   packed(1, weight));
                fastest = max(max(fastest, speed.x & 0x7fffffffu), max(speed.y & 0x7fffffffu, speed.z & 0x7fffffffu));
            }
            staged_pos[base + k] = place;
            staged_vel[base + k] = speed;
        }
    }
    if (!good) region.plain = 1;
    fastest = __reduce_max_sync(~0u, fastest);
    if (lane == 0) atomicMax(&region.fastest, fastest);
    __syncthreads();
    int power = region.fastest ? (int)(region.fastest >> 23) - 127 : 0;  // 128 for numbers that are not finite
    if (power < -FARTHEST_POWER || power > FARTHEST_POWER) {
        if (threadIdx.x == 0) region.plain = 1;
        power = 0;
    }
    float scale = __uint_as_float((unsigned)(127 - power) << 23);
    for (int k = threadIdx.x; k < region.base[REGION_ROWS]; k += STAGING_THREADS) {
        uint4 speed = staged_vel[k];
        Halves w = halves_of(__uint_as_float(speed.x) * scale, __uint_as_float(speed.y) * scale,
                             __uint_as_float(speed.z) * scale);
        staged_vel[k] = make_uint4(w.xy, w.zx, w.yz, speed.w);
    }
    __syncthreads();
    return scale;
}

// Sums of one particle in float32, by a warp: over the staged particles, or over those in memory.
template <bool STAGED>
__device__ __forceinline__ void exact_sums(const Region& region, const uint4* staged_pos, const uint4* staged_vel, int n,
                                           const real* pos, const real* vel, const Grid& grid, const Windows& windows,
                                           const int3& first, const float3& centre, int i, int cell_x, int home_y,
                                           int home_z, Sums7 (&sums)[WINDOWS]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < WINDOWS; ++w) sums[w] = {0, {0, 0, 0}, {0, 0, 0}};
    float3 own = relative(load(pos, n, i), centre, windows.scale);
    if (STAGED) {
        Halves h = halves_of(own.x, own.y, own.z);
        own = vector_of(h.xy, h.zx, h.yz);
    }
    for (int b = 0; b < PARTNER_ROWS; ++b) {
        int r = home_y + b % 3 + (BY + 2) * (home_z + b / 3);
        int base = region.base[r], from = region.offset[r][cell_x], to = region.offset[r][cell_x + 2 * PARTS + 1];
        int y = first.y + r % (BY + 2) - 1, z = DIM == 3 ? first.z + r / (BY + 2) - 1 : 0;
        float3 shift = {0, y < 0 ? -grid.length[1] : y >= grid.cells[1] ? grid.length[1] : 0, 0};
        if (DIM == 3) shift.z = z < 0 ? -grid.length[DIM - 1] : z >= grid.cells[2] ? grid.length[DIM - 1] : 0;
        for (int k = from + lane; k < to; k += 32) {
            float3 near, v;
            if (STAGED) {
                uint4 place = staged_pos[k], speed = staged_vel[k];
                near = vector_of(place.x, place.y, place.z);
                v = vector_of(speed.x, speed.y, speed.z);
            } else {
                int j = entry(region.row[r], k - base, shift.x);
                Vec other = load(pos, n, j);
                other.x[0] += shift.x;
                other.x[1] += shift.y;
                if (DIM == 3) other.x[DIM - 1] += shift.z;
                near = relative(other, centre, windows.scale);
                v = scaled(load(vel, n, j), 1);
            }
            float3 d = {own.x - near.x, own.y - near.y, own.z - near.z};
            float r2 = square(d);
#pragma unroll
            for (int w = 0; w < WINDOWS; ++w) {
                if (r2 < windows.radius2[w]) {
                    sums[w].count += 1;
                    sums[w].pos.x += d.x, sums[w].pos.y += d.y, sums[w].pos.z += d.z;
                    sums[w].vel.x += v.x, sums[w].vel.y += v.y, sums[w].vel.z += v.z;
                }
            }
        }
    }
#pragma unroll
    for (int w = 0; w < WINDOWS; ++w) {
        float* values = (float*)&sums[w];
#pragma unroll
        for (int k = 0; k < 7; ++k) {
#pragma unroll
            for (int apart = 16; apart; apart /= 2) values[k] += __shfl_xor_sync(~0u, values[k], apart);
        }
    }
}

// Passes the sums of a particle to the law, and its result to the output. The velocity is subtracted as it was summed, so
// that a particle without partners has sums of 0.
__device__ __forceinline__ void conclude(int n, int i, const real* pos, const real* vel, const Grid& grid, const Law& law,
                                         const Out& out, const Windows& windows, bool plain, float vel_scale,
                                         const Sums7 (&sums)[WINDOWS]) {
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    float3 v = scaled(vi, vel_scale);
    if (!plain) {
        Halves w = halves_of(v.x, v.y, v.z);
        v = vector_of(w.xy, w.zx, w.yz);
    }
    WindowSums found[LAW_WINDOWS];
#pragma unroll
    for (int q = 0; q < LAW_WINDOWS; ++q) {
        Sums7 of = sums[0];
#pragma unroll
        for (int w = 1; w < WINDOWS; ++w) {
            if (windows.window_of[q] == w) of = sums[w];
        }
        float3 turned = {of.count * v.x - of.vel.x, of.count * v.y - of.vel.y, of.count * v.z - of.vel.z};
        found[q].count = (int)of.count - 1;  // without the particle itself
        found[q].pos = plain_vector(of.pos, 1 / windows.scale);
        found[q].vel = plain_vector(turned, 1 / vel_scale);
    }
    finish(out, grid, n, i, ri, vi, result_of_windows(law, ri, vi, found));
}

extern "C" __global__ void STAGING force(int threads, int n, const real* pos, const real* vel, const int* start,
                                         int per_row, int per_plane, int capacity, int bytes, Windows windows, Grid grid,
                                         Law law, Out out) {
    extern __shared__ uint4 memory[];
    uint4 *staged_pos = memory, *staged_vel = memory + capacity;
    __shared__ Region region;
    int block = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int3 first = {BX * (block % per_row), BY * (block / per_row % per_plane), DIM == 3 ? BZ * (block / per_row / per_plane) : 0};
    int3 size = {min(BX, grid.cells[0] - first.x), min(BY, grid.cells[1] - first.y),
                 DIM == 3 ? min(BZ, grid.cells[2] - first.z) : 1};
    survey(region, start, grid, first, size);
    int groups = region.groups[HOME_ROWS];
    if (groups == 0) return;
    float3 centre = {rounded((first.x + size.x * 0.5f) / grid.per_side[0], windows.scale),
                     rounded((first.y + size.y * 0.5f) / grid.per_side[1], windows.scale),
                     DIM == 3 ? rounded((first.z + size.z * 0.5f) / grid.per_side[DIM - 1], windows.scale) : 0.0f};
    bool plain = region.base[REGION_ROWS] > capacity;
    float vel_scale = 1;
    if (!plain) {
        vel_scale = stage(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, size, centre);
        plain = region.plain;
        if (plain) vel_scale = 1;
    }
    // Numbers of the products of each warp: as many as fill the memory, one more a row, and one that is not used.
    unsigned short* products = (unsigned short*)(staged_vel + capacity) + warp * (capacity / 16 + 16);
    int row8 = lane / 4, t = lane % 4;
    for (;;) {
        int group = 0;
        if (lane == 0) group = atomicAdd(&region.next, 1);
        group = __shfl_sync(~0u, group, 0);
        if (group >= groups) break;
        int h = 0;
#pragma unroll
        for (int k = 1; k < HOME_ROWS; ++k) h += group >= region.groups[k];
        const int* cells = region.home[h];
        int i0 = cells[0] + 16 * (group - region.groups[h]), end = min(i0 + 16, cells[BX]);
        int home_y = h % BY, home_z = h / BY;
        int left = cell_of(cells, size.x, i0), right = cell_of(cells, size.x, end - 1);
        Sums7 sums[WINDOWS];
        unsigned again = (1u << (end - i0)) - 1;  // particles to be summed in float32
        if (!plain) {
            // The products of the group: 16 staged particles each, row by row.
            int from = 0, count = 0;
            if (lane < PARTNER_ROWS) {
                int r = home_y + lane % 3 + (BY + 2) * (home_z + lane / 3);
                from = region.offset[r][left];
                count = (region.offset[r][right + 2 * PARTS + 1] - from + 15) / 16;
            }
            int upto = count;
#pragma unroll
            for (int apart = 1; apart < 16; apart *= 2) {
                int before = __shfl_up_sync(~0u, upto, apart);
                if (lane >= apart) upto += before;
            }
            int many = __shfl_sync(~0u, upto, PARTNER_ROWS - 1);
            for (int k = 0; k < count; ++k) products[upto - count + k] = from + 16 * k;
            __syncwarp();

            // Products take numbers in registers side by side. The compiler would merge equal ones, and copy them each time.
            float zero = windows.scale - windows.scale;
            unsigned mine[4];
            float origin[4], selected[WINDOWS][2][4];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                int i = min(i0 + row8 + 8 * half, end - 1);
                float3 own = relative(load(pos, n, i), centre, windows.scale);
                Halves k = halves_of(own.x, own.y, own.z);
                float2 xy = unpacked(k.xy), zx = unpacked(k.zx), yz = unpacked(k.yz);
                float n2 = square(vector_of(k.xy, k.zx, k.yz)) - windows.radius2[0];
                float high0 = t == 0 ? xy.x : t == 1 ? zx.x : xy.y, high1 = t == 0 ? xy.y : t == 1 ? xy.x : zx.x;
                float low0 = t == 0 ? zx.y : t == 1 ? yz.y : yz.x, low1 = t == 0 ? yz.x : t == 1 ? zx.y : yz.y;
                mine[half] = t == 3 ? packed(1, 1) : packed(-2 * high0, -2 * high1);
                mine[half + 2] = t == 3 ? 0 : packed(-2 * low0, -2 * low1);
                origin[2 * half] = n2;
                origin[2 * half + 1] = n2 + zero;
            }
#pragma unroll
            for (int w = 0; w < WINDOWS; ++w) {
#pragma unroll
                for (int k = 0; k < 8; ++k) selected[w][k / 4][k % 4] = 0;
            }
            float sharp = -windows.sharpness, offset[WINDOWS];
#pragma unroll
            for (int w = 0; w < WINDOWS; ++w) offset[w] = windows.offset[w];
            unsigned near_row = shared_address(staged_pos + lane % 8 + lane / 16 * 8);  // each matrix twice
            unsigned sum_row = shared_address((lane < 16 ? staged_pos : staged_vel) + lane % 16);
            unsigned next = products[0];
#pragma unroll 1
            for (int k = 0; k < many; ++k) {
                unsigned at = sizeof(uint4) * next, near[4], parts[4];
                next = products[k + 1];  // of the next round, or unused
                load_columns(near, near_row + at);
                load_rows(parts, sum_row + at);
                float square0[4], square1[4];
                multiply(square0, mine, near[0], near[1], origin);
                multiply(square1, mine, near[2], near[3], origin);
#pragma unroll
                for (int w = 0; w < WINDOWS; ++w) {
                    unsigned mask[4];
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const float* from = q < 2 ? square0 + 2 * q : square1 + 2 * (q - 2);
                        mask[q] = packed(__saturatef(fmaf(sharp, from[0], offset[w])),
                                         __saturatef(fmaf(sharp, from[1], offset[w])));
                    }
                    multiply(selected[w][0], mask, parts[0], parts[1], selected[w][0]);
                    multiply(selected[w][1], mask, parts[2], parts[3], selected[w][1]);
                }
            }
            __syncwarp();
            // Lane k gets the sums of particle k (and k + 16 the same).
            int from_lane = 4 * (lane % 8);
            bool lower = lane % 16 >= 8, whole = true;
            auto get = [&](const float (&d)[4], int second, int of) {
                float a = __shfl_sync(~0u, d[second], from_lane + of), b = __shfl_sync(~0u, d[second + 2], from_lane + of);
                return lower ? b : a;
            };
            float3 own = relative(load(pos, n, min(i0 + lane % 16, end - 1)), centre, windows.scale);
            Halves k = halves_of(own.x, own.y, own.z);
            own = vector_of(k.xy, k.zx, k.yz);
#pragma unroll
            for (int w = 0; w < WINDOWS; ++w) {
                const float(&p)[4] = selected[w][0], (&v)[4] = selected[w][1];
                float3 at = {get(p, 0, 0) + get(p, 1, 1), get(p, 1, 0) + get(p, 0, 2), get(p, 0, 1) + get(p, 1, 2)};
                float count = get(v, 0, 3), weight = get(v, 1, 3);
                sums[w].count = count;
                sums[w].pos = make_float3(count * own.x - at.x, count * own.y - at.y, count * own.z - at.z);
                sums[w].vel =
                    make_float3(get(v, 0, 0) + get(v, 1, 1), get(v, 1, 0) + get(v, 0, 2), get(v, 0, 1) + get(v, 1, 2));
                whole = whole && count == rintf(count) && weight == rintf(weight);
            }
            again &= __ballot_sync(~0u, !whole);
        }
        while (again) {
            int k = __ffs(again) - 1, i = i0 + k, x = cell_of(cells, size.x, i);
            again &= again - 1;
            Sums7 exact[WINDOWS];
            if (plain) {
                exact_sums<false>(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, centre, i, x, home_y,
                                  home_z, exact);
            } else {
                exact_sums<true>(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, centre, i, x, home_y,
                                 home_z, exact);
            }
            if (lane % 16 == k) {
#pragma unroll
                for (int w = 0; w < WINDOWS; ++w) sums[w] = exact[w];
            }
        }
        if (lane < end - i0) conclude(n, i0 + lane, pos, vel, grid, law, out, windows, plain, vel_scale, sums);
    }
}
