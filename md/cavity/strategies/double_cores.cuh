// Product of matrices of doubles on tensor cores: an 8 x 4 by a 4 x 8 matrix a warp, added to an 8 x 8 matrix.
//
// Contract. Lane l has a(l / 4, l % 4), b(l % 4, l / 4), and of the result columns 2 (l % 4) and the next one of row l / 4.

__device__ __forceinline__ void add_product(double (&sum)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(sum[0]), "+d"(sum[1])
                 : "d"(a), "d"(b));
}
