// Number of particles that have left their cell; see triggers.py.

extern "C" __global__ void stray(int n, const real* pos, const int* home, Grid grid, int* away) {
    int i = work_item();
    bool left = i < n && cell_number(grid, home_cell(grid, load(pos, n, i))) != home[i];
    int found = __popc(__ballot_sync(~0u, left));
    if (threadIdx.x % 32 == 0 && found) atomicAdd(away, found);
}
