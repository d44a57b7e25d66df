// Stores into the memory of other ranks, and waiting for theirs; see peers.py.

#include "md/domain/on_device/flags.cuh"
#include "md/domain/on_device/records.cuh"

// Stores positions and velocities of border rows as ghosts of the peers. The rows of peer p end at ends[p]; row rows[k] is row
// k + shift[p] of its positions, at address pos_of[p], and velocities, at vel_of[p]. Row -1 is none.
extern "C" __global__ void store_ghosts(int n, const int* rows, const real* pos, const velocity* vel, const int* ends,
                                        const int* shift, const unsigned long long* pos_of,
                                        const unsigned long long* vel_of) {
    int k = work_item();
    if (k >= n || rows[k] < 0) return;
    Vec r, v;
    load_row(pos, vel, n, rows[k], r, v);
    int p = peer_of(ends, k);
    store_row((real*)pos_of[p], (velocity*)vel_of[p], n, k + shift[p], r, v);
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
// is rank ranks[p], its flag is theirs[p], and it raises own[ranks[p]]. count: number of exchanges so far, of which the larger one
// of two counts.
extern "C" __global__ void exchange_flags(int peers, const int* ranks, const unsigned long long* theirs, const unsigned* own,
                                          unsigned* count, unsigned* lost, long long patience) {
    int p = threadIdx.x;
    unsigned now = ((int)(count[0] - count[1]) > 0 ? count[0] : count[1]) + 1;
    __syncthreads();
    if (p == 0) count[0] = count[1] = now;
    if (p >= peers) return;
    raise_flag(theirs[p], now);
    wait_for_flag(own + ranks[p], now, lost, patience);
}
