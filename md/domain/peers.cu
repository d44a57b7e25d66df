// Stores into the memory of other ranks, and waiting for theirs; see peers.py.

#include "md/domain/peer_of.cuh"

// Stores positions and velocities of border rows as ghosts of the peers. The rows of peer p end at ends[p]; row rows[k] is row
// k + shift[p] of its positions, at address pos_of[p], and velocities, at vel_of[p].
extern "C" __global__ void store_ghosts(int n, const int* rows, const real* pos, const velocity* vel, const int* ends,
                                        const int* shift, const unsigned long long* pos_of,
                                        const unsigned long long* vel_of) {
    int k = work_item();
    if (k >= n) return;
    Vec r, v;
    load_row(pos, vel, n, rows[k], r, v);
    int p = peer_of(ends, k);
    store_row((real*)pos_of[p], (velocity*)vel_of[p], n, k + shift[p], r, v);
}

// Stores where each border particle is in `rows`: place[p * borders + i] for the ghosts of peer p.
extern "C" __global__ void place_rows(int n, const int* rows, const int* ends, int borders, int* place) {
    int k = work_item();
    if (k < n) place[(size_t)peer_of(ends, k) * borders + rows[k]] = k;
}

// Stores which ghosts are needed in the marks of their owners; those of peer p end at ends[p].
extern "C" __global__ void store_marks(int n, const unsigned char* named, const int* ends, const int* shift,
                                       const unsigned long long* marks_of) {
    int k = work_item();
    if (k >= n) return;
    int p = peer_of(ends, k);
    ((unsigned char*)marks_of[p])[k + shift[p]] = named[k];
}

// Raises the flag of this rank at each peer, and waits for theirs: all that was stored before is there. A thread a peer: peer p
// has number numbers[p] among the ranks, its flag is theirs[p], and it raises own[numbers[p]].
// words: [0] number of exchanges so far, [1] not 0 once a peer did not come for a long time; from then on there is no waiting.
extern "C" __global__ void exchange_flags(int peers, const int* numbers, const unsigned long long* theirs, const unsigned* own, unsigned* words,
                                long long patience) {
    int p = threadIdx.x;
    unsigned now = words[0] + 1;
    __syncthreads();
    if (p == 0) words[0] = now;
    if (p >= peers) return;
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(theirs[p]), "r"(now) : "memory");
    unsigned found;
    long long begin, time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    while (words[1] == 0) {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(own + numbers[p]) : "memory");
        if ((int)(found - now) >= 0) return;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
        if (time - begin > patience) words[1] = 1;
    }
#endif
}
