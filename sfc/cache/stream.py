"""What goes into a model of a cache, the reads of a kernel, and what comes out, its hits."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AccessStream:
    """The reads of a kernel in the order it makes them, slot by slot.

    Attributes:
        offsets: (n + 1,) int64; slot i makes the reads offsets[i] .. offsets[i + 1] - 1.
        reads: (offsets[n],) int32; the slot each one reads.

    Raises:
        ValueError: offsets that do not rise from 0 to the number of reads.
    """

    offsets: np.ndarray
    reads: np.ndarray

    def __post_init__(self):
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(self.reads):
            raise ValueError(f"offsets must rise from 0 to the {len(self.reads)} reads")
        if (np.diff(offsets) < 0).any():
            raise ValueError("offsets must not fall")


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
        """
        return miss_cost / (self.ratio + (1.0 - self.ratio) * miss_cost)
