// Table in shared memory of a curve of any base, addressed by digits: a digit of the table has LEVELS digits of each coordinate
// as one number, axis 0 lowest.

#define COPIES (1u << COPY_BITS)  // of the table, so that lanes read different banks
#define CODE_SHIFT 18             // in an entry: above it the code, below it the address of the next row

__device__ constexpr u64 power(u64 base, int exponent) { return exponent ? base * power(base, exponent - 1) : 1; }

#define SPAN power(BASE, LEVELS)  // of a coordinate, in a digit of the table
#define DIGITS power(SPAN, DIM)   // of the table
// Bits of a coordinate in the code of an entry to decode.
#define FIELD (SPAN <= 4 ? 2 : SPAN <= 8 ? 3 : SPAN <= 16 ? 4 : SPAN <= 32 ? 5 : 6)

__device__ __forceinline__ unsigned address_of(unsigned row) { return row * (unsigned)DIGITS << (2 + COPY_BITS); }

__device__ __forceinline__ unsigned first_entry(unsigned start) { return address_of(start) | threadIdx.x % COPIES << 2; }

// Copies the table to shared memory; the next row of an entry becomes its address, in the same copy.
__device__ __forceinline__ void fill(const unsigned* entries, char* table) {
    const unsigned below = (1u << CODE_SHIFT) - 1;
    for (unsigned i = threadIdx.x; i < STATES * (unsigned)DIGITS << COPY_BITS; i += THREADS) {
        unsigned copy = i % COPIES, entry = entries[i / COPIES];
        ((unsigned*)table)[i] = (entry & ~below) | address_of(entry & below) | copy << 2;
    }
    __syncthreads();
}

__device__ __forceinline__ unsigned next_entry(const char* table, unsigned entry, unsigned digit) {
    return *(const unsigned*)(table + (entry & ((1u << CODE_SHIFT) - 1)) + (digit << (2 + COPY_BITS)));
}

// Index of a cell inside the grid; `word` has its coordinates.
__device__ __forceinline__ u64 index_of(unsigned (&word)[4], const char* table, unsigned entry) {
    u64 index = 0;
#pragma unroll
    for (int g = GROUPS - 1; g >= 0; --g) {
        const unsigned scale = (unsigned)power(SPAN, g);
        unsigned digit = 0;
#pragma unroll
        for (int axis = DIM - 1; axis >= 0; --axis) {
            unsigned own = word[axis] / scale;
            word[axis] -= own * scale;
            digit = digit * (unsigned)SPAN + own;
        }
        entry = next_entry(table, entry, digit);
        index = index * DIGITS + (entry >> CODE_SHIFT);
    }
    return index;
}

// Coordinates of the cell at an index along the curve.
__device__ __forceinline__ void cell_of(u64 index, const char* table, unsigned entry, unsigned (&word)[4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) word[k] = 0;
#pragma unroll
    for (int g = GROUPS - 1; g >= 0; --g) {
        const u64 scale = power(DIGITS, g);
        const bool is_short = g + 1 < GROUPS && power(DIGITS, g + 1) >> 32 == 0;  // what is left of the index
        unsigned digit = is_short ? (unsigned)index / (unsigned)scale : (unsigned)(index / scale);
        index -= digit * scale;
        entry = next_entry(table, entry, digit);
#pragma unroll
        for (int axis = 0; axis < DIM; ++axis) {
            word[axis] = word[axis] * (unsigned)SPAN + (entry >> (CODE_SHIFT + FIELD * axis) & ((1u << FIELD) - 1));
        }
    }
}
