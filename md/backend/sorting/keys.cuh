// Sort keys of 32 or 64 bits in one array, `wide` for the latter.

__device__ __forceinline__ unsigned long long key_at(const unsigned* keys, int wide, size_t i) {
    return wide ? ((const unsigned long long*)keys)[i] : keys[i];
}

__device__ __forceinline__ void put_key(unsigned* keys, int wide, size_t i, unsigned long long key) {
    if (wide) {
        ((unsigned long long*)keys)[i] = key;
    } else {
        keys[i] = (unsigned)key;
    }
}
