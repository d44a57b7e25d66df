// Construction of a linear bounding volume hierarchy; see tree.py. Inner nodes are numbered from 0, leaves from n - 1;
// -1 ends a traversal.

// Sorted keys. common_prefix: number of leading bits that two keys share, continued in their indices if the keys are
// equal; -1 for an index out of range.
struct Keys {
    int n, wide;
    const unsigned* keys;
    __device__ __forceinline__ int common_prefix(int i, int j) const {
        if (j < 0 || j >= n) return -1;
        unsigned long long differ = key_at(keys, wide, i) ^ key_at(keys, wide, j);
        return differ ? __clzll(differ) : 64 + __clzll((unsigned long long)(i ^ j));
    }
    // The node that a traversal takes after a subtree that ends with a leaf.
    __device__ __forceinline__ int next_subtree(int leaf) const {
        int end = leaf + 1;
        if (end == n) return -1;
        return common_prefix(end, end + 1) > common_prefix(end, leaf) ? end : n - 1 + end;
    }
};

extern "C" __global__ void link(int n, int key_bits, const unsigned* keys, int* other_end, int* ropes, int* parent) {
    int i = work_item();
    if (i >= n) return;
    Keys k = {n, key_bits > 32, keys};
    int after = k.next_subtree(i);
    ((int2*)ropes)[n - 1 + i] = make_int2(after, after);
    if (i == n - 1) {
        if (n == 1) parent[0] = -1;
        return;
    }
    int ahead = k.common_prefix(i, i + 1), behind = k.common_prefix(i, i - 1);
    int d = ahead > behind ? 1 : -1, least = min(ahead, behind), bound = 2, length = 0;
    while (k.common_prefix(i, i + bound * d) > least) bound *= 2;
    for (int step = bound / 2; step; step /= 2) {
        if (k.common_prefix(i, i + (length + step) * d) > least) length += step;
    }
    int j = i + length * d, first = min(i, j), last = max(i, j);
    int shared = k.common_prefix(first, last), split = first;
    for (int step = last - first; step > 1;) {
        step = (step + 1) / 2;
        if (split + step < last && k.common_prefix(first, split + step) > shared) split += step;
    }
    int left = split == first ? n - 1 + split : split, right = split + 1 == last ? n - 1 + last : split + 1;
    other_end[i] = j;
    ((int2*)ropes)[i] = make_int2(left, k.next_subtree(last));
    parent[left] = i;
    parent[right] = i;
    if (i == 0) parent[0] = -1;
}

// Merges boxes from the leaves up: the second thread that arrives at a node merges the boxes of its children. A part is
// the leaves of a block. A node that spans these leaves only is merged in shared memory, in rounds, one a level that
// any thread climbs.
extern "C" __global__ void fit_parts(int n, int parts, int is_new, const real* pos, const real* radius, real scale,
                                     const int* order, const int* ropes, const int* other_end, const int* parent,
                                     int* visits, Grid grid, real* nodes, int* stopped) {
    __shared__ real point[DIM][LEAVES], spread[LEAVES], low_of[DIM][LEAVES], high_of[DIM][LEAVES];
    __shared__ int end_of[LEAVES], above[LEAVES], visited[LEAVES];
    __shared__ int2 block_ropes[LEAVES];
    int t = threadIdx.x, start = blockIdx.x * LEAVES, leaf = start + t, end = min(n, start + LEAVES);
    int2 own = make_int2(-1, -1);
    visited[t] = 0;
    if (leaf < n - 1) {
        end_of[t] = other_end[leaf];
        above[t] = parent[leaf];
        block_ropes[t] = ((const int2*)ropes)[leaf];
    }
    Vec low, high;
    if (leaf < n) {
        own = ((const int2*)ropes)[n - 1 + leaf];
        int i = order ? order[leaf] : leaf;
        real half = radius ? scale * radius[i] : (real)0;
        Vec at = load(pos, n, i);
        if (!is_new) at = unwrapped(grid, at, middle(load_node(nodes, n - 1 + leaf)));
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
        int left = block_ropes[k].x, sibling = child == left ? own.y : left;
        bool is_leaf = sibling >= n - 1;
        int s = sibling - (is_leaf ? n - 1 : 0) - start;
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            low.x[axis] = min(low.x[axis], is_leaf ? point[axis][s] - spread[s] : low_of[axis][s]);
            high.x[axis] = max(high.x[axis], is_leaf ? point[axis][s] + spread[s] : high_of[axis][s]);
            low_of[axis][k] = low.x[axis];
            high_of[axis][k] = high.x[axis];
        }
        own = block_ropes[k];
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
        store_node(nodes, leaf, low, high, block_ropes[t]);
    }
}

// Orders a box and the visit that announces it; left out only to see whether boxes race then.
#ifdef NO_FENCE
#define VISIT_FENCE()
#else
#define VISIT_FENCE() __threadfence()
#endif

// Merges the boxes of nodes that span several parts, in the threads that stopped below them. The fence before a visit
// publishes the box written before it; the fence after it keeps the sibling's box from being read too early.
extern "C" __global__ void fit_spanning(int n, const real* pos, const int* stopped, const int* ropes, const int* parent,
                                        int* visits, real* nodes) {
    int leaf = work_item();
    if (leaf >= n) return;
    int child = stopped[leaf];
    if (child < 0) return;
    Node merged = load_node(nodes, child);
    int node = parent[child];
    while (node >= 0) {
        VISIT_FENCE();
        int2 node_ropes = ((const int2*)ropes)[node];  // loaded before the visit, so that both latencies overlap
        int above = parent[node];
        if (atomicAdd(&visits[node], 1) == 0) return;
        VISIT_FENCE();
        Node sibling_node = load_written(nodes, child == node_ropes.x ? merged.ropes.y : node_ropes.x);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            merged.low.x[axis] = min(merged.low.x[axis], sibling_node.low.x[axis]);
            merged.high.x[axis] = max(merged.high.x[axis], sibling_node.high.x[axis]);
        }
        merged.ropes = node_ropes;
        store_node(nodes, node, merged.low, merged.high, node_ropes);
        child = node;
        node = above;
    }
}
