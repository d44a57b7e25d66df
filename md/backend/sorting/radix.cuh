// Sizes of digits and tiles of radix.cu, and its keys: WIDE_KEYS stands for keys of 64 bits.

#if defined(WIDE_KEYS)
typedef unsigned long long sort_key;
#else
typedef unsigned sort_key;
#endif

#define VALUES 256                   // of a digit; also the threads of a block
#define EACH (64 / sizeof(sort_key))  // keys of a thread
#define TILE (VALUES * (int)EACH)

__device__ __forceinline__ int digit_of(sort_key key, int shift) { return (int)(key >> shift) & (VALUES - 1); }
