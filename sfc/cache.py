"""Models of a cache fed by a stream of accesses: what an order should buy.

Contract. A stream says which memory slots are read, grouped by the slot on whose behalf they are read. A
model turns it into a `HitRatio`. Caches start empty. Slots are particles; `addresses` converts them to bytes.
"""

from dataclasses import dataclass

import numba
import numpy as np

from sfc.compile import compiler

kernel = compiler("sfc")

LAYOUTS = ("soa", "aos", "aos4")


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


@dataclass(frozen=True)
class StackDistances:
    """How far back every read reaches: the hits of a fully associative LRU cache of any capacity.

    Attributes:
        histogram: (distinct,) int64; histogram[d] reads have stack distance d, the number of distinct other
            lines read since the last read of the same line. A cache of c lines serves those of d < c.
        cold: reads of a line never read before; no cache serves them.
        reads: all reads; histogram.sum() + cold.
    """

    histogram: np.ndarray
    cold: int
    reads: int

    @property
    def distinct(self) -> int:
        """Distinct lines read: the capacity from which on only cold reads miss."""
        return self.cold

    def hits(self, capacity: int) -> HitRatio:
        """What a cache of `capacity` lines serves; ValueError unless that is an integer of at least 1."""
        served = self.histogram[: _integer("cache capacity", capacity, "lines")]
        return HitRatio(int(served.sum()), self.reads)

    def ratios(self, capacities: np.ndarray) -> np.ndarray:
        """Hit ratios of many capacities.

        Args:
            capacities: (m,) integers of at least 1, in lines.

        Returns:
            (m,) float64; NaN for an empty stream.

        Raises:
            ValueError: capacities that are not (m,) integers of at least 1.
        """
        capacities = _integers("cache capacities", capacities, 1)
        if not self.reads:
            return np.full(len(capacities), np.nan)
        served = np.concatenate([[0], np.cumsum(self.histogram)])
        return served[np.minimum(capacities.astype(np.uint64), self.distinct).astype(np.int64)] / self.reads


def block(stream: AccessStream, capacity: int) -> HitRatio:
    """The thesis's model: memory is cut into blocks of `capacity` slots; a read in the reader's own hits.

    Args:
        stream: reads grouped by reader.
        capacity: slots per block, at least 1.

    Returns:
        The hit ratio. Seed 003, chapters 2 and 5.

    Raises:
        ValueError: a capacity that is no integer of at least 1.
    """
    if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
        raise ValueError(f"cache capacity {capacity!r} slots; allowed: an integer of at least 1")
    return HitRatio(int(_block_hits(stream.offsets, stream.reads, capacity)), len(stream.reads))


@kernel(parallel=True)
def _block_hits(offsets, reads, capacity):
    hits = 0
    for i in numba.prange(len(offsets) - 1):
        own = i // capacity
        count = 0
        for a in range(offsets[i], offsets[i + 1]):
            count += reads[a] // capacity == own
        hits += count
    return hits


def lru(items: AccessStream | np.ndarray) -> StackDistances:
    """Exact stack distances: a fully associative cache with LRU replacement, at every capacity at once.

    One pass, O(n log n). Beside the input it takes n / 5 bytes, and 12 per value from the lowest to the
    highest; values spread wider than 2 n are first numbered by sorting, which takes some 24 n bytes.

    Args:
        items: the reads of a stream, or (n,) integers of any dtype and value. Each value is a line.

    Returns:
        The histogram of distances.

    Raises:
        ValueError: items that are not one-dimensional or not integers.

    The stack: Mattson, Gecsei, Slutz and Traiger (1970), doi:10.1147/sj.92.0078. A tree that counts marks at
    the times of last access: Bennett and Kruskal (1975), doi:10.1147/rd.194.0353; Olken (1981), LBL-12370.
    """
    items = _integers("items", items.reads if isinstance(items, AccessStream) else items)
    if not len(items):
        return StackDistances(np.zeros(0, np.int64), 0, 0)
    low = items.min()
    lines = int(items.max()) - int(low) + 1
    if lines > 2 * len(items):
        values, items = np.unique(items, return_inverse=True)
        low, lines = items.dtype.type(0), len(values)
    time = np.int32 if len(items) < 2**31 else np.int64  # narrow where possible: `last` is read at random
    marks = np.zeros(len(items) // 64 + 1, np.uint64)
    last, tree = np.full(lines, -1, time), np.zeros(len(marks) + 1, time)
    histogram = np.zeros(min(lines, len(items)), np.int64)
    distinct = int(_count_distances(items, low, last, marks, tree, histogram))
    return StackDistances(histogram[:distinct].copy(), distinct, len(items))


def set_associative(addresses: np.ndarray, size: int, line: int, ways: int) -> HitRatio:
    """A cache of sets of lines, LRU within each set, as hardware has it and as cachegrind simulates it.

    An address's line is address // line and its set that number modulo the sets, as many as there are. Time
    grows with the ways: for a single set of many, `lru(addresses // line)` gives the same hits sooner.

    Args:
        addresses: (n,) integers of at least 0, in bytes; each load lies within a line.
        size: bytes of the cache, a multiple of line * ways.
        line: bytes of a line, a power of two.
        ways: lines of a set; 1 is a direct-mapped cache, size / line a fully associative one.

    Returns:
        The hit ratio.

    Raises:
        ValueError: addresses that are negative, not one-dimensional or not integers; an impossible cache.

    Hill and Smith (1989), doi:10.1109/12.40842; Nethercote (2004), the simulation of cachegrind.
    """
    addresses = _integers("addresses", addresses, 0)
    size, line = _integer("cache size", size, "bytes"), _integer("cache line", line, "bytes")
    ways = _integer("cache associativity", ways, "lines a set")
    if line & (line - 1):
        raise ValueError(f"cache line {line} bytes; allowed: a power of two, as {1 << line.bit_length()}")
    if size % (line * ways):
        raise ValueError(f"cache size {size} bytes; allowed: a multiple of line * ways = {line * ways} bytes")
    held = np.zeros((size // (line * ways), ways), np.uint64)
    hits = _set_hits(addresses, np.uint64(line.bit_length() - 1), held, np.zeros(len(held), np.int64))
    return HitRatio(int(hits), len(addresses))


def addresses(slots: AccessStream | np.ndarray, layout: str, dim: int, itemsize: int, n: int) -> np.ndarray:
    """Byte addresses of the loads that read rows of an (n, dim) array.

    Args:
        slots: the rows read, in order: the reads of a stream, or (m,) integers, 0 <= slot < n.
        layout: "soa" (axis by axis; dim loads a row), "aos" (row by row; dim loads a row) or "aos4" (row by
            row, each padded to four items; a load per 16 bytes, one of float32 and two of float64).
        dim: items of a row; at most 4 in "aos4".
        itemsize: bytes of an item; in "aos4" 4, 8 or 16.
        n: rows of the array.

    Returns:
        (m * loads of a row,) int64. The array starts at address 0: `addresses // line` are the lines.

    Raises:
        ValueError: an unknown layout, a slot outside the array, or a row the layout cannot hold.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; known: {', '.join(LAYOUTS)}")
    dim, itemsize = _integer("dim", dim, "items"), _integer("itemsize", itemsize, "bytes")
    if layout == "aos4" and (dim > 4 or itemsize not in (4, 8, 16)):
        raise ValueError(f"rows of {dim} x {itemsize} bytes; aos4 allows 1 to 4 x 4, 8 or 16; else take aos")
    width = itemsize * (4 if layout == "aos4" else dim)
    n = _integer("n", n, f"rows of {width} bytes", 0, (2**63 - 1) // width)
    slots = _integers("slots", slots.reads if isinstance(slots, AccessStream) else slots, 0, n)
    loads = width // 16 if layout == "aos4" else dim
    first, further = (itemsize, n * itemsize) if layout == "soa" else (width, width // loads)
    return (slots.astype(np.int64)[:, None] * first + np.arange(loads) * further).ravel()


def _integer(what: str, value: int, unit: str, low: int = 1, high: float = np.inf) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{what} {value!r} {unit}; allowed: an integer from {low} to {high}")
    return int(value)


def _integers(what: str, values: np.ndarray, low: float = -np.inf, end: float = np.inf) -> np.ndarray:
    """The values, checked, contiguous and in native byte order, as kernels take them."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        found = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"{what} are {found}; allowed: integers of shape (n,), as by ravel and astype")
    for value in (int(values.min()), int(values.max())) if len(values) else ():
        if not low <= value < end:
            raise ValueError(f"{what} hold {value}; allowed: {low} <= value < {end}")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


@kernel
def _popcount(word):
    # Warren, Hacker's Delight (2012), figure 5-2: sums of 2, 4 and 8 bits side by side, added by one product.
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _add(tree, word, amount):
    # Fenwick (1994): tree[k] counts the marks of the k & -k words that end before word k.
    k = word + 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@kernel
def _count_distances(items, low, last, marks, tree, histogram):
    # A bit of `marks` is set at the time of the last access of each line. The tree counts the marks of the
    # words before the present one, which it takes in once complete: near accesses never touch it.
    distinct = 0
    for now in range(len(items)):
        word = now >> 6
        line = np.int64(items[now] - low)
        before = np.int64(last[line])
        if before < 0:
            distinct += 1
        else:
            k = before >> 6
            not_later = _popcount(marks[k] & (~np.uint64(0) >> np.uint64(63 - (before & 63))))
            marks[k] &= ~(np.uint64(1) << np.uint64(before & 63))
            if k < word:
                _add(tree, k, -1)
            while k > 0:
                not_later += tree[k]
                k &= k - 1
            histogram[distinct - not_later] += 1
        marks[word] |= np.uint64(1) << np.uint64(now & 63)
        last[line] = now
        if now & 63 == 63:
            _add(tree, word, _popcount(marks[word]))
    return distinct


@kernel
def _set_hits(addresses, shift, held, filled):
    # Row s of `held`: the filled[s] lines of set s, the latest first.
    hits = 0
    for i in range(len(addresses)):
        number = np.uint64(addresses[i]) >> shift
        chosen = np.int64(number % np.uint64(len(held)))
        place = 0
        while place < filled[chosen] and held[chosen, place] != number:
            place += 1
        if place < filled[chosen]:
            hits += 1
        else:
            filled[chosen] = min(filled[chosen] + 1, held.shape[1])
            place = filled[chosen] - 1
        for later in range(place, 0, -1):
            held[chosen, later] = held[chosen, later - 1]
        held[chosen, 0] = number
    return hits
