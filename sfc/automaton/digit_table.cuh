// Table in shared memory of a curve of any base, addressed by digits: a digit of the table has LEVELS digits of each coordinate
// as one number, axis 0 lowest.

#define COPIES (1u << COPY_BITS)  // of the table, so that lanes read different banks
#define CODE_SHIFT 18             // in an entry: above it a rank, or in the highest bits a cell; below it the next row's address

__host__ __device__ constexpr u64 power(u64 base, int exponent) {
    return exponent ? base * power(base, exponent - 1) : 1;
}

// Most look-ups with digits that together make a number up to 2^31; at least one, for a digit has at most 14 bits.
__host__ __device__ constexpr int most_groups(u64 digits, int groups = 1) {
    return power(digits, groups + 1) <= 1ull << 31 ? most_groups(digits, groups + 1) : groups;
}

constexpr unsigned SPAN = power(BASE, LEVELS);          // of a coordinate, in a digit of the table
constexpr unsigned DIGITS = power(SPAN, DIM);           // of the table
constexpr unsigned BELOW_TOP = power(SPAN, GROUPS - 1); // of a coordinate, below its first digit; at most 2^31
constexpr int PART = most_groups(DIGITS);               // look-ups of a part of an index
constexpr int PARTS = (GROUPS + PART - 1) / PART;       // of an index; the last has the highest digits
constexpr int LAST_PART = GROUPS - PART * (PARTS - 1);  // look-ups of the last part
constexpr unsigned IN_PART = power(DIGITS, PART), IN_LAST_PART = power(DIGITS, LAST_PART);  // numbers

__device__ __forceinline__ unsigned address_of(unsigned row) { return row * DIGITS << (2 + COPY_BITS); }

__device__ __forceinline__ unsigned first_entry(unsigned start) { return address_of(start) | threadIdx.x % COPIES << 2; }

// Copies the table to shared memory; the next row of an entry becomes its address, in the same copy.
__device__ __forceinline__ void fill(const unsigned* entries, char* table) {
    const unsigned below = (1u << CODE_SHIFT) - 1;
    for (unsigned i = threadIdx.x; i < STATES * DIGITS << COPY_BITS; i += THREADS) {
        unsigned copy = i % COPIES, entry = entries[i / COPIES];
        ((unsigned*)table)[i] = (entry & ~below) | address_of(entry & below) | copy << 2;
    }
    __syncthreads();
}

__device__ __forceinline__ unsigned next_entry(const char* table, unsigned entry, unsigned digit) {
    return *(const unsigned*)(table + (entry & ((1u << CODE_SHIFT) - 1)) + (digit << (2 + COPY_BITS)));
}

// A binary fraction of 32 bits between x / n and (x + 1) / n, for x < n <= 2^31. Its product with a base has the first digit
// of x in the upper half, and the fraction of the other digits in the lower half.
template <unsigned n> __device__ __forceinline__ unsigned fraction_of(unsigned x) {
    constexpr u64 width = ~0ull / n + 1;
    return (unsigned)((x * width + width / 2) >> 32);
}

__device__ __forceinline__ unsigned first_digit(unsigned& fraction, unsigned base) {
    u64 product = (u64)fraction * base;
    fraction = (unsigned)product;
    return (unsigned)(product >> 32);
}

// Index of a cell inside the grid; `word` has its coordinates.
__device__ __forceinline__ u64 index_of(unsigned (&word)[4], const char* table, unsigned entry) {
    u64 index = 0;
    unsigned part = 0, fraction[DIM];
#pragma unroll
    for (int g = GROUPS - 1; g >= 0; --g) {
        unsigned digit = 0;
#pragma unroll
        for (int axis = DIM - 1; axis >= 0; --axis) {
            unsigned own;
            if (g == GROUPS - 1) {
                own = word[axis] / BELOW_TOP;
                fraction[axis] = fraction_of<BELOW_TOP>(word[axis] - own * BELOW_TOP);
            } else {
                own = first_digit(fraction[axis], SPAN);
            }
            digit = digit * SPAN + own;
        }
        entry = next_entry(table, entry, digit);
        part = part * DIGITS + (entry >> CODE_SHIFT);
        if (g % PART == 0) {
            index = index * IN_PART + part;
            part = 0;
        }
    }
    return index;
}

// Coordinates of the cell at an index along the curve.
__device__ __forceinline__ void cell_of(u64 index, const char* table, unsigned entry, unsigned (&word)[4]) {
    unsigned part[PARTS];
#pragma unroll
    for (int k = 0; k < PARTS - 1; ++k) {
        u64 above = index / IN_PART;
        part[k] = (unsigned)index - (unsigned)above * IN_PART;
        index = above;
    }
    part[PARTS - 1] = (unsigned)index;
#pragma unroll
    for (int k = 0; k < 4; ++k) word[k] = 0;
#pragma unroll
    for (int k = PARTS - 1; k >= 0; --k) {
        unsigned fraction = k < PARTS - 1 ? fraction_of<IN_PART>(part[k]) : fraction_of<IN_LAST_PART>(part[k]);
#pragma unroll
        for (int g = 0; g < (k < PARTS - 1 ? PART : LAST_PART); ++g) {
            entry = next_entry(table, entry, first_digit(fraction, DIGITS));
#pragma unroll
            for (int axis = 0; axis < DIM; ++axis) {
                unsigned field = entry >> (32 - FIELD * (DIM - axis)) & ((1u << FIELD) - 1);
                word[axis] = word[axis] * SPAN + field;
            }
        }
    }
}
