// Loads and stores of numbers that blocks hand to each other while both run: relaxed, at the scope of the device. A group
// of numbers is moved by one instruction, only if `when`; each number arrives whole. Without a branch, so that a thread has
// many of them on their way at once.

__device__ __forceinline__ void load_words(unsigned when, const float* from, unsigned (&to)[1]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.gpu.global.u32 %0, [%1];}"
                 : "+r"(to[0])
                 : "l"(from), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void load_words(unsigned when, const float* from, unsigned (&to)[2]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];}"
                 : "+r"(to[0]), "+r"(to[1])
                 : "l"(from), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void load_words(unsigned when, const float* from, unsigned (&to)[4]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "l"(from), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void load_words(unsigned when, const double* from, unsigned long long (&to)[1]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.gpu.global.u64 %0, [%1];}"
                 : "+l"(to[0])
                 : "l"(from), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void load_words(unsigned when, const double* from, unsigned long long (&to)[2]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];}"
                 : "+l"(to[0]), "+l"(to[1])
                 : "l"(from), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void store_words(unsigned when, float* to, const unsigned (&from)[1]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.relaxed.gpu.global.u32 [%0], %1;}" ::"l"(to), "r"(from[0]),
                 "r"(when)
                 : "memory");
}

__device__ __forceinline__ void store_words(unsigned when, float* to, const unsigned (&from)[2]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};}" ::"l"(to),
                 "r"(from[0]), "r"(from[1]), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void store_words(unsigned when, float* to, const unsigned (&from)[4]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};}" ::"l"(to),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]), "r"(when)
                 : "memory");
}

__device__ __forceinline__ void store_words(unsigned when, double* to, const unsigned long long (&from)[1]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.relaxed.gpu.global.u64 [%0], %1;}" ::"l"(to), "l"(from[0]),
                 "r"(when)
                 : "memory");
}

__device__ __forceinline__ void store_words(unsigned when, double* to, const unsigned long long (&from)[2]) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};}" ::"l"(to),
                 "l"(from[0]), "l"(from[1]), "r"(when)
                 : "memory");
}

// wrong |= word ^ tag, of the lowest 32 bits; and late |= part & mask. As instructions, so that the compiler makes no
// branches of them: it would wait for each load before a branch.
__device__ __forceinline__ void add_difference(unsigned& wrong, unsigned word, unsigned tag) {
    asm("lop3.b32 %0, %0, %1, %2, 0xF6;" : "+r"(wrong) : "r"(word), "r"(tag));
}

__device__ __forceinline__ void add_masked(unsigned& late, unsigned part, unsigned mask) {
    asm("lop3.b32 %0, %0, %1, %2, 0xF8;" : "+r"(late) : "r"(part), "r"(mask));
}

__device__ __forceinline__ unsigned word_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned long long word_of(double value) { return __double_as_longlong(value); }
__device__ __forceinline__ float number_of(unsigned word) { return __uint_as_float(word); }
__device__ __forceinline__ double number_of(unsigned long long word) { return __longlong_as_double(word); }
