// Watching the energy; see watch.py.

extern "C" __global__ void motion(int n, const real* vel, const int* id, int parts, double* energy,
                                  unsigned long long* fastest) {
    int i = work_item();
    double v2 = 0;
    unsigned long long word = 0;
    if (i < n) {
        Vec v = load(vel, n, i);
        v2 = dot(v, v);
        word = (unsigned long long)__float_as_uint((float)v2) << 32 | (unsigned int)id[i];
    }
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        v2 += __shfl_xor_sync(~0u, v2, apart);
        word = max(word, __shfl_xor_sync(~0u, word, apart));
    }
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(energy, v2 / 2);
    if (word > *(volatile unsigned long long*)fastest) atomicMax(fastest, word);
}
