// Threads that take nodes from one free list and return them, by compare-and-swap; see free_list.py.

__device__ __forceinline__ int first_of(long long head) { return (int)(unsigned)head; }

// The head with another first node. Its upper half counts the changes, if COUNTED is 1.
__device__ __forceinline__ long long changed(long long head, int node) {
    unsigned long long changes = ((unsigned long long)head >> 32) + COUNTED;
    return (long long)(changes << 32 | (unsigned)node);
}

// Replaces the head if it is still as seen, and returns whether it was; `seen` is then what it was.
__device__ __forceinline__ bool replace(long long* head, long long& seen, long long wanted) {
    typedef unsigned long long word;
    long long found = (long long)atomicCAS((word*)head, (word)seen, (word)wanted);
    bool same = found == seen;
    seen = found;
    return same;
}

extern "C" __global__ void take_and_return(int n, int turns, long long* head, int* next, int* held, int* twice) {
    if (work_item() >= n) return;
    volatile int* following = next;
    for (int turn = 0; turn < turns; ++turn) {
        long long seen = *(volatile long long*)head;
        int node = first_of(seen);
        while (node >= 0) {
            __threadfence();  // the link is that of the head that was seen, or a later one
            if (replace(head, seen, changed(seen, following[node]))) break;
            node = first_of(seen);
        }
        if (node < 0) continue;
        if (atomicAdd(&held[node], 1) > 0) atomicAdd(twice, 1);
        atomicAdd(&held[node], -1);
        seen = *(volatile long long*)head;
        do {
            following[node] = first_of(seen);
            __threadfence();  // the link is there before the node is in the list again
        } while (!replace(head, seen, changed(seen, node)));
    }
}
