// Code that a user writes in CUDA: plain kernels with a thread for each item, cell, row or read; see compiled_code.py.

#include "experiments/advice/sets/compiled_code.cuh"

extern "C" __global__ void fill_lists(int n, const double* points, double lx, double ly, double lz, double wx, double wy, double wz,
                                      int cx, int cy, int cz, int* head, int* following) {
    int i = work_item();
    if (i >= n) return;
    int3 at = cell_at(points + 3 * (size_t)i, make_double3(lx, ly, lz), make_double3(wx, wy, wz), make_int3(cx, cy, cz));
    following[i] = atomicExch(&head[(at.x * cy + at.y) * cz + at.z], i);
}

extern "C" __global__ void pair_energies(int n, int polydisperse, const double* points, const double* radii, double lx, double ly,
                                         double lz, double wx, double wy, double wz, int cx, int cy, int cz, double cutoff,
                                         const int* head, const int* following, double* energy) {
    int i = work_item();
    if (i >= n) return;
    const double* own = points + 3 * (size_t)i;
    int3 at = cell_at(own, make_double3(lx, ly, lz), make_double3(wx, wy, wz), make_int3(cx, cy, cz));
    double sum = 0;
    for (int x = max(at.x - 1, 0); x < min(at.x + 2, cx); ++x)
        for (int y = max(at.y - 1, 0); y < min(at.y + 2, cy); ++y)
            for (int z = max(at.z - 1, 0); z < min(at.z + 2, cz); ++z)
                for (int j = head[(x * cy + y) * cz + z]; j >= 0; j = following[j]) {
                    const double* other = points + 3 * (size_t)j;
                    double dx = own[0] - other[0], dy = own[1] - other[1], dz = own[2] - other[2];
                    double square = dx * dx + dy * dy + dz * dz;
                    double reach = polydisperse ? radii[i] + radii[j] : cutoff;
                    if (square < reach * reach && i != j) {
                        double depth = 1 - sqrt(square) / reach;
                        sum += depth * depth;
                    }
                }
    energy[i] = sum;
}

extern "C" __global__ void edge_forces(int n, int axes, const double* points, const double* values, const int* edges, double* forces) {
    int e = work_item();
    if (e >= n) return;
    size_t i = edges[2 * (size_t)e], j = edges[2 * (size_t)e + 1];
    double constant = 0.5 * (values[i] + values[j]);
    for (int axis = 0; axis < axes; ++axis) {
        double force = constant * (points[j * axes + axis] - points[i * axes + axis]);
        atomicAdd(&forces[i * axes + axis], force);
        atomicAdd(&forces[j * axes + axis], -force);
    }
}

extern "C" __global__ void cell_loads(int n, int axes, int corners, const double* points, const double* values, const int* cells,
                                      double* loads) {
    int c = work_item();
    if (c >= n) return;
    const int* own = cells + (size_t)c * corners;
    double centre[3] = {0, 0, 0}, mean = 0;
    for (int k = 0; k < corners; ++k) {
        mean += values[own[k]] / corners;
        for (int axis = 0; axis < axes; ++axis) centre[axis] += points[(size_t)own[k] * axes + axis] / corners;
    }
    for (int k = 0; k < corners; ++k) {
        double square = 0;
        for (int axis = 0; axis < axes; ++axis) {
            double off = points[(size_t)own[k] * axes + axis] - centre[axis];
            square += off * off;
        }
        atomicAdd(&loads[own[k]], mean * sqrt(square));
    }
}

extern "C" __global__ void matrix_product(int n, const double* data, const int* columns, const int* begin, const double* values,
                                          double* product) {
    int row = work_item();
    if (row >= n) return;
    double total = 0;
    for (int entry = begin[row]; entry < begin[row + 1]; ++entry) total += data[entry] * values[columns[entry]];
    product[row] = total;
}

extern "C" __global__ void trace_sums(int n, int width, int part, const double* values, const long long* trace, double* sums) {
    int k = work_item();
    if (k >= n) return;
    double total = 0;
    for (int column = 0; column < width; ++column) total += values[(size_t)trace[k] * width + column];
    atomicAdd(&sums[k / part], total);
}

extern "C" __global__ void trace_sums_of_singles(int n, int width, int part, const float* values, const long long* trace, double* sums) {
    int k = work_item();
    if (k >= n) return;
    double total = 0;
    for (int column = 0; column < width; ++column) total += values[(size_t)trace[k] * width + column];
    atomicAdd(&sums[k / part], total);
}
