// One pass of the stable radix sort in three kernels: count the digits of each tile, scan (counting.cu), place; radix.py does
// the same on the CPU. A tile is the range of keys of a block. Each warp has a part of it and reads 32 keys at a time, in
// order. A tile is sorted in shared memory first, so that keys with the same digit are written to adjacent addresses. All keys
// of a thread are loaded before the first is used.

// Adds 1 for the digit of each lane, none for a negative one. Few different digits in a warp, as of keys that are nearly
// sorted, are counted by a vote each: atomics to the same address would be done one after the other.
__device__ __forceinline__ void count_of_warp(int* counts, int digit) {
    unsigned left = __ballot_sync(~0u, digit >= 0);
#pragma unroll
    for (int turn = 0; turn < 2 && left; ++turn) {
        int leader = __ffs(left) - 1;
        unsigned same = __ballot_sync(~0u, digit == __shfl_sync(~0u, digit, leader));
        if ((int)threadIdx.x % 32 == leader) atomicAdd(&counts[digit], __popc(same));
        left &= ~same;
    }
    if (left >> threadIdx.x % 32 & 1) atomicAdd(&counts[digit], 1);
}

// counts[value * tiles + tile] = keys of the tile with this digit
extern "C" __global__ void BLOCKS(8) count_digits(int threads, int n, const sort_key* keys, int shift, int* counts) {
    __shared__ int own[VALUES];
    int tiles = threads / VALUES, first = blockIdx.x * TILE + threadIdx.x;
    sort_key key[EACH];
#pragma unroll
    for (int k = 0; k < (int)EACH; ++k) key[k] = keys[min(first + VALUES * k, n - 1)];
    own[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < (int)EACH; ++k) count_of_warp(own, first + VALUES * k < n ? digit_of(key[k], shift) : -1);
    __syncthreads();
    counts[threadIdx.x * tiles + blockIdx.x] = own[threadIdx.x];
}

// The lanes with the same digit as this one, of those that have one: a vote for each bit takes less time than a match of all.
__device__ __forceinline__ unsigned lanes_with(int digit, bool is_there) {
    unsigned same = __ballot_sync(~0u, is_there);
#pragma unroll
    for (int bit = 1; bit < VALUES; bit *= 2) {
        unsigned votes = __ballot_sync(~0u, digit & bit);
        same &= digit & bit ? votes : ~votes;
    }
    return same;
}

// A null `order` is the order 0, 1, 2 ..
extern "C" __global__ void BLOCKS(4) place_digits(int threads, int n, const sort_key* keys, const int* order, int shift,
                                                  const int* start, sort_key* new_keys, int* new_order) {
    __shared__ int upto[VALUES / 32][VALUES];  // keys of each digit before, in the part of each warp
    __shared__ int sums[VALUES / 32], shift_of[VALUES];
    __shared__ unsigned short from[TILE];
    __shared__ sort_key sorted[TILE];
    int tiles = threads / VALUES, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int tile = blockIdx.x * TILE, first = tile + warp * 32 * EACH + lane;
    sort_key key[EACH];
    unsigned place[EACH / 2];  // in the sorted tile, two numbers each
#pragma unroll
    for (int k = 0; k < (int)EACH; ++k) key[k] = first + 32 * k < n ? keys[first + 32 * k] : 0;
#pragma unroll
    for (int w = 0; w < VALUES / 32; ++w) upto[w][threadIdx.x] = 0;
    int first_of_digit = start[threadIdx.x * tiles + blockIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < (int)EACH; ++k) {
        bool is_there = first + 32 * k < n;
        int value = digit_of(key[k], shift);
        unsigned same = lanes_with(value, is_there);
        int before = __popc(same & ((1u << lane) - 1));
        unsigned own = is_there ? upto[warp][value] + before : 0;
        place[k / 2] = k % 2 ? place[k / 2] | own << 16 : own;
        __syncwarp();
        if (is_there && before == 0) upto[warp][value] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    // First position of each digit in the sorted tile, by a sum over the digits before.
    int total = 0;
#pragma unroll
    for (int w = 0; w < VALUES / 32; ++w) total += upto[w][threadIdx.x];
    int upto_here = total;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        int below = __shfl_up_sync(~0u, upto_here, apart);
        if (lane >= apart) upto_here += below;
    }
    if (lane == 31) sums[warp] = upto_here;
    __syncthreads();
    int begin = upto_here - total;
    for (int w = 0; w < warp; ++w) begin += sums[w];
    shift_of[threadIdx.x] = first_of_digit - begin;
#pragma unroll
    for (int w = 0; w < VALUES / 32; ++w) {
        int own = upto[w][threadIdx.x];
        upto[w][threadIdx.x] = begin;
        begin += own;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < (int)EACH; ++k) {
        if (first + 32 * k >= n) continue;
        int at = upto[warp][digit_of(key[k], shift)] + (place[k / 2] >> 16 * (k % 2) & 0xffff);
        sorted[at] = key[k];
        from[at] = (unsigned short)(first + 32 * k - tile);
    }
    __syncthreads();
    int here = min(TILE, n - tile);
#pragma unroll 8
    for (int at = threadIdx.x; at < here; at += VALUES) {
        sort_key own = sorted[at];
        int to = shift_of[digit_of(own, shift)] + at;
        new_keys[to] = own;
        new_order[to] = order ? order[tile + from[at]] : tile + from[at];
    }
}
