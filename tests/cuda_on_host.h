// Enough of CUDA to run a kernel without warps on the host, one thread after another.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
using std::isfinite, std::max, std::min;
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define __syncthreads()
struct Index {
    unsigned x;
};
static Index blockIdx, blockDim{1}, threadIdx{0};
struct float4 {
    float x, y, z, w;
};
struct int3 {
    int x, y, z;
};
struct int4 {
    int x, y, z, w;
};
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline int __ffs(unsigned value) { return __builtin_ffs(value); }
inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
inline int __float_as_int(float value) {
    int bits;
    memcpy(&bits, &value, 4);
    return bits;
}
inline long long __double_as_longlong(double value) {
    long long bits;
    memcpy(&bits, &value, 8);
    return bits;
}
inline float __uint_as_float(unsigned bits) { return __int_as_float((int)bits); }
inline unsigned __float_as_uint(float value) { return (unsigned)__float_as_int(value); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline float rounded_up_to_float(double x) { return (float)x < x ? nextafterf((float)x, INFINITY) : (float)x; }
inline float __double2float_ru(double x) { return rounded_up_to_float(x); }
inline float __fadd_ru(float a, float b) { return rounded_up_to_float((double)a + b); }
inline float __fmul_ru(float a, float b) { return rounded_up_to_float((double)a * b); }
template <class T> T __shfl_xor_sync(unsigned, T, int) { return 0; }  // a warp of one lane
template <class T, class U> T atomicAdd(T* word, U value) {
    T old = *word;
    *word += value;
    return old;
}
template <class T, class U> T atomicMax(T* word, U value) {
    T old = *word;
    *word = max(old, (T)value);
    return old;
}
template <class T, class U> T atomicMin(T* word, U value) {
    T old = *word;
    *word = min(old, (T)value);
    return old;
}
