// Encode and decode of device arrays with a table in shared memory, several levels a look-up; see shared_tables.py.
//
// Contract. The loader defines DIM (2, 3 or 4), GROUPS (look-ups of a point), STATES, COPY_BITS, THREADS, and the integers
// cell_t and index_t. A digit of the table has LEVELS bits of each coordinate side by side, axis 0 lowest. A chunk is the
// cells of EACH points, 8 * DIM bytes. Cells are aligned to a chunk's vectors, indices to 16 bytes.

typedef unsigned long long u64;

#define LEVELS (DIM == 2 ? 4 : 2)  // of the curve, in a digit
#define WORDS (8 / LEVELS)         // in which the digits of a point stand, a byte each
#define BITS (DIM * LEVELS)        // of a digit
#define COPIES (1u << COPY_BITS)   // of the table, so that lanes read different banks
#define LOW_BITS (6 - COPY_BITS)   // of a state that stand below the digit in an address; the others stand above it
#define ADDRESS (0xfcu | (0xffffffu & ~((1u << (8 + BITS)) - 1)))  // bits of a state and a copy in an address
#define EACH (8 / (int)sizeof(cell_t))

struct alignas(DIM % 2 ? 8 : 16) Chunk {
    u64 word[DIM];
};
struct alignas(EACH * sizeof(index_t) < 16 ? EACH * sizeof(index_t) : 16) Indices {
    index_t of[EACH];
};

__device__ __forceinline__ unsigned address_of(unsigned state) {
    return (state & ((1u << LOW_BITS) - 1)) << (2 + COPY_BITS) | state >> LOW_BITS << (8 + BITS);
}

// Copies the table to shared memory; the next state of an entry becomes the address of its row, in the same copy.
__device__ __forceinline__ void fill(const unsigned* entries, char* table) {
    for (unsigned i = threadIdx.x; i < (unsigned)STATES << (BITS + COPY_BITS); i += THREADS) {
        unsigned copy = i % COPIES, row = i / COPIES, entry = entries[row];
        unsigned place = address_of(row >> BITS) | row % (1u << BITS) << 8 | copy << 2;
        *(unsigned*)(table + place) = (entry & 0xff000000u) | address_of(entry & 0xffffffu) | copy << 2;
    }
    __syncthreads();
}

// In each byte, exchanges the upper half of a (BY bits of every 2 BY) with the lower half of b.
template <int BY> __device__ __forceinline__ void exchange(unsigned& a, unsigned& b) {
    const unsigned low = BY == 4 ? 0x0f0f0f0fu : 0x33333333u;
    unsigned first = (a & low) | (b & low) << BY, second = (a >> BY & low) | (b & ~low);
    a = first;
    b = second;
}

// Coordinates in words become digits in bytes: digit g is byte g / WORDS of word g % WORDS. The same turns them back.
__device__ __forceinline__ void transpose(unsigned (&word)[4]) {
    if (DIM == 2) {
        exchange<4>(word[0], word[1]);
    } else {
        exchange<4>(word[0], word[2]);
        exchange<4>(word[1], word[3]);
        exchange<2>(word[0], word[1]);
        exchange<2>(word[2], word[3]);
    }
}

__device__ __forceinline__ unsigned next_entry(const char* table, unsigned entry, unsigned digit) {
    return *(const unsigned*)(table + ((entry & ADDRESS) | digit));
}

// Index of a cell; `word` has the lower 32 bits of its coordinates.
__device__ __forceinline__ u64 index_of(unsigned (&word)[4], const char* table, unsigned entry) {
    unsigned low = 0, high = 0;
    transpose(word);
#pragma unroll
    for (int g = GROUPS - 1; g >= 0; --g) {
        entry = next_entry(table, entry, __byte_perm(word[g % WORDS], 0, 0x4404 | g / WORDS << 4));
        if ((GROUPS - g) * BITS > 32) high = __funnelshift_l(low, high, BITS);
        low = __funnelshift_l(entry, low, BITS);
    }
    return (u64)high << 32 | low;
}

// Digit g of an index, in bits 8 and above.
__device__ __forceinline__ unsigned digit_of(unsigned low, unsigned high, int g) {
    if (BITS == 8) return __byte_perm(g < 4 ? low : high, 0, 0x4404 | g % 4 << 4);
    int shift = BITS * g - 8;
    unsigned bits = shift < 0 ? low << (shift < 0 ? -shift : 0)
                              : shift < 32 ? __funnelshift_r(low, high, shift) : high >> shift % 32;
    return bits & ((1u << BITS) - 1) << 8;
}

// Coordinates of the cell at an index.
__device__ __forceinline__ void cell_of(u64 index, const char* table, unsigned entry, unsigned (&word)[4]) {
    unsigned low = (unsigned)index, high = (unsigned)(index >> 32);
#pragma unroll
    for (int k = 0; k < 4; ++k) word[k] = 0;
#pragma unroll
    for (int g = GROUPS - 1; g >= 0; --g) {
        entry = next_entry(table, entry, digit_of(low, high, g));
        const int byte = g / WORDS;
        word[g % WORDS] = __byte_perm(word[g % WORDS], entry, (0x3210 & ~(15 << 4 * byte)) | 7 << 4 * byte);
    }
    transpose(word);
}

// Coordinate `k` of a chunk, sign-extended.
__device__ __forceinline__ u64 coordinate(const Chunk& chunk, int k) {
    return (u64)(cell_t)(chunk.word[k / EACH] >> 8 * sizeof(cell_t) * (k % EACH) % 64);
}

__device__ __forceinline__ u64 checked_index(const u64* cell, long long i, int order, const char* table, unsigned start,
                                             u64* bad) {
    unsigned word[4] = {0, 0, 0, 0};
    u64 any = 0;
#pragma unroll
    for (int axis = 0; axis < DIM; ++axis) {
        any |= cell[axis];
        word[axis] = (unsigned)cell[axis];
    }
    if (any >> order) atomicMin(bad, (u64)i);
    return index_of(word, table, start);
}

extern "C" __global__ void __launch_bounds__(THREADS) encode(long long n, const cell_t* cells, int order,
                                                             const unsigned* entries, unsigned start, index_t* index,
                                                             u64* bad) {
    extern __shared__ uint4 memory[];
    char* table = (char*)memory;
    fill(entries, table);
    unsigned first = address_of(start) | threadIdx.x % COPIES << 2;
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
            made.of[p] = (index_t)checked_index(cell, i * EACH + p, order, table, first, bad);
        }
        ((Indices*)index)[i] = made;
    }
    long long rest = chunks * EACH + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) {
        u64 cell[DIM];
        for (int axis = 0; axis < DIM; ++axis) cell[axis] = (u64)cells[rest * DIM + axis];
        index[rest] = (index_t)checked_index(cell, rest, order, table, first, bad);
    }
}

__device__ __forceinline__ void checked_cell(index_t index, long long i, u64 last, const char* table, unsigned start,
                                             unsigned (&word)[4], u64* bad) {
    if (index < 0 || (u64)index > last) atomicMin(bad, (u64)i);
    cell_of((u64)index, table, start, word);
}

extern "C" __global__ void __launch_bounds__(THREADS) decode(long long n, const index_t* index, u64 last,
                                                             const unsigned* entries, unsigned start, cell_t* cells,
                                                             u64* bad) {
    extern __shared__ uint4 memory[];
    char* table = (char*)memory;
    fill(entries, table);
    unsigned first = address_of(start) | threadIdx.x % COPIES << 2;
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
