// The stable counting sort in steps: count, scan, place, settle; counting.py does the same on the CPU in one. Atomics hand out
// the places within a bin in any order; `settle` puts them back in order.

extern "C" __global__ void count(int n, const int* keys, int* counts, int* place) {
    int i = work_item();
    if (i < n) place[i] = atomicAdd(&counts[keys[i]], 1);
}

#define EACH 8  // counts a thread
#define TILE (EACH * 256)

// The sum of a value over the threads of a warp up to this one.
__device__ __forceinline__ int warp_scan(int value) {
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        int before = __shfl_up_sync(~0u, value, apart);
        if (threadIdx.x % 32 >= apart) value += before;
    }
    return value;
}

#define SUM_OF_TILE 1ull  // what a tile tells those after it, in the upper half of its word: the sum of its counts,
#define SUM_SO_FAR 2ull   // or of all counts up to its end

// Sum of the counts in all tiles before one, by a whole warp, from what they tell: back to the first that knows all.
__device__ __forceinline__ int sum_before(const volatile unsigned long long* told, int tile) {
    int lane = threadIdx.x % 32, sum = 0;
    for (int nearest = tile - 1;; nearest -= 32) {
        int from = nearest - lane;
        unsigned long long word = SUM_SO_FAR << 32;
        if (from >= 0) {
            do { word = told[from]; } while (!(word >> 32));
        }
        unsigned all = __ballot_sync(~0u, word >> 32 == SUM_SO_FAR);
        int part = lane < __ffs(all) || !all ? (int)(unsigned)word : 0;
        sum += __shfl_sync(~0u, warp_scan(part), 31);
        if (all) return sum;
    }
}

// start[k] = sum of the counts before k, in one pass: each block takes the next tile and looks back at what those before
// it tell. Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back (2016). told[0] counts the
// tiles taken, told[1 + tile] is a tile's word; all 0 before.
extern "C" __global__ void scan(int n, int bins, const int* counts, int* start, unsigned long long* told) {
    __shared__ int tile, before, ends[256 / 32];
    if (threadIdx.x == 0) tile = (int)atomicAdd(told, 1ull);
    __syncthreads();
    int first = tile * TILE + threadIdx.x * EACH, own[EACH], sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        own[k] = first + k < bins ? counts[first + k] : 0;
        sum += own[k];
    }
    int upto = warp_scan(sum), warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 31) ends[warp] = upto;
    __syncthreads();
    if (warp == 0) {
        int all = 0;
        for (int w = 0; w < 256 / 32; ++w) all += ends[w];
        if (threadIdx.x == 0) *(volatile unsigned long long*)&told[1 + tile] = SUM_OF_TILE << 32 | (unsigned)all;
        int sum = sum_before(told + 1, tile);
        if (threadIdx.x == 0) {
            *(volatile unsigned long long*)&told[1 + tile] = SUM_SO_FAR << 32 | (unsigned)(sum + all);
            before = sum;
        }
    }
    __syncthreads();
    int sum_here = before + upto - sum;
    for (int w = 0; w < warp; ++w) sum_here += ends[w];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        if (first + k <= bins) start[first + k] = sum_here;
        sum_here += own[k];
    }
}

extern "C" __global__ void place(int n, const int* keys, const int* start, const int* place, int* order) {
    int i = work_item();
    if (i < n) order[start[keys[i]] + place[i]] = i;
}

// Puts the places of each bin in ascending order: by insertion where there are few, else as a heap, so that a bin that
// holds everything is slow but ends.
__device__ void sink(int* heap, int top, int count) {
    int value = heap[top];
    for (int child = 2 * top + 1; child < count; top = child, child = 2 * top + 1) {
        if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
        if (heap[child] <= value) break;
        heap[top] = heap[child];
        heap[child] = value;
    }
}

extern "C" __global__ void settle(int bins, const int* start, int* order) {
    int bin = work_item();
    if (bin >= bins) return;
    int* own = order + start[bin];
    int count = start[bin + 1] - start[bin];
    if (count > 32) {
        for (int top = count / 2 - 1; top >= 0; --top) sink(own, top, count);
        for (int last = count - 1; last > 0; --last) {
            int value = own[0];
            own[0] = own[last];
            own[last] = value;
            sink(own, 0, last);
        }
        return;
    }
    for (int a = 1; a < count; ++a) {
        int value = own[a], b = a;
        for (; b > 0 && own[b - 1] > value; --b) own[b] = own[b - 1];
        own[b] = value;
    }
}
