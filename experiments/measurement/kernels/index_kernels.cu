// Kernels of index workloads; see index_kernels.py. None of their loops is unrolled: the loads of an entry are issued when those
// of the one before are there, as the streams of experiments/loads/index.py say.

// A row of x or y, which a thread loads or stores at once.
struct alignas(4 * NUMBERS) Row {
    float number[NUMBERS];
};

// Adds up the rows of x that the entries of each thread name; entry k of all threads lies together.
extern "C" __global__ void gather(int n, int reads, const int* index, const float* x, float* y) {
    int i = work_item();
    if (i >= n) return;
    Row sum = {};
#pragma unroll 1
    for (int k = 0; k < reads; ++k) {
        Row row = ((const Row*)x)[index[(size_t)k * n + i]];
#pragma unroll
        for (int one = 0; one < NUMBERS; ++one) sum.number[one] += row.number[one];
    }
    ((Row*)y)[i] = sum;
}

// Adds the value of each thread to the sum that its entry names.
extern "C" __global__ void scatter(int n, const int* index, Numbers value, Numbers sums) {
    int i = work_item();
    if (i < n) atomicAdd(sums.data + index[i], value.data[i]);
}

// Product of a row of a matrix in CSR and a vector.
template <class Number>
__device__ __forceinline__ Number product(int first, int end, const int* column, const Number* value, const Number* x) {
    Number sum = 0;
#pragma unroll 1
    for (int entry = first; entry < end; ++entry) sum += value[entry] * x[column[entry]];
    return sum;
}

extern "C" __global__ void spmv(int n, const int* begin, const int* column, Numbers value, Numbers x, Numbers y) {
    int i = work_item();
    if (i < n) y.data[i] = product(begin[i], begin[i + 1], column, value.data, x.data);
}
