// Table in shared memory of a curve of base 2, addressed by bits: a digit has LEVELS bits of each coordinate side by side.

#define WORDS (8 / LEVELS)         // in which the digits of a point stand, a byte each
#define BITS (DIM * LEVELS)        // of a digit
#define COPIES (1u << COPY_BITS)   // of the table, so that lanes read different banks
#define LOW_BITS (6 - COPY_BITS)   // of a state that stand below the digit in an address; the others stand above it
#define ADDRESS (0xfcu | (0xffffffu & ~((1u << (8 + BITS)) - 1)))  // bits of a state and a copy in an address

__device__ __forceinline__ unsigned address_of(unsigned state) {
    return (state & ((1u << LOW_BITS) - 1)) << (2 + COPY_BITS) | state >> LOW_BITS << (8 + BITS);
}

__device__ __forceinline__ unsigned first_entry(unsigned start) {
    return address_of(start) | threadIdx.x % COPIES << 2;
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
