// Kinetic energy and fastest particle; see energy_monitor.py.

#include "md/backend/warp.cuh"

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
    raise_to_largest(fastest, word);
    add_sum(energy, v2 / 2);
}
