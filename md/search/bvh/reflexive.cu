// Walks through a tree with and without a stack, meeting each pair once or twice; see reflexive.py, traversal.cuh and
// pair_forces.cuh. `sums`, `parts` and but for shared stacks `entries` are the CPU's.

#include "md/search/bvh/pair_forces.cuh"

extern "C" __global__ void gather_none(int n, int parts, int entries, int later, const real* pos, const real* vel,
                                       const int* order, const real* nodes, const int* way, Reach reach, Grid grid,
                                       Law law, Out out) {
    gather(Ropes{}, later, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void gather_local(int n, int parts, int entries, int later, const real* pos, const real* vel,
                                        const int* order, const real* nodes, const int* way, Reach reach, Grid grid,
                                        Law law, Out out) {
    gather(Stacked<Local>{}, later, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW gather_shared(int n, int parts, int entries, int later, const real* pos,
                                                const real* vel, const int* order, const real* nodes, const int* way,
                                                Reach reach, Grid grid, Law law, Out out) {
    extern __shared__ int room[];
    gather(Stacked<Shared>{{room}}, later, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void push_none(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                     const real* nodes, const int* way, Reach reach, Grid grid, Law law,
                                     const real* sums, real* out) {
    push<false>(Ropes{}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void push_local(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                      const real* nodes, const int* way, Reach reach, Grid grid, Law law,
                                      const real* sums, real* out) {
    push<false>(Stacked<Local>{}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW push_shared(int n, int parts, int entries, const real* pos, const real* vel,
                                              const int* order, const real* nodes, const int* way, Reach reach,
                                              Grid grid, Law law, const real* sums, real* out) {
    extern __shared__ int room[];
    push<false>(Stacked<Shared>{{room}}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void sum_none(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                    const real* nodes, const int* way, Reach reach, Grid grid, Law law,
                                    const real* sums, real* out) {
    push<true>(Ropes{}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void sum_local(int n, int parts, int entries, const real* pos, const real* vel, const int* order,
                                     const real* nodes, const int* way, Reach reach, Grid grid, Law law,
                                     const real* sums, real* out) {
    push<true>(Stacked<Local>{}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void NARROW sum_shared(int n, int parts, int entries, const real* pos, const real* vel,
                                             const int* order, const real* nodes, const int* way, Reach reach,
                                             Grid grid, Law law, const real* sums, real* out) {
    extern __shared__ int room[];
    push<true>(Stacked<Shared>{{room}}, {n, pos, vel, order, nodes, way}, far_of(reach), grid, law, out);
}

extern "C" __global__ void resolve(int n, int parts, int room, const int* met, const int* partners, const real* pos,
                                   const real* vel, const int* order, const real* nodes, const int* way, Reach reach,
                                   Grid grid, Law law, const real* sums, real* out) {
    push_listed({n, pos, vel, order, nodes, way}, far_of(reach), grid, law, met, room, partners, out);
}

extern "C" __global__ void clear(int n, real* out) {
    int i = work_item();
    if (i < n) store(out, n, i, zero());
}

extern "C" __global__ void give_back(int n, const int* order, const real* forces, real* out) {
    int k = work_item();
    if (k < n) store(out, n, order[k], load(forces, n, k));
}
