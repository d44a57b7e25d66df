// One pass of the stable radix sort in steps: count the digits of each tile, scan (sort.cu), place; radix.py does the
// same on the CPU. A tile is a block's stretch of keys, and a warp's stretch of it is taken 32 keys at a time, in order.

// counts[value * tiles + tile] = keys of the tile with this digit
extern "C" __global__ void count_digits(int threads, int n, const unsigned long long* keys, int shift, int* counts) {
    __shared__ int own[VALUES];
    int tiles = threads / VALUES, first = blockIdx.x * TILE;
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < TILE; k += VALUES) {
        if (first + k < n) atomicAdd(&own[(keys[first + k] >> shift) & (VALUES - 1)], 1);
    }
    __syncthreads();
    counts[threadIdx.x * tiles + blockIdx.x] = own[threadIdx.x];
}

// `order` null stands for 0, 1, 2 ..
extern "C" __global__ void place_digits(int threads, int n, const unsigned long long* keys, const int* order, int shift,
                                        const int* start, unsigned long long* new_keys, int* new_order) {
    __shared__ int upto[VALUES / 32][VALUES];  // keys of each digit before, in the stretch of each warp
    int tiles = threads / VALUES, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int first = blockIdx.x * TILE + warp * 32 * ROUNDS;
    for (int w = 0; w < VALUES / 32; ++w) upto[w][threadIdx.x] = 0;
    __syncthreads();
    unsigned long long key[ROUNDS];
    int rank[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        int i = first + 32 * k + lane;
        key[k] = i < n ? keys[i] : 0;
        int value = i < n ? (int)(key[k] >> shift) & (VALUES - 1) : VALUES;
        unsigned same = __match_any_sync(~0u, value);
        int before = __popc(same & ((1u << lane) - 1));
        rank[k] = i < n ? upto[warp][value] + before : 0;
        __syncwarp();
        if (i < n && before == 0) upto[warp][value] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    int place = start[threadIdx.x * tiles + blockIdx.x];
    for (int w = 0; w < VALUES / 32; ++w) {
        int own = upto[w][threadIdx.x];
        upto[w][threadIdx.x] = place;
        place += own;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        int i = first + 32 * k + lane;
        if (i >= n) continue;
        int to = upto[warp][(int)(key[k] >> shift) & (VALUES - 1)] + rank[k];
        new_keys[to] = key[k];
        new_order[to] = order ? order[i] : i;
    }
}
