// Micro-benchmarks of a GPU's memory; see memory_rates.py.

#include "experiments/measurement/kernels/past_l1.cuh"

// Hash of a 64-bit word (splitmix64: Steele, Lea and Flood, 2014).
__device__ __forceinline__ unsigned long long mixed(unsigned long long word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

// Adds up the first numbers of sectors in no order, `each` for a thread; none waits for another.
extern "C" __global__ void random_sectors(int n, const int* data, int sectors, int each, int seed, int* sums) {
    int i = work_item();
    if (i >= n) return;
    unsigned sum = 0;
#pragma unroll 8
    for (int k = 0; k < each; ++k) {
        unsigned word = mixed(((unsigned long long)seed << 40) + (unsigned long long)i * each + k) >> 32;
        unsigned sector = (unsigned long long)word * sectors >> 32;
        sum += load_past_l1(data + (size_t)NUMBERS * sector);
    }
    sums[i] = sum;
}

// Follows a chain of sectors from the one at which the last launch ended: the number in each is that of the next.
extern "C" __global__ void chain(int n, const int* next, int steps, int* last) {
    if (work_item() > 0) return;
    int at = last[0];
    for (int k = 0; k < steps; ++k) at = next[(size_t)NUMBERS * at];
    last[0] = at;
}
