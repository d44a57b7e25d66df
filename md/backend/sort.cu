// The stable counting sort in steps; sort.py does the same on the CPU in one. Between `count` and `place` the backend
// scans the counts. Atomics hand out the places within a bin in any order; `settle` puts them back in order.

extern "C" __global__ void count(int n, const int* keys, int* counts, int* place) {
    int i = work_item();
    if (i < n) place[i] = atomicAdd(&counts[keys[i]], 1);
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
