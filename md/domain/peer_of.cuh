// The peer of entry k of lists that follow each other; the list of peer p ends at ends[p].
__device__ __forceinline__ int peer_of(const int* ends, int k) {
    int p = 0;
    while (k >= ends[p]) ++p;
    return p;
}
