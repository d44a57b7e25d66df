// How radix.cu shares out the keys.

#include "md/backend/sorting/keys.cuh"

#define VALUES 256  // of a digit, and threads of a block
#define ROUNDS 8
#define TILE (VALUES * ROUNDS)
