"""Input and output of a cache model: the reads of a kernel, and how many of them hit."""

from dataclasses import dataclass

import numpy as np

from sfc import checks

MOST = 2**63 - 1  # the largest slot
FLOORED = "floor floats first, with np.floor(values).astype(np.int64)"


@dataclass(frozen=True)
class AccessStream:
    """Reads of a kernel in their order, grouped by reader.

    Attributes:
        offsets: (n + 1,) int64; the reads of reader k are offsets[k] .. offsets[k + 1] - 1. Given as integers
            of any dtype.
        reads: (offsets[n],) int32, or int64 if a slot needs it; the slot of each read. Given as integers
            of any dtype.
        readers: (n,) int32 or int64; the slot of each reader. Given as integers of any dtype, or None if
            the readers are the slots 0 .. n - 1 in turn.

    Raises:
        TypeError: an object that makes no array.
        ValueError: offsets that do not rise from 0 to the number of reads, another number of readers, a
            negative slot, or an array that is not (n,) integers.
    """

    offsets: np.ndarray
    reads: np.ndarray
    readers: np.ndarray | None = None

    def __post_init__(self) -> None:
        reads = whole_numbers("reads", self.reads, 0, MOST, "number the slots from 0")
        remedy = "end them with the number of reads"
        offsets = whole_numbers("offsets", self.offsets, 0, len(reads), remedy).astype(np.int64, copy=False)
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
        readers = np.arange(n) if self.readers is None else self.readers
        readers = whole_numbers("readers", readers, 0, MOST, "number the slots from 0")
        if len(readers) != n:
            raise ValueError(f"{len(readers)} readers; allowed: {n}, one less than the offsets")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "reads", _narrow(reads))
        object.__setattr__(self, "readers", _narrow(readers))


@dataclass(frozen=True)
class HitRatio:
    """Hits of a cache, and all reads of the stream.

    Attributes:
        hits: reads found in the cache.
        reads: all reads.

    Raises:
        TypeError: a number that is no integer.
        ValueError: a negative number, or more hits than reads.
    """

    hits: int
    reads: int

    def __post_init__(self) -> None:
        reads = checks.integer("reads", self.reads, 0)
        object.__setattr__(self, "hits", checks.integer("hits", self.hits, 0, reads, unit="of the reads"))
        object.__setattr__(self, "reads", reads)

    @property
    def ratio(self) -> float:
        """Hits / reads; NaN for an empty stream."""
        return self.hits / self.reads if self.reads else float("nan")

    def speed_up(self, miss_cost: float = 100.0) -> float:
        """Compute the access time if all reads missed over the access time with these hits.

        Args:
            miss_cost: time of a miss in units of the time of a hit; 100 in [thesis, 5.4, 5.6].

        Raises:
            TypeError: a cost that is no number.
            ValueError: a cost that is not positive and finite.
        """
        miss_cost = checks.number("miss_cost", miss_cost, above=0, unit="in hits")
        return miss_cost / (self.ratio + (1.0 - self.ratio) * miss_cost)


def whole_numbers(
    name: str, values: object, low: int | None = None, high: int | None = None, outside: str = ""
) -> np.ndarray:
    """Convert values to a contiguous (n,) array of integers in native byte order, without a copy if possible.

    Args:
        name: of the argument.
        values: (n,) integers of any dtype.
        low: lowest allowed; None for no bound.
        high: highest allowed; None for no bound.
        outside: remedy for a value out of range.

    Raises:
        TypeError: an object that makes no array.
        ValueError: not one-dimensional, not integers, or a value out of range.
    """
    found = checks.array(
        name, values, "iu", checks.INTEGERS, ("n",), FLOORED, low=low, high=high, outside=outside
    )
    return np.ascontiguousarray(found)


def words(values: np.ndarray) -> np.ndarray:
    """Convert checked integers to the int64 for which kernels are compiled; copies narrower ones.

    The upper half of uint64 becomes negative; distinct values stay distinct.
    """
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def _narrow(slots: np.ndarray) -> np.ndarray:
    """Convert slots to int32, or to int64 if one of them needs it."""
    fits = not len(slots) or int(slots.max()) < 2**31
    return slots.astype(np.int32 if fits else np.int64, copy=False)
