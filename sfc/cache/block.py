"""Block model of a cache [thesis, chapters 2 and 5]: a read hits if it is in the block of its reader."""

import numpy as np

from sfc import checks
from sfc.cache.stream import MOST, AccessStream, HitRatio, words
from sfc.compile import in_parts, kernel


def block(stream: AccessStream, capacity: int) -> HitRatio:
    """Count hits in the block model: memory is divided into blocks, and a read in its reader's block hits.

    The model depends on the places of slots, not on the times of reads: the order of the readers makes no
    difference.

    Args:
        stream: reads grouped by reader.
        capacity: slots per block, at least 1.

    Returns:
        The hit ratio. [thesis, chapters 2 and 5]

    Raises:
        TypeError: no stream, or a capacity that is no integer.
        ValueError: a capacity below 1.
    """
    return HitRatio(int(block_hits(stream, capacity).sum()), len(stream.reads))


def block_hits(stream: AccessStream, capacity: int) -> np.ndarray:
    """Count the hits of each reader in the block model.

    Args:
        stream: reads grouped by reader.
        capacity: slots per block, at least 1.

    Returns:
        (n,) int64, in the order of the readers.

    Raises:
        TypeError, ValueError: as `block`.
    """
    checks.instance(
        "stream", stream, AccessStream, "an sfc.cache.AccessStream", "make AccessStream(offsets, reads)"
    )
    capacity = min(checks.integer("capacity", capacity, unit="slots of a block"), MOST)
    assert stream.readers is not None  # set by `AccessStream`
    hits = np.empty(len(stream.readers), np.int64)
    offsets, reads, readers = stream.offsets, words(stream.reads), words(stream.readers)

    def count(part: slice) -> None:
        _count(offsets[part.start : part.stop + 1], reads, readers[part], capacity, hits[part])

    in_parts(count, len(hits))
    return hits


@kernel
def _count(offsets, reads, readers, capacity, hits):
    for i in range(len(offsets) - 1):
        first = readers[i] - readers[i] % capacity  # of the reader's block
        count = 0
        for a in range(offsets[i], offsets[i + 1]):
            count += 0 <= reads[a] - first < capacity
        hits[i] = count
