// Encode and decode of device arrays with a table in shared memory, several levels a look-up; see shared_tables.py.
//
// Contract. The loader defines DIM (2, 3 or 4), BASE, GROUPS (look-ups of a point), STATES, COPY_BITS, TABLE_BYTES, THREADS,
// the integers cell_t and index_t, and for digit_table.cuh FIELD (bits of a coordinate in an entry to decode); and with
// binary_table.cuh or digit_table.cuh the functions fill, first_entry, index_of and cell_of. A chunk is the cells of EACH
// points, 8 * DIM bytes. Cells are aligned to a chunk's vectors, indices to 16 bytes.

#define EACH (8 / (int)sizeof(cell_t))

struct alignas(DIM % 2 ? 8 : 16) Chunk {
    u64 word[DIM];
};
struct alignas(EACH * sizeof(index_t) < 16 ? EACH * sizeof(index_t) : 16) Indices {
    index_t of[EACH];
};

// Coordinate `k` of a chunk, sign-extended.
__device__ __forceinline__ u64 coordinate(const Chunk& chunk, int k) {
    return (u64)(cell_t)(chunk.word[k / EACH] >> 8 * sizeof(cell_t) * (k % EACH) % 64);
}

// A cell outside the grid gets the index of another: of any one, or if the table is addressed by digits, of cell 0.
__device__ __forceinline__ u64 checked_index(const u64* cell, long long i, u64 side, const char* table, unsigned start,
                                             u64* bad) {
    unsigned word[4] = {0, 0, 0, 0};
    u64 any = 0;
    bool outside = false;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        any |= cell[axis];
        outside = outside || cell[axis] >= side;
        word[axis] = (unsigned)cell[axis];
    }
    if (BASE == 2) outside = any >= side;
    if (outside) {
        atomicMin(bad, (u64)i);
        if (BASE != 2) word[0] = word[1] = word[2] = word[3] = 0;
    }
    return index_of(word, table, start);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) encode(long long n, const cell_t* cells, u64 side,
                                                                const unsigned* entries, unsigned start,
                                                                index_t* index, u64* bad) {
    extern __shared__ uint4 memory[];
    char* table = (char*)memory;
    fill(entries, table);
    unsigned first = first_entry(start);
    long long chunks = n / EACH, i = blockIdx.x * (long long)THREADS + threadIdx.x, step = gridDim.x * (long long)THREADS;
    const Chunk* given = (const Chunk*)cells;
    Chunk chunk, later;
    if (i < chunks) chunk = given[i];
    for (; i < chunks; i += step, chunk = later) {
        if (i + step < chunks) later = given[i + step];  // while the present one is encoded
        Indices made;
#pragma unroll
        for (int p = 0; p < EACH; ++p) {
            u64 cell[DIM];
#pragma unroll
            for (int axis = 0; axis < DIM; ++axis) cell[axis] = coordinate(chunk, p * DIM + axis);
            made.of[p] = (index_t)checked_index(cell, i * EACH + p, side, table, first, bad);
        }
        ((Indices*)index)[i] = made;
    }
    long long rest = chunks * EACH + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) {
        u64 cell[DIM];
        for (int axis = 0; axis < DIM; ++axis) cell[axis] = (u64)cells[rest * DIM + axis];
        index[rest] = (index_t)checked_index(cell, rest, side, table, first, bad);
    }
}

__device__ __forceinline__ void checked_cell(index_t index, long long i, u64 last, const char* table, unsigned start,
                                             unsigned (&word)[4], u64* bad) {
    bool outside = index < 0 || (u64)index > last;
    if (outside) atomicMin(bad, (u64)i);
    cell_of(outside && BASE != 2 ? 0 : (u64)index, table, start, word);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) decode(long long n, const index_t* index, u64 last,
                                                                const unsigned* entries, unsigned start,
                                                                cell_t* cells, u64* bad) {
    extern __shared__ uint4 memory[];
    char* table = (char*)memory;
    fill(entries, table);
    unsigned first = first_entry(start);
    long long chunks = n / EACH, i = blockIdx.x * (long long)THREADS + threadIdx.x, step = gridDim.x * (long long)THREADS;
    const Indices* given = (const Indices*)index;
    // Chunks of more than 16 bytes pass through shared memory, so that a warp writes adjacent addresses.
    int lane = threadIdx.x % 32;
    u64* own = (u64*)(table + TABLE_BYTES) + threadIdx.x / 32 * 32 * DIM;
    Indices indices, later;
    if (i < chunks) indices = given[i];
    for (; i - lane < chunks; i += step, indices = later) {  // all lanes of a warp
        if (i + step < chunks) later = given[i + step];
        Chunk made;
#pragma unroll
        for (int d = 0; d < DIM; ++d) made.word[d] = 0;
#pragma unroll
        for (int p = 0; p < EACH; ++p) {
            unsigned word[4];
            if (i < chunks) checked_cell(indices.of[p], i * EACH + p, last, table, first, word, bad);
#pragma unroll
            for (int axis = 0; axis < DIM; ++axis) {
                const int element = p * DIM + axis;
                made.word[element / EACH] |= (u64)word[axis] << 8 * sizeof(cell_t) * (element % EACH) % 64;
            }
        }
        if (DIM == 2) {
            if (i < chunks) ((Chunk*)cells)[i] = made;
            continue;
        }
#pragma unroll
        for (int d = 0; d < DIM; ++d) own[lane * DIM + d] = made.word[d];
        __syncwarp();
#pragma unroll
        for (int d = 0; d < DIM; ++d) {
            long long place = (i - lane) * DIM + d * 32 + lane;
            if (place < chunks * DIM) ((u64*)cells)[place] = own[d * 32 + lane];
        }
        __syncwarp();
    }
    long long rest = chunks * EACH + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) {
        unsigned word[4];
        checked_cell(index[rest], rest, last, table, first, word, bad);
        for (int axis = 0; axis < DIM; ++axis) cells[rest * DIM + axis] = (cell_t)word[axis];
    }
}
