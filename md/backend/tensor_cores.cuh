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

// The lower half, or the upper half, twice.
__device__ __forceinline__ unsigned lower_twice(unsigned both) { return __byte_perm(both, both, 0x1010); }
__device__ __forceinline__ unsigned upper_twice(unsigned both) { return __byte_perm(both, both, 0x3232); }

// a b of two numbers in half precision each.
__device__ __forceinline__ unsigned times(unsigned a, unsigned b) {
    unsigned product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

// a b + c of two numbers in half precision each, in the range 0 to 1.
__device__ __forceinline__ unsigned saturated(unsigned a, unsigned b, unsigned c) {
    unsigned sum;
    asm("fma.rn.sat.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

// One of two numbers. The compiler would select between addresses, and keep both numbers in memory for this.
__device__ __forceinline__ float either(bool first, float a, float b) {
    float one;
    asm("{.reg .pred p; setp.ne.s32 p, %1, 0; selp.f32 %0, %2, %3, p;}" : "=f"(one) : "r"((int)first), "f"(a), "f"(b));
    return one;
}

// d = a b + c: a is 16 x 16, b is 16 x 8, c and d are 16 x 8 in half precision.
__device__ __forceinline__ void multiply(unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                         const unsigned (&c)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
        : "=r"(d[0]), "=r"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]));
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
