// Vectors and rows of particle arrays in each layout, for all CUDA kernels of md.
//
// Contract. source.py defines, before this text: `real` (float or double), DIM (2 or 3) and one of LAYOUT_SOA,
// LAYOUT_AOS, LAYOUT_AOS4. The functions mirror those of the same names in prelude.py. Coordinate `axis` of row k of an
// (n, DIM) array is
//     soa    data[k + n * axis]        aos    data[DIM * k + axis]        aos4    data[4 * k + axis], in 16-byte loads
// With PACKED, position and velocity of a particle are packed rows (`ParticleArrays.pack`), which take three quarters of the
// memory in 3D, half of it in 2D. Then `pos` and `vel` are the same address: n rows (x, y, z, vx), then n rows (vy, vz); in
// 2D n rows (x, y, vx, vy). Positions alone are those of layout aos4. With GHOSTS, of a rank of several, the rows (vy, vz) are
// before that address, in reverse: then no address depends on the number of rows, and n may be that of the first ones alone.

struct Vec {
    real x[DIM];
};

// Before a kernel's name: bounds for blocks of BLOCK_THREADS threads, which the module beside the .cu file declares, as it does
// the dynamic shared memory of a block (md/backend/kernels/on_device.py). Blocks of 128 threads leave a multiprocessor sooner
// than those of 256 when their last threads are done.

// Limits the registers so that this many blocks fit on a multiprocessor; half as many for float64.
#define BLOCKS(count) __launch_bounds__(BLOCK_THREADS, count * 4 / sizeof(real))

// For a kernel that needs much shared memory: any number of blocks on a multiprocessor.
#define NARROW __launch_bounds__(BLOCK_THREADS)

// Three blocks on a multiprocessor, that stage data in shared memory.
#define STAGING __launch_bounds__(BLOCK_THREADS, 3)

// Blocks that are all on the device at once, one on a multiprocessor, so that they can wait for each other.
#define RESIDENT __launch_bounds__(BLOCK_THREADS, 1)

__device__ __forceinline__ int work_item() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Loads a word into the nearest cache, without waiting for it.
__device__ __forceinline__ void touch(const void* word) {
#if defined(__CUDA_ARCH__)
    unsigned unused;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(unused) : "l"(word));
#endif
}

// Loads what is at an address into the L2 cache, without waiting for it.
__device__ __forceinline__ void fetch(const void* place) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(place));
#endif
}

// Whether one of the first n rows has no particle, for a fused output that allows it. Loads of the row may come before.
template <class Any>
__device__ __forceinline__ bool is_absent(const Any& out, int n, int i) {
    return false;
}

// Returns the number of the block of work items that a block of threads processes; a fused output may have another order.
template <class Any>
__device__ __forceinline__ int block_at(const Any& out, int place) {
    return place;
}

// The same for this block, at the begin of a step.
template <class Any>
__device__ __forceinline__ int block_of(const Any& out) {
    return blockIdx.x;
}

// The slot of a work item: work[item], or the item itself without a work order.
__device__ __forceinline__ int slot_of(const int* work, int item) { return work ? work[item] : item; }

__device__ __forceinline__ Vec load(const real* data, int n, int k) {
    Vec v;
#if defined(LAYOUT_SOA)
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = data[k + (size_t)n * axis];
#elif defined(LAYOUT_AOS)
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = data[(size_t)k * DIM + axis];
#else
    union {
        real value[4];
        float4 part[sizeof(real) / 4];
    } row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 4; ++p) row.part[p] = ((const float4*)(data + (size_t)k * 4))[p];
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = row.value[axis];
#endif
    return v;
}

__device__ __forceinline__ void store(real* data, int n, int k, const Vec& v) {
#if defined(LAYOUT_SOA)
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) data[k + (size_t)n * axis] = v.x[axis];
#elif defined(LAYOUT_AOS)
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) data[(size_t)k * DIM + axis] = v.x[axis];
#else
    union {
        real value[4];
        float4 part[sizeof(real) / 4];
    } row;
#pragma unroll
    for (int axis = 0; axis < 4; ++axis) row.value[axis] = axis < DIM ? v.x[axis < DIM ? axis : 0] : (real)0;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 4; ++p) ((float4*)(data + (size_t)k * 4))[p] = row.part[p];
#endif
}

#if defined(PACKED)
struct velocity {
    real number;
};
struct alignas(2 * sizeof(real)) Two {
    real a, b;
};

// The row of two of particle k.
__device__ __forceinline__ Two* rest_of(const real* data, int n, int k) {
#if defined(GHOSTS)
    return (Two*)data - 1 - k;
#else
    return (Two*)(data + 4 * (size_t)n) + k;
#endif
}

__device__ __forceinline__ Vec load(const velocity* rows, int n, int k) {
    const real* data = (const real*)rows;
    Two last = DIM == 3 ? *rest_of(data, n, k) : ((const Two*)data)[2 * (size_t)k + 1];
    Vec v;
    v.x[DIM - 2] = last.a;
    v.x[DIM - 1] = last.b;
    if (DIM == 3) v.x[0] = data[4 * (size_t)k + 3];
    return v;
}

__device__ __forceinline__ void load_row(const real* pos, const velocity* vel, int n, int k, Vec& r, Vec& v) {
    union {
        real value[4];
        float4 part[sizeof(real) / 4];
    } row;
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 4; ++p) row.part[p] = ((const float4*)(pos + (size_t)k * 4))[p];
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) r.x[axis] = row.value[axis];
    v.x[0] = row.value[DIM];
    if (DIM == 3) {
        Two last = *rest_of(pos, n, k);
        v.x[1] = last.a;
        v.x[DIM - 1] = last.b;
    } else {
        v.x[1] = row.value[3];
    }
}

__device__ __forceinline__ void fetch_row(const real* pos, const velocity* vel, int n, int k) {
    fetch(pos + (size_t)k * 4);
    if (DIM == 3) fetch(rest_of(pos, n, k));
}

__device__ __forceinline__ void store_row(real* pos, velocity* vel, int n, int k, const Vec& r, const Vec& v) {
    union {
        real value[4];
        float4 part[sizeof(real) / 4];
    } row;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) row.value[axis] = r.x[axis];
    row.value[DIM] = v.x[0];
    if (DIM == 2) row.value[3] = v.x[1];
#pragma unroll
    for (int p = 0; p < (int)sizeof(real) / 4; ++p) ((float4*)(pos + (size_t)k * 4))[p] = row.part[p];
    if (DIM == 3) *rest_of(pos, n, k) = Two{v.x[1], v.x[DIM - 1]};
}
#else
typedef real velocity;  // component of a velocity in memory

__device__ __forceinline__ void load_row(const real* pos, const velocity* vel, int n, int k, Vec& r, Vec& v) {
    r = load(pos, n, k);
    v = load(vel, n, k);
}

__device__ __forceinline__ void fetch_row(const real* pos, const velocity* vel, int n, int k) {}

__device__ __forceinline__ void store_row(real* pos, velocity* vel, int n, int k, const Vec& r, const Vec& v) {
    store(pos, n, k, r);
    store(vel, n, k, v);
}
#endif

__device__ __forceinline__ Vec zero() {
    Vec v;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = 0;
    return v;
}

__device__ __forceinline__ real dot(const Vec& a, const Vec& b) {
    real sum = a.x[0] * b.x[0];
#pragma unroll
    for (int axis = 1; axis < DIM; ++axis) sum += a.x[axis] * b.x[axis];
    return sum;
}

__device__ __forceinline__ Vec sub(const Vec& a, const Vec& b) {
    Vec v;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = a.x[axis] - b.x[axis];
    return v;
}

__device__ __forceinline__ Vec add_scaled(const Vec& a, real factor, const Vec& b) {
    Vec v;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) v.x[axis] = a.x[axis] + factor * b.x[axis];
    return v;
}
