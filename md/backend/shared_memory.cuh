// Stores in shared memory at 32-bit offsets, without branches.

#if defined(__CUDA_ARCH__)
__device__ __forceinline__ unsigned shared_offset(const void* array, const void* place) {
    return (unsigned)__cvta_generic_to_shared(place);
}

// Stores a value at offset `next` of an array if it passes and the offset is below `end`, and adds STEP to `next` if it passes.
template <unsigned STEP>
__device__ __forceinline__ void store_below(void* array, unsigned& next, unsigned end, int value, bool passes) {
    asm volatile("{.reg .pred p, q; setp.ne.s32 p, %3, 0; setp.lt.and.u32 q, %0, %1, p; @q st.shared.s32 [%0], %2;"
                 " @p add.u32 %0, %0, %4;}" : "+r"(next) : "r"(end), "r"(value), "r"((int)passes), "n"(STEP) : "memory");
}
#else
inline unsigned shared_offset(const void* array, const void* place) { return (const char*)place - (const char*)array; }

template <unsigned STEP>
inline void store_below(void* array, unsigned& next, unsigned end, int value, bool passes) {
    if (passes && next < end) *(int*)((char*)array + next) = value;
    if (passes) next += STEP;
}
#endif
