// Enough of CUDA to run a kernel on the host, one thread after another; or as many threads at once as a warp has lanes.
#include <pthread.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
using std::isfinite, std::max, std::min;
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define __syncthreads()
struct Index {
    unsigned x;
};
static Index blockIdx, blockDim{1}, gridDim{1};
static thread_local Index threadIdx{0};
struct float4 {
    float x, y, z, w;
};
struct int2 {
    int x, y;
};
struct int3 {
    int x, y, z;
};
struct int4 {
    int x, y, z, w;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline int __ffs(unsigned value) { return __builtin_ffs(value); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __clz(unsigned value) { return value ? __builtin_clz(value) : 32; }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return by % 32 ? high << by % 32 | low >> (32 - by % 32) : high;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return by % 32 ? low >> by % 32 | high << (32 - by % 32) : low;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned chosen = 0;
    for (int k = 0; k < 4; ++k) chosen |= (unsigned)(both >> 8 * (selector >> 4 * k & 7) & 0xff) << 8 * k;
    return chosen;
}
inline int __dp4a(int a, int b, int sum) {  // of the bytes, which are signed
    for (int k = 0; k < 32; k += 8) sum += (signed char)(a >> k) * (signed char)(b >> k);
    return sum;
}
template <class T> T __ldcg(const T* place) { return *place; }
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
inline double __hiloint2double(int high, int low) {
    unsigned long long bits = (unsigned long long)high << 32 | (unsigned)low;
    double value;
    memcpy(&value, &bits, 8);
    return value;
}
inline int __double2loint(double value) {
    int low;
    memcpy(&low, &value, 4);
    return low;
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
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rounded_up_to_float(double x) { return (float)x < x ? nextafterf((float)x, INFINITY) : (float)x; }
inline float __double2float_ru(double x) { return rounded_up_to_float(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline float __fadd_ru(float a, float b) { return rounded_up_to_float((double)a + b); }
inline float __fadd_rd(float a, float b) { return -rounded_up_to_float(-((double)a + b)); }
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
template <class T, class U> T atomicOr(T* word, U value) {
    T old = *word;
    *word |= value;
    return old;
}
template <class T, class U> T atomicMin(T* word, U value) {
    T old = *word;
    *word = min(old, (T)value);
    return old;
}
// Lanes that come to the same places together; one alone unless somebody says otherwise.
static int lanes_at_once = 1;
static pthread_barrier_t all_lanes;
template <class T> std::array<T, 32> told_by_all(T own) {
    static T told[32];
    std::array<T, 32> heard{};
    told[threadIdx.x % 32] = own;
    if (lanes_at_once > 1) pthread_barrier_wait(&all_lanes);
    for (int lane = 0; lane < lanes_at_once; ++lane) heard[lane] = told[lane];
    if (lanes_at_once > 1) pthread_barrier_wait(&all_lanes);
    return heard;
}
inline unsigned __activemask() { return lanes_at_once == 32 ? ~0u : (1u << lanes_at_once) - 1; }
template <class T> unsigned __match_any_sync(unsigned, T own) {
    unsigned same = 0;
    std::array<T, 32> all = told_by_all(own);
    for (int lane = 0; lane < lanes_at_once; ++lane) same |= (unsigned)(all[lane] == own) << lane;
    return same;
}
inline unsigned __ballot_sync(unsigned, int yes) {
    unsigned votes = 0;
    std::array<int, 32> all = told_by_all(yes);
    for (int lane = 0; lane < lanes_at_once; ++lane) votes |= (unsigned)(all[lane] != 0) << lane;
    return votes;
}
inline bool __any_sync(unsigned lanes, int yes) { return __ballot_sync(lanes, yes); }
inline bool __all_sync(unsigned lanes, int yes) { return !__ballot_sync(lanes, !yes); }
inline void __syncwarp() { told_by_all(0); }
template <class T> T __shfl_sync(unsigned, T own, int lane) { return told_by_all(own)[lane % 32]; }
