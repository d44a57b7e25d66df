// Forces by traversals with and without a stack that visit each pair once or twice; see reflexive.py, traversal.cuh and
// pair_forces.cuh. `sums` and `parts` are used on the CPU only, and so is `entries` except for stacks in shared memory.

#include "md/search/bvh/pair_forces.cuh"

extern "C" __global__ void gather_none(int n, int parts, int entries, int later_only, const real* pos, const real* vel,
                                       const int* order, const real* nodes, const int* ropes, Reach reach, Grid grid,
                                       Law law, Out out) {
    gather(RopeTraversal{}, later_only, {n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, out);
}

extern "C" __global__ void gather_local(int n, int parts, int entries, int later_only, const real* pos, const real* vel,
                                        const int* order, const real* nodes, const int* ropes, Reach reach, Grid grid,
                                        Law law, Out out) {
    TreeView view = {n, pos, vel, order, nodes, ropes};
    gather(StackTraversal<LocalStack>{}, later_only, view, reach_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW gather_shared(int n, int parts, int entries, int later_only, const real* pos,
                                                const real* vel, const int* order, const real* nodes, const int* ropes,
                                                Reach reach, Grid grid, Law law, Out out) {
    extern __shared__ int room[];
    TreeView view = {n, pos, vel, order, nodes, ropes};
    gather(StackTraversal<SharedStack>{{room}}, later_only, view, reach_of(reach), grid, law, out);
}

extern "C" __global__ void push_none(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                     const real* nodes, const int* ropes, Reach reach, Grid grid, Law law,
                                     const real* sums, real* out) {
    push<false>(RopeTraversal{}, {n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, out);
}

extern "C" __global__ void push_local(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                      const real* nodes, const int* ropes, Reach reach, Grid grid, Law law,
                                      const real* sums, real* out) {
    push<false>(StackTraversal<LocalStack>{}, {n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW push_shared(int n, int parts, int entries, const real* pos, const real* vel,
                                              const int* order, const real* nodes, const int* ropes, Reach reach,
                                              Grid grid, Law law, const real* sums, real* out) {
    extern __shared__ int room[];
    TreeView view = {n, pos, vel, order, nodes, ropes};
    push<false>(StackTraversal<SharedStack>{{room}}, view, reach_of(reach), grid, law, out);
}

extern "C" __global__ void sum_none(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                    const real* nodes, const int* ropes, Reach reach, Grid grid, Law law,
                                    const real* sums, real* out) {
    push<true>(RopeTraversal{}, {n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, out);
}

extern "C" __global__ void sum_local(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                     const real* nodes, const int* ropes, Reach reach, Grid grid, Law law,
                                     const real* sums, real* out) {
    push<true>(StackTraversal<LocalStack>{}, {n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW sum_shared(int n, int parts, int entries, const real* pos, const real* vel,
                                             const int* order, const real* nodes, const int* ropes, Reach reach,
                                             Grid grid, Law law, const real* sums, real* out) {
    extern __shared__ int room[];
    TreeView view = {n, pos, vel, order, nodes, ropes};
    push<true>(StackTraversal<SharedStack>{{room}}, view, reach_of(reach), grid, law, out);
}

extern "C" __global__ void resolve(int n, int parts, int room, const int* counts, const int* partners, const real* pos,
                                   const real* vel, const int* order, const real* nodes, const int* ropes, Reach reach,
                                   Grid grid, Law law, const real* sums, real* out) {
    push_listed({n, pos, vel, order, nodes, ropes}, reach_of(reach), grid, law, counts, room, partners, out);
}

extern "C" __global__ void clear(int n, real* out) {
    int i = work_item();
    if (i < n) store(out, n, i, zero());
}

extern "C" __global__ void scatter_forces(int n, const int* order, const real* forces, real* out) {
    int k = work_item();
    if (k < n) store(out, n, order[k], load(forces, n, k));
}
