// Sums over the particles within radii as matrix products on tensor cores; see tensor.py.
//
// A block of threads takes BX x BY x BZ cells. It stages the particles of these cells and of those around as numbers of half
// precision, each a high and a low part, relative to the centre of the block. A warp then takes 16 particles of a row
// against 16 staged ones at a time: one product gives the squares of 256 distances, masks follow from these, and a second
// product of the masks and the staged numbers gives the sums. A mask between 0 and 1 is of a pair too close to a radius for
// half precision. Then a count, or a sum of integer weights, is no integer, and the particle is summed again in float32.

#include "md/search/grid/tensor.cuh"

// Sum over the lanes of a warp.
__device__ __forceinline__ float of_warp(float x) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
    return x;
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
    float3 own = STAGED ? vector_of(staged_pos[region.own[home_y + BY * home_z] + i])
                        : relative(load(pos, n, i), centre, windows);
    for (int b = 0; b < PARTNER_ROWS; ++b) {
        int r = home_y + b % 3 + (BY + 2) * (home_z + b / 3);
        int base = region.base[r], from = region.offset[r][cell_x], to = region.offset[r][cell_x + 2 * PARTS + 1];
        float3 image = image_of(centre, r, grid, windows, first);
        for (int k = from + lane; k < to; k += 32) {
            float3 near, v;
            if (STAGED) {
                near = vector_of(staged_pos[k]);
                v = vector_of(staged_vel[k]);
            } else {
                int part, j = entry(region.row[r], k - base, part);
                near = relative(load(pos, n, j), image, windows);
                near.x += region.row[r].shift[part];
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
        sums[w].count = of_warp(sums[w].count);
        sums[w].pos = make_float3(of_warp(sums[w].pos.x), of_warp(sums[w].pos.y), of_warp(sums[w].pos.z));
        sums[w].vel = make_float3(of_warp(sums[w].vel.x), of_warp(sums[w].vel.y), of_warp(sums[w].vel.z));
    }
}

__device__ __forceinline__ float3 either(bool first, const float3& a, const float3& b) {
    return make_float3(either(first, a.x, b.x), either(first, a.y, b.y), either(first, a.z, b.z));
}

// Passes the sums of a particle to the law, and its result to the output. The velocity `v` is subtracted as it was summed, so
// that a particle without partners has sums of 0.
__device__ __forceinline__ void conclude(int n, int i, const real* pos, const real* vel, const Grid& grid, const Law& law,
                                         const Out& out, const Windows& windows, float vel_unit, const float3& v,
                                         const Sums7 (&sums)[WINDOWS]) {
    Vec ri = load(pos, n, i), vi = load(vel, n, i);
    WindowSums found[LAW_WINDOWS];
#pragma unroll
    for (int q = 0; q < LAW_WINDOWS; ++q) {
        Sums7 of = sums[0];
#pragma unroll
        for (int w = 1; w < WINDOWS; ++w) {
            bool right = windows.window_of[q] == w;
            of.count = either(right, sums[w].count, of.count);
            of.pos = either(right, sums[w].pos, of.pos);
            of.vel = either(right, sums[w].vel, of.vel);
        }
        float3 turned = {of.count * v.x - of.vel.x, of.count * v.y - of.vel.y, of.count * v.z - of.vel.z};
        found[q].count = (int)of.count - 1;  // without the particle itself
        found[q].pos = plain_vector(of.pos, windows.unit);
        found[q].vel = plain_vector(turned, vel_unit);
    }
    finish(out, grid, n, i, ri, vi, result_of_windows(law, ri, vi, found));
}

// Axes 0 to 3 of two rows, of which each of four lanes has one axis: the first lane gets the row `low`, the second `high`.
__device__ __forceinline__ void gather(float low, float high, float (&all)[4]) {
    bool odd = threadIdx.x % 2;
    float own = odd ? high : low, other = __shfl_xor_sync(~0u, odd ? low : high, 1);
    all[0] = odd ? other : own;
    all[1] = odd ? own : other;
    all[2] = __shfl_xor_sync(~0u, all[0], 2);
    all[3] = __shfl_xor_sync(~0u, all[1], 2);
}

// Sums of 16 particles, of which the first is staged at `own`, by products on tensor cores. Lanes 4 k and 4 k + 1 get those
// of particles k and k + 8. Returns which particles, as bits, are to be summed again.
__device__ __forceinline__ unsigned products(const Region& region, const uint4* staged_pos, const uint4* staged_vel,
                                             const Windows& windows, int own, int last, int from, int count,
                                             Sums7 (&sums)[WINDOWS]) {
    int lane = threadIdx.x % 32, row8 = lane / 4, t = lane % 4;
    unsigned mine[4], origin[WINDOWS][2], offset[WINDOWS][2];
    float selected[WINDOWS][2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4* at = staged_pos + own + min(row8 + 8 * half, last);
        unsigned axis = ((const unsigned*)at)[t];
        mine[half] = t == 3 ? ONE_TWICE : times(packed(-2, -2), lower_twice(axis));
        mine[half + 2] = t == 3 ? 0 : times(packed(-2, -2), upper_twice(axis));
        float n2 = number(at->w);
#pragma unroll
        for (int w = 0; w < WINDOWS; ++w) {
            float rest = n2 - windows.radius2[w];
            origin[w][half] = packed(rest, rest);
            rest -= unpacked(origin[w][half]).x;
            float level = fmaf(-windows.sharpness, rest, windows.offset);
            offset[w][half] = packed(level, level);
        }
    }
#pragma unroll
    for (int w = 0; w < WINDOWS; ++w) {
#pragma unroll
        for (int k = 0; k < 8; ++k) selected[w][k / 4][k % 4] = 0;
    }
    unsigned sharp = packed(-windows.sharpness, -windows.sharpness);
    unsigned near_row = shared_address(staged_pos + lane % 8 + lane / 16 * 8);  // each matrix twice
    unsigned sum_row = shared_address((lane < 16 ? staged_pos : staged_vel) + lane % 16);
#pragma unroll 1
    for (int b = 0; b < PARTNER_ROWS; ++b) {
        unsigned at = sizeof(uint4) * __shfl_sync(~0u, from, b);
        unsigned end = at + sizeof(uint4) * __shfl_sync(~0u, count, b);
#pragma unroll 2
        for (; at < end; at += 16 * sizeof(uint4)) {
            unsigned near[4], parts[4];
            load_columns(near, near_row + at);
            load_rows(parts, sum_row + at);
#pragma unroll
            for (int w = 0; w < WINDOWS; ++w) {
                unsigned square[2][2], mask[4];
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    multiply(square[q], mine, near[2 * q], near[2 * q + 1], origin[w]);
                    mask[2 * q] = saturated(sharp, square[q][0], offset[w][0]);
                    mask[2 * q + 1] = saturated(sharp, square[q][1], offset[w][1]);
                }
                multiply(selected[w][0], mask, parts[0], parts[1], selected[w][0]);
                multiply(selected[w][1], mask, parts[2], parts[3], selected[w][1]);
            }
        }
    }
    uint4 place = staged_pos[own + min(row8 + 8 * (t % 2), last)];
    float3 r = vector_of(place);
    bool whole[2] = {true, true};
#pragma unroll
    for (int w = 0; w < WINDOWS; ++w) {
        const float(&p)[4] = selected[w][0], (&v)[4] = selected[w][1];
        float at[4], moved[4];
        gather(p[0] + p[1], p[2] + p[3], at);
        gather(t == 3 ? v[0] : v[0] + v[1], t == 3 ? v[2] : v[2] + v[3], moved);
        sums[w].count = moved[3];
        sums[w].pos = make_float3(moved[3] * r.x - at[0], moved[3] * r.y - at[1], moved[3] * r.z - at[2]);
        sums[w].vel = make_float3(moved[0], moved[1], moved[2]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            whole[half] = whole[half] && v[2 * half] == rintf(v[2 * half]) && v[2 * half + 1] == rintf(v[2 * half + 1]);
        }
    }
    unsigned lower = __ballot_sync(~0u, t == 3 && !whole[0]), upper = __ballot_sync(~0u, t == 3 && !whole[1]), again = 0;
    if (lower | upper) {
#pragma unroll 1
        for (int k = 0; k < 8; ++k) again |= (lower >> (4 * k + 3) & 1) << k | (upper >> (4 * k + 3) & 1) << (k + 8);
    }
    return again & (2u << last) - 1;
}

extern "C" __global__ void STAGING force(int threads, int n, const real* pos, const real* vel, const int* start,
                                         int per_row, int per_plane, int capacity, int bytes, Windows windows, Grid grid,
                                         Law law, Out out) {
    extern __shared__ uint4 memory[];
    uint4 *staged_pos = memory, *staged_vel = memory + capacity;
    __shared__ Region region;
    int block = blockIdx.x, lane = threadIdx.x % 32;
    int3 first = {BX * (block % per_row), BY * (block / per_row % per_plane), DIM == 3 ? BZ * (block / per_row / per_plane) : 0};
    int3 size = {min(BX, grid.cells[0] - first.x), min(BY, grid.cells[1] - first.y),
                 DIM == 3 ? min(BZ, grid.cells[2] - first.z) : 1};
    survey(region, start, grid, windows, first, size);
    int groups = region.groups[HOME_ROWS];
    if (groups == 0) return;
    // In units of the scale, and whole: differences to it are exact.
    float3 centre = {rintf((first.x + size.x * 0.5f) / grid.per_side[0] * windows.scale),
                     rintf((first.y + size.y * 0.5f) / grid.per_side[1] * windows.scale),
                     DIM == 3 ? rintf((first.z + size.z * 0.5f) / grid.per_side[DIM - 1] * windows.scale) : 0.0f};
    bool plain = region.base[REGION_ROWS] > capacity;
    float vel_unit = 1;
    if (!plain) {
        stage(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, centre);
        vel_unit = suit_velocities(region, staged_vel, n, vel);
        plain = region.plain;
    }
    int index = lane / 4 + 8 * (lane % 4);  // among 16 particles, of the one that the lane concludes
    for (;;) {
        int group = 0;
        if (lane == 0) group = atomicAdd(&region.next, 1);
        group = __shfl_sync(~0u, group, 0);
        if (group >= groups) break;
        int h = 0;
#pragma unroll
        for (int k = 1; k < HOME_ROWS; ++k) h += group >= region.groups[k];
        const int* cells = region.home[h];
        int i0 = cells[0] + 16 * (group - region.groups[h]), last = min(15, cells[BX] - 1 - i0);
        int home_y = h % BY, home_z = h / BY, i = i0 + min(index, last), own = region.own[h];
        Sums7 sums[WINDOWS];
        unsigned again = (2u << last) - 1;  // particles to be summed in float32
        float3 v = {0, 0, 0};
        if (!plain) {
            // Staged particles within reach: those of 9 (3) rows, between cells around the first and the last particle.
            int left = cell_of(cells, size.x, i0), right = cell_of(cells, size.x, i0 + last), from = 0, count = 0;
            if (lane < PARTNER_ROWS) {
                int r = home_y + lane % 3 + (BY + 2) * (home_z + lane / 3);
                from = region.offset[r][left];
                count = region.offset[r][right + 2 * PARTS + 1] - from;
            }
            again = products(region, staged_pos, staged_vel, windows, own + i0, last, from, count, sums);
            v = vector_of(staged_vel[own + i]);
        } else {
            v = scaled(load(vel, n, i), 1);
        }
        while (again) {
            int k = __ffs(again) - 1, x = cell_of(cells, size.x, i0 + k);
            again &= again - 1;
            Sums7 exact[WINDOWS];
            if (plain) {
                exact_sums<false>(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, centre, i0 + k, x,
                                  home_y, home_z, exact);
            } else {
                exact_sums<true>(region, staged_pos, staged_vel, n, pos, vel, grid, windows, first, centre, i0 + k, x,
                                 home_y, home_z, exact);
            }
            if (index == k) {
#pragma unroll
                for (int w = 0; w < WINDOWS; ++w) sums[w] = exact[w];
            }
        }
        if (index <= last) conclude(n, i, pos, vel, grid, law, out, windows, plain ? 1 : vel_unit, v, sums);
    }
}
