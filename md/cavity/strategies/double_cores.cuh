// Product of matrices of doubles on tensor cores: a 16 x 8 by an 8 x 8 matrix a warp, added to a 16 x 8 matrix.
//
// Contract. Lane l has of the first matrix a[i] of row l / 4 + 8 (i % 2), column l % 4 + 4 (i / 2); of the second b[i] of row
// l % 4 + 4 i, column l / 4; of the sum entry i of row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2.
// Smaller matrices (8 x 4 by 4 x 8), which devices before compute capability 9 have, take twice the time on an H200.

__device__ __forceinline__ void add_product(double (&sum)[4], const double (&a)[4], const double (&b)[2]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
        for (int rows = 0; rows < 2; ++rows) {
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(sum[2 * rows]), "+d"(sum[2 * rows + 1])
                         : "d"(a[rows + 2 * k]), "d"(b[k]));
        }
    }
#endif
}
