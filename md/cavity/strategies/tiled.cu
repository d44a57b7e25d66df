// A sweep over the pressure from shared memory: a block loads a tile and the points around it once.
#include "cuda.cuh"

#define TILE 32  // points along x and y; a thread has TILE / 8 of them
#define ROW (TILE + 2)
#define TILES_X ((NX - 2 + TILE - 1) / TILE)
#define TILES_Y ((NY - 2 + TILE - 1) / TILE)

// The blocks after those of the tiles have a thread for each boundary point.
extern "C" __global__ void sweep(int n, const number* p, const number* source, number* next, Boundary boundary,
                                 Stencil stencil, Factors factors) {
    __shared__ number tile[ROW * ROW];
    int edge = work_item() - TILES_X * TILES_Y * 256;
    if (edge >= 0) {
        if (edge >= n - TILES_X * TILES_Y * 256) return;
        next[boundary.points[edge]] = swept_edge(edge, Given{p}, Given{source}, boundary, stencil, factors);
        return;
    }
    int first_x = blockIdx.x % TILES_X * TILE, first_y = blockIdx.x / TILES_X * TILE;  // of the points around the tile
    for (int k = threadIdx.x; k < ROW * ROW; k += 256) {
        int x = first_x + k % ROW, y = first_y + k / ROW;
        if (x < NX && y < NY) tile[k] = p[y * NX + x];
    }
    __syncthreads();
    int column = threadIdx.x % TILE + 1;
#pragma unroll
    for (int row = threadIdx.x / TILE + 1; row <= TILE; row += 256 / TILE) {
        int x = first_x + column, y = first_y + row;
        if (x >= NX - 1 || y >= NY - 1) continue;
        const number* own = tile + row * ROW + column;
        Cross cross = {own[0], own[-1], own[1], own[-ROW], own[ROW]};
        next[y * NX + x] = swept(cross, source[y * NX + x], factors);
    }
}
