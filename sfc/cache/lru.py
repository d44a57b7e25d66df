"""Fully associative LRU caches of all capacities, by stack distances."""

from dataclasses import dataclass

import numpy as np

from sfc import checks
from sfc.bitwise.bits import ones
from sfc.cache.stream import AccessStream, HitRatio, whole_numbers, words
from sfc.compile import kernel


@dataclass(frozen=True)
class StackDistances:
    """Histogram of stack distances: the hits of a fully associative LRU cache of any capacity.

    Attributes:
        histogram: (distinct,) int64; histogram[d] reads have stack distance d, the number of distinct other
            lines read since the last read of the same line. In a cache of c lines those of d < c hit.
        cold: reads of a line never read before; they miss in every cache.
        reads: all reads; histogram.sum() + cold.

    Raises:
        TypeError: a histogram that makes no array, or a number that is no integer.
        ValueError: another shape or dtype, a negative number, or a number of reads that does not match.
    """

    histogram: np.ndarray
    cold: int
    reads: int

    def __post_init__(self) -> None:
        histogram = whole_numbers("histogram", self.histogram, 0).astype(np.int64, copy=False)
        cold, reads = checks.integer("cold", self.cold, 0), checks.integer("reads", self.reads, 0)
        if len(histogram) != cold or int(histogram.sum()) + cold != reads:
            raise ValueError(
                f"a histogram of {len(histogram)} distances and {int(histogram.sum())} reads, {cold} cold "
                f"reads and {reads} in all; allowed: a distance for each cold read, and as many reads in all"
            )
        object.__setattr__(self, "histogram", histogram)
        object.__setattr__(self, "cold", cold)
        object.__setattr__(self, "reads", reads)

    @property
    def distinct(self) -> int:
        """Distinct lines read: the capacity at and above which only cold reads miss."""
        return self.cold

    def hits(self, capacity: int) -> HitRatio:
        """Return the hits of a cache of `capacity` lines.

        Raises:
            TypeError: a capacity that is no integer.
            ValueError: a capacity below 1.
        """
        served = self.histogram[: checks.integer("capacity", capacity, unit="lines of the cache")]
        return HitRatio(int(served.sum()), self.reads)

    def ratios(self, capacities: np.ndarray) -> np.ndarray:
        """Compute the hit ratios of many capacities.

        Args:
            capacities: (m,) integers of at least 1, in lines.

        Returns:
            (m,) float64; NaN for an empty stream.

        Raises:
            TypeError: capacities that make no array.
            ValueError: capacities that are not (m,) integers of at least 1.
        """
        capacities = whole_numbers("capacities", capacities, 1)
        if not self.reads:
            return np.full(len(capacities), np.nan)
        served = np.concatenate([[0], np.cumsum(self.histogram)])
        return served[np.minimum(capacities.astype(np.uint64), self.distinct).astype(np.int64)] / self.reads


def lru(items: AccessStream | np.ndarray) -> StackDistances:
    """Compute exact stack distances, and so the hits of fully associative LRU caches of all capacities.

    One pass, O(n log n). In addition to the input it takes n / 5 bytes, 8 n if the items are not of 64 bits,
    and 12 per value from the lowest to the highest; values spread wider than 2 n are first numbered by
    sorting, which takes some 24 n bytes.

    Args:
        items: the reads of a stream, or (n,) integers of any dtype and value. Each value is a line.

    Returns:
        The histogram of distances.

    Raises:
        TypeError: items that make no array.
        ValueError: items that are not one-dimensional or not integers.

    The stack: Mattson, Gecsei, Slutz and Traiger (1970), doi:10.1147/sj.92.0078. A tree that counts marks at
    the times of last access: Bennett and Kruskal (1975), doi:10.1147/rd.194.0353; Olken (1981), LBL-12370.
    """
    items = words(whole_numbers("items", items.reads if isinstance(items, AccessStream) else items))
    return _distances(items, np.empty(0, np.int64))


def distances(items: np.ndarray) -> np.ndarray:
    """Compute the stack distance of each access.

    Args:
        items: (n,) integers of any dtype and value. Each value is a line.

    Returns:
        (n,) int64: the number of distinct other lines since the last access of the same line, -1 for none.

    Raises:
        TypeError: items that make no array.
        ValueError: items that are not one-dimensional or not integers.
    """
    items = words(whole_numbers("items", items))
    found = np.full(len(items), -1, np.int64)
    _distances(items, found)
    return found


def _distances(items: np.ndarray, found: np.ndarray) -> StackDistances:
    """Compute the histogram of `lru`, and the distance of each access if `found` is not empty."""
    if not len(items):
        return StackDistances(np.zeros(0, np.int64), 0, 0)
    low = items.min()
    lines = int(items.max()) - int(low) + 1
    if lines > 2 * len(items):
        values, items = np.unique(items, return_inverse=True)
        low, lines = np.int64(0), len(values)
    time = np.int32 if len(items) < 2**31 else np.int64  # narrow if possible: `last` is read in random order
    marks = np.zeros(len(items) // 64 + 1, np.uint64)
    last, tree = np.full(lines, -1, time), np.zeros(len(marks) + 1, time)
    histogram = np.zeros(min(lines, len(items)), np.int64)
    distinct = int(_count_distances(items, low, last, marks, tree, histogram, found))
    return StackDistances(histogram[:distinct].copy(), distinct, len(items))


@kernel
def _add(tree, word, amount):
    # Fenwick (1994): tree[k] counts the marks of the k & -k words that end before word k.
    k = word + 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@kernel
def _count_distances(items, low, last, marks, tree, histogram, found):
    # A bit of `marks` is set at the time of the last access of each line. The tree counts the marks of the
    # words before the present one, which is added once complete: near accesses do not read the tree.
    distinct = 0
    for now in range(len(items)):
        word = now >> 6
        line = items[now] - low
        before = np.int64(last[line])
        if before < 0:
            distinct += 1
        else:
            k = before >> 6
            not_later = np.int64(ones(marks[k] & (~np.uint64(0) >> np.uint64(63 - (before & 63)))))
            marks[k] &= ~(np.uint64(1) << np.uint64(before & 63))
            if k < word:
                _add(tree, k, np.int64(-1))
            while k > 0:
                not_later += tree[k]
                k &= k - 1
            histogram[distinct - not_later] += 1
            if len(found):
                found[now] = distinct - not_later
        marks[word] |= np.uint64(1) << np.uint64(now & 63)
        last[line] = now
        if now & 63 == 63:
            _add(tree, word, np.int64(ones(marks[word])))
    return distinct
