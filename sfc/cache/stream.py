"""What goes into a model of a cache, the reads of a kernel, and what comes out, its hits."""

from dataclasses import dataclass

import numpy as np

from sfc.cache.checks import checked_integers


@dataclass(frozen=True)
class AccessStream:
    """The reads of a kernel in the order it makes them, reader by reader.

    Attributes:
        offsets: (n + 1,) int64; the reads of reader k are offsets[k] .. offsets[k + 1] - 1. Given as integers
            of any dtype.
        reads: (offsets[n],) int32, or int64 where a slot needs it; the slot each one reads. Given as integers
            of any dtype.
        readers: (n,) int32 or int64; the slot of each reader. Given as integers of any dtype, or None where
            the readers are the slots 0 .. n - 1 in turn.

    Raises:
        ValueError: offsets that do not rise from 0 to the number of reads, readers of another number, a
            negative slot, or what is not (n,) integers.
    """

    offsets: np.ndarray
    reads: np.ndarray
    readers: np.ndarray | None = None

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
        n = len(offsets) - 1
        readers = checked_integers(
            "readers", np.arange(n) if self.readers is None else self.readers, 0, 2**63
        )
        if len(readers) != n:
            raise ValueError(f"{len(readers)} readers; allowed: {n}, one less than the offsets")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "reads", _narrow(reads))
        object.__setattr__(self, "readers", _narrow(readers))


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


def _narrow(slots: np.ndarray) -> np.ndarray:
    """Slots as int32, or as int64 where one of them needs it."""
    fits = not len(slots) or int(slots.max()) < 2**31
    return slots.astype(np.int32 if fits else np.int64, copy=False)
