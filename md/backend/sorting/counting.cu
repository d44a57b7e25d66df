// The stable counting sort in four kernels: count, scan, place, sort_bins; counting.py does the same on the CPU in one. Atomics
// assign the ranks within a bin in any order; `sort_bins` makes the order stable.

extern "C" __global__ void count(int n, const int* keys, int* counts, int* rank) {
    int i = work_item();
    if (i < n) rank[i] = atomicAdd(&counts[keys[i]], 1);
}

// Computes the key of each particle, the entry of a table for its cell or the number of the cell, and counts it.
extern "C" __global__ void count_cells(int n, const real* pos, const int* table, Grid grid, int* keys, int* counts,
                                       int* rank) {
    int i = work_item();
    if (i >= n) return;
    int number = cell_number(grid, home_cell(grid, load(pos, n, i))), key = table ? table[number] : number;
    keys[i] = key;
    rank[i] = atomicAdd(&counts[key], 1);
}

#define EACH 8  // counts of a thread
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

#define SUM_OF_TILE 1ull  // upper half of the status word of a tile: the lower half is the sum of its counts,
#define SUM_SO_FAR 2ull   // or the sum of all counts up to its end

// Sum of the counts in all tiles before one, by a whole warp: adds status words back to the last tile with SUM_SO_FAR.
__device__ __forceinline__ int sum_before(const volatile unsigned long long* status, int tile) {
    int lane = threadIdx.x % 32, sum = 0;
    for (int nearest = tile - 1;; nearest -= 32) {
        int from = nearest - lane;
        unsigned long long word = SUM_SO_FAR << 32;
        if (from >= 0) {
            do { word = status[from]; } while (!(word >> 32));
        }
        unsigned all = __ballot_sync(~0u, word >> 32 == SUM_SO_FAR);
        int part = lane < __ffs(all) || !all ? (int)(unsigned)word : 0;
        sum += __shfl_sync(~0u, warp_scan(part), 31);
        if (all) return sum;
    }
}

// Four counts from a place on, the last of which are 0 beyond the bins.
__device__ __forceinline__ int4 four_of(const int* counts, int from, int bins) {
    int4 four = {0, 0, 0, 0};
    if (from < bins) four.x = counts[from];
    if (from + 1 < bins) four.y = counts[from + 1];
    if (from + 2 < bins) four.z = counts[from + 2];
    return four;
}

// start[k] = sum of the counts before k, in one pass: each block takes the next tile and reads the status words of the
// tiles before. Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back (2016). status[0] is the
// number of tiles taken, status[1 + tile] the status word of a tile; all are 0 before. Both arrays begin at 16 bytes.
extern "C" __global__ void scan(int n, int bins, const int* counts, int* start, unsigned long long* status) {
    __shared__ int tile, before, ends[256 / 32];
    if (threadIdx.x == 0) tile = (int)atomicAdd(status, 1ull);
    __syncthreads();
    int first = tile * TILE + threadIdx.x * EACH, own[EACH], sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; k += 4) {
        int4 four = first + k + 4 <= bins ? *(const int4*)(counts + first + k) : four_of(counts, first + k, bins);
        own[k] = four.x, own[k + 1] = four.y, own[k + 2] = four.z, own[k + 3] = four.w;
        sum += four.x + four.y + four.z + four.w;
    }
    int upto = warp_scan(sum), warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 31) ends[warp] = upto;
    __syncthreads();
    if (warp == 0) {
        int all = 0;
        for (int w = 0; w < 256 / 32; ++w) all += ends[w];
        if (threadIdx.x == 0) *(volatile unsigned long long*)&status[1 + tile] = SUM_OF_TILE << 32 | (unsigned)all;
        int sum = sum_before(status + 1, tile);
        if (threadIdx.x == 0) {
            *(volatile unsigned long long*)&status[1 + tile] = SUM_SO_FAR << 32 | (unsigned)(sum + all);
            before = sum;
        }
    }
    __syncthreads();
    int sum_here = before + upto - sum;
    for (int w = 0; w < warp; ++w) sum_here += ends[w];
#pragma unroll
    for (int k = 0; k < EACH; k += 4) {
        int4 four = {sum_here, sum_here + own[k], sum_here + own[k] + own[k + 1], sum_here + own[k] + own[k + 1] + own[k + 2]};
        sum_here = four.w + own[k + 3];
        if (first + k + 3 <= bins) {
            *(int4*)(start + first + k) = four;
        } else {
            if (first + k <= bins) start[first + k] = four.x;
            if (first + k + 1 <= bins) start[first + k + 1] = four.y;
            if (first + k + 2 <= bins) start[first + k + 2] = four.z;
        }
    }
}

extern "C" __global__ void place(int n, const int* keys, const int* start, const int* rank, int* order) {
    int i = work_item();
    if (i < n) order[start[keys[i]] + rank[i]] = i;
}

__device__ void sift_down(int* heap, int top, int count) {
    int value = heap[top];
    for (int child = 2 * top + 1; child < count; top = child, child = 2 * top + 1) {
        if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
        if (heap[child] <= value) break;
        heap[top] = heap[child];
        heap[child] = value;
    }
}

// Sorts the indices of each bin: by insertion sort if there are at most 32, else by heapsort, so that one bin with all keys
// is slow but does not take quadratic time.
extern "C" __global__ void sort_bins(int bins, const int* start, int* order) {
    int bin = work_item();
    if (bin >= bins) return;
    int* own = order + start[bin];
    int count = start[bin + 1] - start[bin];
    if (count > 32) {
        for (int top = count / 2 - 1; top >= 0; --top) sift_down(own, top, count);
        for (int last = count - 1; last > 0; --last) {
            int value = own[0];
            own[0] = own[last];
            own[last] = value;
            sift_down(own, 0, last);
        }
        return;
    }
    for (int a = 1; a < count; ++a) {
        int value = own[a], b = a;
        for (; b > 0 && own[b - 1] > value; --b) own[b] = own[b - 1];
        own[b] = value;
    }
}
