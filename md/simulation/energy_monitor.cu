// Kinetic energy and fastest particle; see energy_monitor.py.

#include "md/backend/warp.cuh"

extern "C" __global__ void motion(int threads, int n, const velocity* vel, const int* id, int parts, double* energy,
                                  unsigned long long* fastest) {
    double sum = 0;
    unsigned long long most = 0;
    for (long long i = work_item(); i < n; i += threads) {
        Vec v = load(vel, n, (int)i);
        real v2 = dot(v, v);
        sum += v2;
        most = max(most, (unsigned long long)__float_as_uint((float)v2) << 32 | (unsigned int)id[i]);
    }
    raise_to_largest(fastest, most);
    add_sum(energy, sum / 2);
}
