"""What goes into a model of a cache, the reads of a kernel, and what comes out, its hits."""

from dataclasses import dataclass

import numpy as np

from sfc.cache.checks import checked_integers


@dataclass(frozen=True)
class AccessStream:
    """The reads of a kernel in the order it makes them, slot by slot.

    Attributes:
        offsets: (n + 1,) int64; slot i makes the reads offsets[i] .. offsets[i + 1] - 1. Given as integers of
            any dtype.
        reads: (offsets[n],) int32, or int64 where a slot needs it; the slot each one reads. Given as integers
            of any dtype.

    Raises:
        ValueError: offsets that do not rise from 0 to the number of reads, a negative slot, or what is not
            (n,) integers.
    """

    offsets: np.ndarray
    reads: np.ndarray

    def __post_init__(self):
        reads = checked_integers("reads", self.reads, 0, 2**63)
        offsets = checked_integers("offsets", self.offsets, 0, len(reads) + 1).astype(np.int64, copy=False)
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(reads):
            ends = offsets[[0, -1]].tolist() if len(offsets) else "none"
            raise ValueError(
                f"first and last offset {ends}; allowed: 0 and the number of reads, {len(reads)}"
            )
        falls = np.flatnonzero(offsets[1:] < offsets[:-1])
        if len(falls):
            i = int(falls[0])
            raise ValueError(f"offsets[{i}:{i + 2}] = {offsets[i : i + 2].tolist()}; allowed: rising offsets")
        narrow = not len(reads) or int(reads.max()) < 2**31
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "reads", reads.astype(np.int32 if narrow else np.int64, copy=False))


@dataclass(frozen=True)
class HitRatio:
    """How many of a stream's reads a cache serves.

    Attributes:
        hits: reads found in the cache.
        reads: all reads.
    """

    hits: int
    reads: int

    @property
    def ratio(self) -> float:
        """Hits / reads; NaN for an empty stream."""
        return self.hits / self.reads if self.reads else float("nan")

    def speed_up(self, miss_cost: float = 100.0) -> float:
        """Access time if all reads missed, over the access time with these hits.

        Args:
            miss_cost: time of a miss in units of a hit's; the thesis (5.4, 5.6) takes 100.

        Raises:
            ValueError: a cost that is not positive and finite.
        """
        if not 0 < miss_cost < float("inf"):
            raise ValueError(f"miss cost {miss_cost!r} hits; allowed: positive and finite")
        return miss_cost / (self.ratio + (1.0 - self.ratio) * miss_cost)
