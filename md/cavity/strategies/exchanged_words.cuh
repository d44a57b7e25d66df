// Loads and stores of numbers that blocks hand to each other while both run: relaxed, at the scope of the device. A group
// of numbers is moved by as few instructions as its size allows; each number arrives whole.

__device__ __forceinline__ void load_words(const float* from, unsigned (&to)[1]) {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(to[0]) : "l"(from) : "memory");
}

__device__ __forceinline__ void load_words(const float* from, unsigned (&to)[2]) {
    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from) : "memory");
}

__device__ __forceinline__ void load_words(const float* from, unsigned (&to)[4]) {
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from)
                 : "memory");
}

__device__ __forceinline__ void load_words(const double* from, unsigned long long (&to)[1]) {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(to[0]) : "l"(from) : "memory");
}

__device__ __forceinline__ void load_words(const double* from, unsigned long long (&to)[2]) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(to[0]), "=l"(to[1]) : "l"(from) : "memory");
}

__device__ __forceinline__ void load_words(const double* from, unsigned long long (&to)[4]) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(to[0]), "=l"(to[1]) : "l"(from) : "memory");
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(to[2]), "=l"(to[3]) : "l"(from + 2) : "memory");
}

__device__ __forceinline__ void store_words(float* to, const unsigned (&from)[1]) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
}

__device__ __forceinline__ void store_words(float* to, const unsigned (&from)[2]) {
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(from[0]), "r"(from[1]) : "memory");
}

__device__ __forceinline__ void store_words(float* to, const unsigned (&from)[4]) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from[0]), "r"(from[1]),
                 "r"(from[2]), "r"(from[3])
                 : "memory");
}

__device__ __forceinline__ void store_words(double* to, const unsigned long long (&from)[1]) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(from[0]) : "memory");
}

__device__ __forceinline__ void store_words(double* to, const unsigned long long (&from)[2]) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(from[0]), "l"(from[1]) : "memory");
}

__device__ __forceinline__ void store_words(double* to, const unsigned long long (&from)[4]) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(from[0]), "l"(from[1]) : "memory");
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to + 2), "l"(from[2]), "l"(from[3]) : "memory");
}

// wrong |= word ^ tag, of the lowest 32 bits; and wrong |= part & mask. As instructions, so that the compiler makes no
// branches of them: it would wait for each load before a branch.
__device__ __forceinline__ void add_difference(unsigned& wrong, unsigned word, unsigned tag) {
    asm("lop3.b32 %0, %0, %1, %2, 0xF6;" : "+r"(wrong) : "r"(word), "r"(tag));
}

__device__ __forceinline__ void add_masked(unsigned& wrong, unsigned part, unsigned mask) {
    asm("lop3.b32 %0, %0, %1, %2, 0xF8;" : "+r"(wrong) : "r"(part), "r"(mask));
}

__device__ __forceinline__ unsigned word_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned long long word_of(double value) { return __double_as_longlong(value); }
__device__ __forceinline__ float number_of(unsigned word) { return __uint_as_float(word); }
__device__ __forceinline__ double number_of(unsigned long long word) { return __longlong_as_double(word); }
