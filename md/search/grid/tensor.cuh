// Particles of a block of cells and of the cells around it, staged in shared memory in half precision; see tensor.cu.
//
// Each staged particle has 32 bytes: high and low parts of its position relative to the centre of the block, and of the
// square of its distance from there; and those of its velocity, a 1, and a weight.

#include "md/backend/tensor_cores.cuh"

#define STAGING_WARPS (BLOCK_THREADS / 32)
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
#define FARTHEST_POWER 100   // of 2, in a unit of velocities
#define SLOWEST 0.5f         // largest component of velocities that need no scale, from here
#define FASTEST 16384.0f     // to here
#define ONE 0x3c00u          // in half precision
#define ONE_TWICE 0x3c003c00u
#define BATCH 4              // particles that a lane stages at once
#define WINDOWS ((int)(sizeof(((Windows*)0)->radius2) / sizeof(float)))
#define LAW_WINDOWS ((int)(sizeof(((Windows*)0)->window_of) / sizeof(int)))

// The high and the low part of a number in half precision, and the number.
__device__ __forceinline__ unsigned halves(float x) { return packed(x, x - unpacked(packed(x, 0)).x); }

__device__ __forceinline__ float number(unsigned halves) {
    float2 part = unpacked(halves);
    return part.x + part.y;
}

__device__ __forceinline__ float3 vector_of(const uint4& entry) {
    return make_float3(number(entry.x), number(entry.y), number(entry.z));
}

__device__ __forceinline__ float square(const float3& r) { return fmaf(r.x, r.x, fmaf(r.y, r.y, r.z * r.z)); }

// Particles of a row of cells around a block, in three ranges: of the cells before those of the block, which are at the
// other end of a periodic axis if the block is at an end; beside it; and after it.
struct Row {
    int from[3], count[3];
    float shift[3];  // of coordinate 0 of the particles, by an image, in units of the scale

    __device__ __forceinline__ int size() const { return count[0] + count[1] + count[2]; }
};

struct Region {
    Row row[REGION_ROWS];
    int end[REGION_ROWS][3];                 // of the ranges
    int offset[REGION_ROWS][ROW_CELLS + 1];  // of the cells of a row among the staged particles
    int base[REGION_ROWS + 1];               // of the rows
    int home[HOME_ROWS][BX + 1];             // first slot of each cell of the block, and end
    int groups[HOME_ROWS + 1];               // number of the first 16 particles of a row
    int own[HOME_ROWS];                      // place of slot 0 of a row among the staged particles
    int next, plain;
    unsigned fastest;  // bits of the square of the largest velocity
};

// The sums of a window, the particle itself included: in units of the scales, relative to the centre of the block.
struct Sums7 {
    float count;
    float3 pos, vel;
};

// Size of a number, as an integer that is in the same order.
__device__ __forceinline__ unsigned size_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Position relative to the centre of the block or its image, which is in units of the scale, in these units.
__device__ __forceinline__ float3 relative(const Vec& r, const float3& centre, const Windows& windows) {
    return make_float3(fmaf(r.x[0], windows.scale, -centre.x), fmaf(r.x[1], windows.scale, -centre.y),
                       DIM == 3 ? fmaf(r.x[DIM - 1], windows.scale, -centre.z) : 0.0f);
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

// Slot of entry k of a row, and the range that it is in.
__device__ __forceinline__ int entry(const Row& row, int k, int& part) {
    int second = row.count[0], third = second + row.count[1];
    part = (k >= second) + (k >= third);
    return k + (part == 0 ? row.from[0] : part == 1 ? row.from[1] - second : row.from[2] - third);
}

// Range of cell x of a row of the region.
__device__ __forceinline__ int part_of(int x, int size) { return (x >= PARTS) + (x >= size + PARTS); }

// Lists the cells of the region, with their places among the staged particles.
__device__ __forceinline__ void survey(Region& region, const int* start, const Grid& grid, const Windows& windows,
                                       const int3& first, const int3& size) {
    for (int k = threadIdx.x; k < REGION_ROWS * ROW_CELLS; k += BLOCK_THREADS) {
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
    for (int k = threadIdx.x; k < HOME_ROWS * (BX + 1); k += BLOCK_THREADS) {
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
            if (first.x == 0) row.shift[0] = -windows.scale * grid.length[0];
            if (first.x + size.x == grid.cells[0]) row.shift[2] = windows.scale * grid.length[0];
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
    for (int k = threadIdx.x; k < REGION_ROWS * (ROW_CELLS + 1); k += BLOCK_THREADS) {
        int r = k / (ROW_CELLS + 1), x = k % (ROW_CELLS + 1), part = part_of(x, size.x), offset = region.base[r];
        const Row& row = region.row[r];
        if (part > 0) offset += row.count[0];
        if (part > 1) offset += row.count[1];
        if (x < size.x + 2 * PARTS) region.offset[r][x] += offset - row.from[part];
        if (x == size.x + 2 * PARTS) region.offset[r][x] = region.base[r + 1] - PADDING;
    }
    if (threadIdx.x < HOME_ROWS) {
        int r = threadIdx.x % BY + 1 + (BY + 2) * (DIM == 3 ? threadIdx.x / BY + 1 : 0);
        region.own[threadIdx.x] = region.base[r] + region.row[r].count[0] - region.row[r].from[1];
    }
    __syncthreads();
}

// Image of the centre of the block for a row of the region: the particles of the row stay where they are. Along axis 0 it is
// the centre itself.
__device__ __forceinline__ float3 image_of(const float3& centre, int r, const Grid& grid, const Windows& windows,
                                           const int3& first) {
    int y = first.y + r % (BY + 2) - 1, z = DIM == 3 ? first.z + r / (BY + 2) - 1 : 0;
    float3 image = centre;
    image.y += windows.scale * (y < 0 ? grid.length[1] : y >= grid.cells[1] ? -grid.length[1] : 0);
    if (DIM == 3) image.z += windows.scale * (z < 0 ? grid.length[DIM - 1] : z >= grid.cells[2] ? -grid.length[DIM - 1] : 0);
    return image;
}

// Stages a particle: its position relative to the centre of the block, its velocity, and a weight by which masks are
// checked: 1024 and an odd number. Returns the square of its distance from the centre.
__device__ __forceinline__ float stage_entry(uint4* staged_pos, uint4* staged_vel, int at, const float3& near, const float3& v) {
    uint4 place = {halves(near.x), halves(near.y), halves(near.z), 0};
    float n2 = square(vector_of(place));
    place.w = halves(n2);
    unsigned weight = 0x6401u | ((unsigned)at * 40503u >> 7 & 0x3ffu);
    staged_pos[at] = place;
    staged_vel[at] = make_uint4(halves(v.x), halves(v.y), halves(v.z), ONE | weight << 16);
    return n2;
}

// Stages the particles of the region. Particles too far from the centre make the block a plain one.
__device__ __forceinline__ void stage(Region& region, uint4* staged_pos, uint4* staged_vel, int n, const real* pos,
                                      const real* vel, const Grid& grid, const Windows& windows, const int3& first,
                                      const float3& centre) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool good = true;
    float fastest2 = 0;
    for (int r = warp; r < REGION_ROWS; r += STAGING_WARPS) {
        const Row& row = region.row[r];
        int base = region.base[r], count = row.size();
        float3 middle = image_of(centre, r, grid, windows, first);
        float middle_x[3] = {middle.x - row.shift[0], middle.x - row.shift[1], middle.x - row.shift[2]};
        for (int k0 = lane; k0 < count; k0 += 32 * BATCH) {
            Vec at[BATCH], speed[BATCH];
            int part[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                int j = entry(row, min(k0 + 32 * b, count - 1), part[b]);
                at[b] = load(pos, n, j), speed[b] = load(vel, n, j);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (k0 + 32 * b >= count) break;
                middle.x = part[b] == 0 ? middle_x[0] : part[b] == 1 ? middle_x[1] : middle_x[2];
                float3 near = relative(at[b], middle, windows), v = scaled(speed[b], 1);
                float n2 = stage_entry(staged_pos, staged_vel, base + k0 + 32 * b, near, v), speed2 = square(v);
                good = good && n2 <= windows.farthest2;  // false for NaN
                fastest2 = speed2 < FASTEST * FASTEST ? max(fastest2, speed2) : FASTEST * FASTEST;
            }
        }
        if (lane < PADDING) {
            staged_pos[base + count + lane] = make_uint4(0, 0, 0, packed(FAR_SQUARE, 0));
            staged_vel[base + count + lane] = make_uint4(0, 0, 0, 0);
        }
    }
    if (!good) region.plain = 1;
    unsigned fastest = __reduce_max_sync(~0u, __float_as_uint(fastest2));
    if (lane == 0) atomicMax(&region.fastest, fastest);
    __syncthreads();
}

// Stages the velocities again in units of a scale.
__device__ __forceinline__ void stage_scaled(const Region& region, uint4* staged_vel, int n, const real* vel, float scale) {
    for (int r = threadIdx.x / 32; r < REGION_ROWS; r += STAGING_WARPS) {
        int base = region.base[r], part;
        for (int k = threadIdx.x % 32; k < region.row[r].size(); k += 32) {
            float3 v = scaled(load(vel, n, entry(region.row[r], k, part)), scale);
            unsigned last = staged_vel[base + k].w;
            staged_vel[base + k] = make_uint4(halves(v.x), halves(v.y), halves(v.z), last);
        }
    }
}

// Bits of the largest component of a velocity, by all threads.
__device__ __forceinline__ unsigned largest_component(Region& region, int n, const real* vel) {
    __syncthreads();  // all have read the square
    if (threadIdx.x == 0) region.fastest = 0;
    __syncthreads();
    for (int r = threadIdx.x / 32; r < REGION_ROWS; r += STAGING_WARPS) {
        for (int k = threadIdx.x % 32, part; k < region.row[r].size(); k += 32) {
            float3 v = scaled(load(vel, n, entry(region.row[r], k, part)), 1);
            atomicMax(&region.fastest, max(max(size_of(v.x), size_of(v.y)), size_of(v.z)));
        }
    }
    __syncthreads();
    return region.fastest;
}

// Returns the unit of the velocities, a power of two: 1 if the fastest fits half precision as it is. Otherwise stages the
// velocities again in this unit. Velocities that have no unit make the block a plain one.
__device__ __forceinline__ float suit_velocities(Region& region, uint4* staged_vel, int n, const real* vel) {
    float fastest2 = __uint_as_float(region.fastest);
    if (region.plain || (fastest2 >= SLOWEST * SLOWEST && fastest2 < FASTEST * FASTEST)) return 1;
    unsigned largest = largest_component(region, n, vel);
    int power = largest ? (int)(largest >> 23) - 127 : 0;  // 128 for numbers that are not finite
    bool none = power < -FARTHEST_POWER || power > FARTHEST_POWER;
    if (none && threadIdx.x == 0) region.plain = 1;
    if (!none) stage_scaled(region, staged_vel, n, vel, __uint_as_float((unsigned)(127 - power) << 23));
    __syncthreads();
    return none ? 1 : __uint_as_float((unsigned)(127 + power) << 23);
}
