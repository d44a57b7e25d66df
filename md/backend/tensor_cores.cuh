// Products of 16 x 16 matrices in half precision on tensor cores (compute capability 8.0 or later), by the lanes of a warp.
// Layouts of the fragments: PTX ISA, mma.m16n8k16 with .f16 and ldmatrix.

// Two numbers in half precision, the first in the lower half.
__device__ __forceinline__ unsigned packed(float first, float second) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

__device__ __forceinline__ float2 unpacked(unsigned both) {
    float2 parts;
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(parts.x), "=f"(parts.y)
        : "r"(both));
    return parts;
}

// d = a b + c: a is 16 x 16, b is 16 x 8, c and d are 16 x 8 in float32.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                         const float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// Address in shared memory, for the next two functions.
__device__ __forceinline__ unsigned shared_address(const void* place) { return __cvta_generic_to_shared(place); }

// Loads four 8 x 8 matrices as columns of b. Lane k gives the address of row k % 8 of matrix k / 8.
__device__ __forceinline__ void load_columns(unsigned (&b)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(row));
}

// Loads four 8 x 8 matrices as rows of b; addresses as for `load_columns`.
__device__ __forceinline__ void load_rows(unsigned (&b)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(row));
}
