// Flags that ranks raise in the memory of each other: all that a rank has stored before its flag is there once the flag is seen.

// Raises a flag at an address of any device.
__device__ __forceinline__ void raise_flag(unsigned long long address, unsigned value) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
#endif
}

// Waits until a flag has a value or a later one, for up to `patience` ns; from then on *lost is not 0, and there is no waiting.
__device__ __forceinline__ void wait_for_flag(const unsigned* flag, unsigned value, volatile unsigned* lost, long long patience) {
#if defined(__CUDA_ARCH__)
    unsigned found;
    long long begin = 0, time;
    while (true) {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
        if ((int)(found - value) >= 0 || *lost) return;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
        if (begin == 0) begin = time;
        if (time - begin > patience) *lost = 1;
    }
#endif
}
