// Kernels that stand for a user's own code on a device; see kernels.py. Sums are in float64, a thread for each point, cell, row or
// read; nothing is shared between threads, so that what an order changes is where their loads go.

#include "experiments/advice/kernels.cuh"

// Puts each point into the list of its cell; all heads are -1 before. `box` has the lower corner and the sides, `shape` the cells
// along each axis and whether it is periodic.
extern "C" __global__ void link_cells(int n, const double* points, const double* box, const int* shape, int* heads, int* nexts) {
    int i = work_item();
    if (i >= n) return;
    int cell = 0;
    for (int axis = 0; axis < 3; ++axis)
        cell = cell * shape[axis] + along(points[3 * (size_t)i + axis], box[axis], box[3 + axis], shape[axis]);
    nexts[i] = atomicExch(heads + cell, i);
}

// Sums 1 - r / range over the neighbours of each point, by the lists of its cell and those around it. The range of two points is the
// sum of their radii, or the cutoff if `sizes` is 0.
extern "C" __global__ void cutoff_sums(int n, int sizes, const double* points, const double* radii, const double* box, const int* shape,
                                       const int* heads, const int* nexts, double cutoff, double* out) {
    int i = work_item();
    if (i >= n) return;
    double own[3];
    int at[3];
    for (int axis = 0; axis < 3; ++axis) {
        own[axis] = points[3 * (size_t)i + axis];
        at[axis] = along(own[axis], box[axis], box[3 + axis], shape[axis]);
    }
    double total = 0;
    for (int step = 0; step < 27; ++step) {
        int around[3] = {at[0] + step / 9 - 1, at[1] + step / 3 % 3 - 1, at[2] + step % 3 - 1};
        bool is_inside = true;
        for (int axis = 0; axis < 3; ++axis) {
            if (shape[3 + axis] && shape[axis] > 2) around[axis] = (around[axis] + shape[axis]) % shape[axis];
            is_inside = is_inside && around[axis] >= 0 && around[axis] < shape[axis];
        }
        if (!is_inside) continue;
        int j = heads[((size_t)around[0] * shape[1] + around[1]) * shape[2] + around[2]];
        for (; j >= 0; j = nexts[j]) {
            double square = 0;
            for (int axis = 0; axis < 3; ++axis) {
                double apart = own[axis] - points[3 * (size_t)j + axis];
                if (shape[3 + axis]) apart -= box[3 + axis] * rint(apart / box[3 + axis]);
                square += apart * apart;
            }
            double reach = sizes ? radii[i] + radii[j] : cutoff;
            if (square < reach * reach && j != i) total += 1 - sqrt(square) / reach;
        }
    }
    out[i] = total;
}

// Sums the distances of each point, of `axes` coordinates, to its k listed neighbours.
extern "C" __global__ void neighbour_sums(int n, int axes, int k, const double* points, const int* index, double* out) {
    int i = work_item();
    if (i >= n) return;
    double total = 0;
    for (int at = 0; at < k; ++at) {
        size_t j = index[(size_t)i * k + at];
        double square = 0;
        for (int axis = 0; axis < axes; ++axis) {
            double apart = points[j * axes + axis] - points[(size_t)i * axes + axis];
            square += apart * apart;
        }
        total += sqrt(square);
    }
    out[i] = total;
}

// Gathers the m numbers of the k items of each of n cells, and adds the mean of their sums to each; all sums are 0 before.
extern "C" __global__ void cell_sums(int n, int k, int m, const double* values, const int* cells, double* out) {
    int c = work_item();
    if (c >= n) return;
    const int* items = cells + (size_t)c * k;
    double mean = 0;
    for (int at = 0; at < k; ++at)
        for (int number = 0; number < m; ++number) mean += values[(size_t)items[at] * m + number];
    mean /= k;
    for (int at = 0; at < k; ++at) atomicAdd(out + items[at], mean);
}

// Product of a row of a matrix in CSR and a vector.
extern "C" __global__ void matrix_product(int n, const int* indptr, const int* indices, const double* data, const double* values,
                                          double* out) {
    int i = work_item();
    if (i >= n) return;
    double total = 0;
    for (int entry = indptr[i]; entry < indptr[i + 1]; ++entry) total += data[entry] * values[indices[entry]];
    out[i] = total;
}

// Sums the numbers of the item of each of n reads.
extern "C" __global__ void trace_sums(int n, int numbers, const double* table, const long long* trace, double* out) {
    int t = work_item();
    if (t >= n) return;
    double total = 0;
    for (int k = 0; k < numbers; ++k) total += table[(size_t)trace[t] * numbers + k];
    out[t] = total;
}
