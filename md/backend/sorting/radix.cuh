// Sizes of digits and tiles of radix.cu.

#include "md/backend/sorting/keys.cuh"

#define VALUES 256  // of a digit; also the threads of a block
#define ROUNDS 8
#define TILE (VALUES * ROUNDS)
