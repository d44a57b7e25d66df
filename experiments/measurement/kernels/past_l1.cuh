// Loads a number past the first cache.
__device__ __forceinline__ int load_past_l1(const int* place) {
#if defined(__CUDA_ARCH__)
    return __ldcg(place);
#else
    return *place;
#endif
}
