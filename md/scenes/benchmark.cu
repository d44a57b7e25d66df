// The benchmark gas, particle by particle; see benchmark.py. Its bits are those of the kernels there.

extern "C" __global__ void add_up(int threads, int n, Gas gas, int parts, long long* sums) {
    int thread = work_item();
    if (thread >= threads) return;
    long long total[5] = {};
    for (long long site = thread; site < n; site += threads) {
        long long q[3];
        whole_deviates(gas, (unsigned)site, q);
        unsigned long long square = 0;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            total[k] += q[k];
            square += (unsigned long long)(q[k] * q[k]);
        }
        total[3] += (long long)(square & 0xFFFFFFFFull);
        total[4] += (long long)(square >> 32);
    }
#pragma unroll
    for (int k = 0; k < 5; ++k) atomicAdd((unsigned long long*)sums + k, (unsigned long long)total[k]);
}

extern "C" __global__ void make(int n, int first, int total, Gas gas, real* pos, real* vel, int* id) {
    int i = work_item();
    if (i >= n) return;
    unsigned site = gas.shuffled ? permuted(first + i, total, gas.bits, gas.round_keys) : first + i, side = gas.side;
    unsigned cell[3] = {site % side, site / side % side, site / side / side};
    Three u = uniforms(site, STREAM_JITTER, gas.key[0], gas.key[1]);
    long long q[3];
    whole_deviates(gas, site, q);
    Vec r, v;
#pragma unroll
    for (int k = 0; k < DIM; ++k) {
        r.x[k] = (real)plus(times(cell[k] + 0.5, gas.spacing), times(u.x[k], gas.amplitude));
        v.x[k] = (real)times(minus((double)q[k], gas.mean[k]), gas.scale);
    }
    store(pos, n, i, r);
    store(vel, n, i, v);
    id[i] = (int)site;
}
