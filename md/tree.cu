// A linear bounding volume hierarchy; see tree.py. A node is named by its number, leaf k by ~k; n ends a walk.

extern "C" __global__ void extent_of_parts(int threads, int n, const real* pos, real* extents) {
    Vec low = load(pos, n, work_item() % n), high = low;
    for (int i = work_item(); i < n; i += threads) {
        Vec r = load(pos, n, i);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = min(low.x[axis], r.x[axis]);
            high.x[axis] = max(high.x[axis], r.x[axis]);
        }
    }
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        spread_of_block(low.x[axis], high.x[axis]);
        if (threadIdx.x == 0) {
            extents[2 * (axis * PARTS + blockIdx.x)] = low.x[axis];
            extents[2 * (axis * PARTS + blockIdx.x) + 1] = high.x[axis];
        }
    }
}

extern "C" __global__ void extent_of_all(int threads, const real* pos, const real* extents, real* extent) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        real low = extents[2 * (axis * PARTS + threadIdx.x)], high = extents[2 * (axis * PARTS + threadIdx.x) + 1];
        spread_of_block(low, high);
        if (threadIdx.x == 0) {
            extent[2 * axis] = low;
            extent[2 * axis + 1] = high;
        }
    }
}

// The bits of a coordinate with DIM - 1 noughts after each.
__device__ __forceinline__ unsigned long long with_gaps(unsigned long long x) {
#if DIM == 2
    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
#else
    x = (x | x << 32) & 0x001f00000000ffffull;
    x = (x | x << 16) & 0x001f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    return (x | x << 2) & 0x1249249249249249ull;
#endif
}

// A negative state to start from stands for Morton's curve, whose index is the bits of the coordinates in turn.
extern "C" __global__ void curve_keys(int n, const real* pos, const real* extent, int bits, int start,
                                      const unsigned short* rank, const unsigned short* next,
                                      unsigned long long* keys) {
    int i = work_item();
    if (i >= n) return;
    real widest = extent[1] - extent[0];
#pragma unroll
    for (int axis = 1; axis < DIM; ++axis) widest = max(widest, extent[2 * axis + 1] - extent[2 * axis]);
    long long most = (1ll << bits) - 1;
    real scale = widest > 0 ? (real)(most + 1) / widest : (real)0;
    Vec r = load(pos, n, i);
    unsigned long long turns = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        long long cell = min((long long)((r.x[axis] - extent[2 * axis]) * scale), most);
        turns |= with_gaps((unsigned long long)cell & most) << axis;
    }
    if (start < 0) {
        keys[i] = turns;
        return;
    }
    const unsigned all = (1u << DIM) - 1;
    unsigned long long key = 0;
    unsigned state = start;
    for (int level = bits - 1; level >= 0; --level) {
        unsigned digit = (unsigned)(turns >> DIM * level) & all;
        key = key << DIM | rank[state << DIM | digit];
        state = next[state << DIM | digit];
    }
    keys[i] = key;
}

// Leading bits that the keys of two leaves share, and if all then their places; -1 beyond an end.
struct Keys {
    int leaves, width;
    const unsigned long long* keys;
    __device__ __forceinline__ int alike(int i, int j) const {
        if (j < 0 || j >= leaves) return -1;
        unsigned long long differ = keys[(size_t)i * width] ^ keys[(size_t)j * width];
        return differ ? __clzll(differ) : 64 + __clzll((unsigned long long)(i ^ j));
    }
    // What is met after a subtree whose range ends with a leaf, in a walk to the right (d = 1) or left (-1).
    __device__ __forceinline__ int beyond(int leaf, int d) const {
        int end = leaf + d;
        if (end < 0 || end == leaves) return leaves;
        return alike(end, end + d) > alike(end, leaf) ? end : ~end;
    }
};

extern "C" __global__ void link(int leaves, int width, const unsigned long long* keys, int* other_end, int* way,
                                int* after, int* before, int* parent) {
    int i = work_item();
    if (i >= leaves) return;
    Keys k = {leaves, width, keys};
    after[i] = k.beyond(i, 1);
    before[i] = k.beyond(i, -1);
    if (i == leaves - 1) {
        if (leaves == 1) parent[0] = -1;
        return;
    }
    int ahead = k.alike(i, i + 1), behind = k.alike(i, i - 1);
    int d = ahead > behind ? 1 : -1, least = min(ahead, behind), bound = 2, length = 0;
    while (k.alike(i, i + bound * d) > least) bound *= 2;
    for (int step = bound / 2; step; step /= 2) {
        if (k.alike(i, i + (length + step) * d) > least) length += step;
    }
    int j = i + length * d, first = min(i, j), last = max(i, j);
    int shared = k.alike(first, last), split = first;
    for (int step = last - first; step > 1;) {
        step = (step + 1) / 2;
        if (split + step < last && k.alike(first, split + step) > shared) split += step;
    }
    int left = split == first ? ~split : split, right = split + 1 == last ? ~last : split + 1;
    other_end[i] = j;
    ((int4*)way)[i] = make_int4(left, k.beyond(last, 1), right, k.beyond(first, -1));
    parent[left >= 0 ? left : leaves - 1 + ~left] = i;
    parent[right >= 0 ? right : leaves - 1 + ~right] = i;
    if (i == 0) parent[0] = -1;
}

// A row that another thread of this kernel has written: past the first cache, which does not hear of that.
__device__ __forceinline__ Vec load_written(const real* data, int n, int k) {
    Vec v;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
#if defined(LAYOUT_SOA)
        v.x[axis] = __ldcg(data + k + (size_t)n * axis);
#elif defined(LAYOUT_AOS)
        v.x[axis] = __ldcg(data + (size_t)k * DIM + axis);
#else
        v.x[axis] = __ldcg(data + (size_t)k * 4 + axis);
#endif
    }
    return v;
}

__device__ __forceinline__ void merge(Vec& low, Vec& high, const Vec& low_there, const Vec& high_there) {
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        low.x[axis] = min(low.x[axis], low_there.x[axis]);
        high.x[axis] = max(high.x[axis], high_there.x[axis]);
    }
}

// Boxes from the leaves up: whoever comes to a node second merges those of its children. The fence before a visit
// publishes the box written before; the one after it keeps the sibling's from being read too early.
extern "C" __global__ void fit(int leaves, int n, int width, int parts, const real* pos, const int* way,
                               const int* other_end, const int* parent, int* visits, real* box) {
    int leaf = work_item();
    if (leaf >= leaves) return;
    Vec low = load(pos, n, leaf * width), high = low;
    for (int i = leaf * width + 1; i < min(n, (leaf + 1) * width); ++i) {
        Vec r = load(pos, n, i);
        merge(low, high, r, r);
    }
    int rows = 2 * (2 * leaves - 1), child = ~leaf, place = leaves - 1 + leaf;
    store(box, rows, 2 * place, low);
    store(box, rows, 2 * place + 1, high);
    for (int node = parent[place]; node >= 0; node = parent[node]) {
        __threadfence();
        if (atomicAdd(&visits[node], 1) == 0) return;
        __threadfence();
        int4 ways = ((const int4*)way)[node];
        int sibling = child == ways.x ? ways.z : ways.x;
        place = sibling >= 0 ? sibling : leaves - 1 + ~sibling;
        merge(low, high, load_written(box, rows, 2 * place), load_written(box, rows, 2 * place + 1));
        store(box, rows, 2 * node, low);
        store(box, rows, 2 * node + 1, high);
        child = node;
    }
}
