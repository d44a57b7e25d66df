// A linear bounding volume hierarchy; see tree.py. Inner nodes are numbered from 0, then leaves from n - 1; -1 ends a walk.

// Leading bits that two keys share, and if all then their places; -1 beyond an end.
struct Keys {
    int n, wide;
    const unsigned* keys;
    __device__ __forceinline__ int alike(int i, int j) const {
        if (j < 0 || j >= n) return -1;
        unsigned long long differ = key_at(keys, wide, i) ^ key_at(keys, wide, j);
        return differ ? __clzll(differ) : 64 + __clzll((unsigned long long)(i ^ j));
    }
    // What a walk meets after a subtree whose range ends with a leaf.
    __device__ __forceinline__ int beyond(int leaf) const {
        int end = leaf + 1;
        if (end == n) return -1;
        return alike(end, end + 1) > alike(end, leaf) ? end : n - 1 + end;
    }
};

extern "C" __global__ void link(int n, int key_bits, const unsigned* keys, int* other_end, int* way, int* parent) {
    int i = work_item();
    if (i >= n) return;
    Keys k = {n, key_bits > 32, keys};
    int after = k.beyond(i);
    ((int2*)way)[n - 1 + i] = make_int2(after, after);
    if (i == n - 1) {
        if (n == 1) parent[0] = -1;
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
    int left = split == first ? n - 1 + split : split, right = split + 1 == last ? n - 1 + last : split + 1;
    other_end[i] = j;
    ((int2*)way)[i] = make_int2(left, k.beyond(last));
    parent[left] = i;
    parent[right] = i;
    if (i == 0) parent[0] = -1;
}

// Boxes from the leaves up: whoever comes to a node second merges those of its children. A part is the leaves of a block: a
// node whose range lies in them is the block's own affair, in shared memory, a round for each time that somebody climbs.
extern "C" __global__ void fit_parts(int n, int parts, int is_new, const real* pos, const real* radius, real scale,
                                     const int* order, const int* way, const int* other_end, const int* parent,
                                     int* visits, Grid grid, real* nodes, int* stopped) {
    __shared__ real point[DIM][LEAVES], spread[LEAVES], low_of[DIM][LEAVES], high_of[DIM][LEAVES];
    __shared__ int end_of[LEAVES], above[LEAVES], visited[LEAVES];
    __shared__ int2 ways[LEAVES];
    int t = threadIdx.x, start = blockIdx.x * LEAVES, leaf = start + t, end = min(n, start + LEAVES);
    int2 own = make_int2(-1, -1);
    visited[t] = 0;
    if (leaf < n - 1) {
        end_of[t] = other_end[leaf];
        above[t] = parent[leaf];
        ways[t] = ((const int2*)way)[leaf];
    }
    Vec low, high;
    if (leaf < n) {
        own = ((const int2*)way)[n - 1 + leaf];
        int i = order ? order[leaf] : leaf;
        real half = radius ? scale * radius[i] : (real)0;
        Vec at = load(pos, n, i);
        if (!is_new) at = where_it_went_out(grid, at, middle(load_node(nodes, n - 1 + leaf)));
        spread[t] = half;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            point[axis][t] = at.x[axis];
            low.x[axis] = at.x[axis] - half;
            high.x[axis] = at.x[axis] + half;
        }
        store_node(nodes, n - 1 + leaf, low, high, own);
    }
    __syncthreads();
    int child = n - 1 + leaf, node = leaf < n ? parent[child] : -1;
    auto is_own = [&](int k) { return k >= start && k < end && end_of[k - start] >= start && end_of[k - start] < end; };
    bool climbs = is_own(node);
    while (__syncthreads_or(climbs)) {
        if (!climbs) continue;
        int k = node - start;
        climbs = false;
        if (atomicAdd(&visited[k], 1) == 0) {
            node = -1;
            continue;
        }
        int left = ways[k].x, sibling = child == left ? own.y : left;
        bool is_leaf = sibling >= n - 1;
        int s = sibling - (is_leaf ? n - 1 : 0) - start;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = min(low.x[axis], is_leaf ? point[axis][s] - spread[s] : low_of[axis][s]);
            high.x[axis] = max(high.x[axis], is_leaf ? point[axis][s] + spread[s] : high_of[axis][s]);
            low_of[axis][k] = low.x[axis];
            high_of[axis][k] = high.x[axis];
        }
        own = ways[k];
        child = node;
        node = above[k];
        climbs = is_own(node);
    }
    if (leaf < n) stopped[leaf] = node >= 0 ? child : -1;
    if (visited[t] == 2) {
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = low_of[axis][t];
            high.x[axis] = high_of[axis][t];
        }
        store_node(nodes, leaf, low, high, ways[t]);
    }
}

// Those of the nodes that span several parts, by whoever stopped below them. The fence before a visit publishes the box
// written before; the one after it keeps the sibling's from being read too early.
extern "C" __global__ void fit_spanning(int n, const real* pos, const int* stopped, const int* way, const int* parent,
                                        int* visits, real* nodes) {
    int leaf = work_item();
    if (leaf >= n) return;
    int child = stopped[leaf];
    if (child < 0) return;
    Node merged = load_node(nodes, child);
    int node = parent[child];
    while (node >= 0) {
        __threadfence();
        int2 here = ((const int2*)way)[node];  // asked for before the visit, to wait for both at once
        int above = parent[node];
        if (atomicAdd(&visits[node], 1) == 0) return;
        __threadfence();
        Node there = load_written(nodes, child == here.x ? merged.way.y : here.x);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            merged.low.x[axis] = min(merged.low.x[axis], there.low.x[axis]);
            merged.high.x[axis] = max(merged.high.x[axis], there.high.x[axis]);
        }
        merged.way = here;
        store_node(nodes, node, merged.low, merged.high, here);
        child = node;
        node = above;
    }
}
