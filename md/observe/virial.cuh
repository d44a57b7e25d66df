// Sums the virial of each particle; see virial.py. The wrapped law comes before this text, as `Pair`.

#include "md/laws/pair.cuh"

__device__ __forceinline__ Vec interact(const Law& law, const velocity* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    Vec force = interact(law.pair, vel, n, i, j, r2, dr, vi, initial(law.pair, zero()));
    law.virial[i] += (double)dot(force, dr) / 2;
    return acc;
}
