"""The thesis's model of a cache: blocks of slots, each of which its own readers find at hand."""

import numba

from sfc.cache.checks import checked_integer
from sfc.cache.stream import AccessStream, HitRatio
from sfc.compile import compiler

kernel = compiler("sfc")


def block(stream: AccessStream, capacity: int) -> HitRatio:
    """The thesis's model: memory is cut into blocks of `capacity` slots; a read in the reader's own hits.

    It knows where things lie, not when they are read: the order of the readers makes no difference.

    Args:
        stream: reads grouped by reader.
        capacity: slots per block, at least 1.

    Returns:
        The hit ratio. Seed 003, chapters 2 and 5.

    Raises:
        ValueError: no stream, or a capacity that is no integer of at least 1.
    """
    if not isinstance(stream, AccessStream):
        raise ValueError(f"a stream of type {type(stream).__name__}; allowed: AccessStream(offsets, reads)")
    capacity = min(checked_integer("cache capacity", capacity, "slots"), 2**63 - 1)  # no slot is above that
    return HitRatio(
        int(_block_hits(stream.offsets, stream.reads, stream.readers, capacity)), len(stream.reads)
    )


@kernel(parallel=True)
def _block_hits(offsets, reads, readers, capacity):
    hits = 0
    for i in numba.prange(len(offsets) - 1):
        own = readers[i] // capacity
        count = 0
        for a in range(offsets[i], offsets[i + 1]):
            count += reads[a] // capacity == own
        hits += count
    return hits
