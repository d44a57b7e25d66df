// Writes down whom a particle meets, as long as there is room, and how many they are; see listing.py.

__device__ __forceinline__ Vec interact(const Law& law, const real* vel, int n, int i, int j, real r2, const Vec& dr,
                                        const Vec& vi, const Vec& acc) {
    long long k = (long long)acc.x[0];
    if (k < law.room) law.partners[k * n + i] = j;
    Vec more = acc;
    more.x[0] += 1;
    return more;
}

__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Vec& acc) {
    out.met[i] = (int)acc.x[0];
}
