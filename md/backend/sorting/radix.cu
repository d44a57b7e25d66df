// One pass of the stable radix sort in three kernels: count the digits of each tile, scan (counting.cu), place; radix.py does
// the same on the CPU. A tile is the range of keys of a block. Each warp has a part of it and reads 32 keys at a time, in
// order. A tile is sorted in shared memory first, so that keys with the same digit are written to adjacent addresses.

// counts[value * tiles + tile] = keys of the tile with this digit
extern "C" __global__ void count_digits(int threads, int n, const unsigned* keys, int wide, int shift, int* counts) {
    __shared__ int own[VALUES];
    int tiles = threads / VALUES, first = blockIdx.x * TILE;
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < TILE; k += VALUES) {
        if (first + k < n) atomicAdd(&own[(key_at(keys, wide, first + k) >> shift) & (VALUES - 1)], 1);
    }
    __syncthreads();
    counts[threadIdx.x * tiles + blockIdx.x] = own[threadIdx.x];
}

// A null `order` is the order 0, 1, 2 ..
extern "C" __global__ void place_digits(int threads, int n, const unsigned* keys, int wide, const int* order, int shift,
                                        const int* start, unsigned* new_keys, int* new_order) {
    __shared__ int upto[VALUES / 32][VALUES];  // keys of each digit before, in the part of each warp
    __shared__ int sums[VALUES / 32], shift_of[VALUES], from[TILE];
    __shared__ unsigned long long sorted[TILE];
    int tiles = threads / VALUES, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int first = blockIdx.x * TILE + warp * 32 * ROUNDS;
    for (int w = 0; w < VALUES / 32; ++w) upto[w][threadIdx.x] = 0;
    __syncthreads();
    unsigned long long key[ROUNDS];
    int rank[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        int i = first + 32 * k + lane;
        key[k] = i < n ? key_at(keys, wide, i) : 0;
        int value = i < n ? (int)(key[k] >> shift) & (VALUES - 1) : VALUES;
        unsigned same = __match_any_sync(~0u, value);
        int before = __popc(same & ((1u << lane) - 1));
        rank[k] = i < n ? upto[warp][value] + before : 0;
        __syncwarp();
        if (i < n && before == 0) upto[warp][value] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    // First position of each digit in the sorted tile, by a sum over the digits before.
    int total = 0;
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
    shift_of[threadIdx.x] = start[threadIdx.x * tiles + blockIdx.x] - begin;
    for (int w = 0; w < VALUES / 32; ++w) {
        int own = upto[w][threadIdx.x];
        upto[w][threadIdx.x] = begin;
        begin += own;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        int i = first + 32 * k + lane;
        if (i >= n) continue;
        int at = upto[warp][(int)(key[k] >> shift) & (VALUES - 1)] + rank[k];
        sorted[at] = key[k];
        from[at] = order ? order[i] : i;
    }
    __syncthreads();
    for (int at = threadIdx.x; at < min(TILE, n - (int)blockIdx.x * TILE); at += VALUES) {
        unsigned long long own = sorted[at];
        int to = shift_of[(int)(own >> shift) & (VALUES - 1)] + at;
        put_key(new_keys, wide, to, own);
        new_order[to] = from[at];
    }
}
