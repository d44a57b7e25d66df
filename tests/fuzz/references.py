"""What is right, in plain Python: curves as walks of an automaton, orders of a box, measures, caches.

Nothing here calls the project: integers have no width, and loops are loops.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterator, Sequence


class Automaton:
    """A curve by its two tables.

    Args:
        dim: dimensions.
        base: of a digit.
        rank: rows of positions of each cell digit.
        next: rows of states likewise.
        start: the first state.
    """

    def __init__(self, dim: int, base: int, rank: Sequence, next: Sequence, start: int):
        self.dim, self.base, self.start = dim, base, start
        self.rank = [[int(entry) for entry in row] for row in rank]
        self.next = [[int(entry) for entry in row] for row in next]
        self.cell = [{entry: digit for digit, entry in enumerate(row)} for row in self.rank]

    def encode(self, cell: Sequence[int], order: int) -> int:
        """Index of a cell, read from its highest digits on."""
        state, index = self.start, 0
        for level in range(order - 1, -1, -1):
            digits = [c // self.base**level % self.base for c in cell]
            digit = sum(d * self.base**axis for axis, d in enumerate(digits))
            index = index * self.base**self.dim + self.rank[state][digit]
            state = self.next[state][digit]
        return index

    def decode(self, index: int, order: int) -> list[int]:
        """Cell of an index."""
        state, cell = self.start, [0] * self.dim
        for level in range(order - 1, -1, -1):
            position = index // self.base ** (self.dim * level) % self.base**self.dim
            digit = self.cell[state][position]
            cell = [c * self.base + digit // self.base**axis % self.base for axis, c in enumerate(cell)]
            state = self.next[state][digit]
        return cell


# A quarter turn takes an axis of the turtle's frame (heading, left, up) to another: (from, to).
TURNS = {
    2: {"+": (0, 1), ">": (0, 1), "-": (1, 0), "<": (1, 0)},
    3: {"+": (0, 1), "-": (1, 0), "^": (0, 2), "&": (2, 0), "<": (2, 1), ">": (1, 2)},
}


def turtle(axiom: str, rules: dict[str, str], order: int, dim: int) -> list[tuple[int, ...]]:
    """Cells that a turtle visits after some rewritings, the least coordinates 0."""

    def rewritten(text: str, depth: int) -> Iterator[str]:
        for character in text:
            if character in rules:
                if depth:
                    yield from rewritten(rules[character], depth - 1)
            else:
                yield character

    frame = [[int(k == axis) for k in range(dim)] for axis in range(dim)]
    place = [0] * dim
    visited = [tuple(place)]
    for command in rewritten(axiom, order):
        if command in "F#":
            place = [p + h for p, h in zip(place, frame[0], strict=True)]
            visited.append(tuple(place))
            continue
        turns = [TURNS[dim]["+"]] * 2 if command == "|" else [TURNS[dim][command]]
        for one, other in turns:  # the frame's axis `one` turns to where `other` was
            frame[one], frame[other] = frame[other], [-x for x in frame[one]]
    least = [min(cell[k] for cell in visited) for k in range(dim)]
    return [tuple(c - low for c, low in zip(cell, least, strict=True)) for cell in visited]


def row(cell: Sequence[int], shape: Sequence[int]) -> int:
    """Row-major number, axis 0 fastest."""
    return sum(c * math.prod(shape[:axis]) for axis, c in enumerate(cell))


def zigzag(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Cells of a box in stripes, every other row and layer backwards."""
    if not shape:
        return [()]
    inner = zigzag(shape[:-1])
    return [(*cell, k) for k in range(shape[-1]) for cell in (inner if k % 2 == 0 else inner[::-1])]


def tiled(shape: Sequence[int], tile: Sequence[int]) -> list[tuple[int, ...]]:
    """Cells of a box row by row in tiles, the tiles row by row."""

    def key(cell):
        return ([c // t for c, t in zip(cell, tile, strict=True)][::-1], cell[::-1])

    return sorted(itertools.product(*map(range, shape)), key=key)


def stretches(path: Sequence[Sequence[int]]) -> list[int]:
    """How far apart along an order lie cells with a common face, for each such pair."""
    place = {tuple(cell): k for k, cell in enumerate(path)}
    found = []
    for cell, k in place.items():
        for axis in range(len(cell)):
            other = (*cell[:axis], cell[axis] + 1, *cell[axis + 1 :])
            if other in place:
                found.append(abs(place[other] - k))
    return found


def dilations(path: Sequence[Sequence[int]], norm: float) -> list[float]:
    """|c_j - c_i|**dim / (j - i) of all pairs."""
    found = []
    for i, j in itertools.combinations(range(len(path)), 2):
        apart = [abs(int(a) - int(b)) for a, b in zip(path[i], path[j], strict=True)]
        length = max(apart) if norm == math.inf else sum(a**norm for a in apart) ** (1 / norm)
        found.append(length ** len(apart) / (j - i))
    return found


def box_shares(path: Sequence[Sequence[int]]) -> list[float]:
    """Volume of the box around cells i .. j over their number, of all i < j."""
    found = []
    for i in range(len(path)):
        low, high = list(path[i]), list(path[i])
        for j in range(i + 1, len(path)):
            low = [min(a, b) for a, b in zip(low, path[j], strict=True)]
            high = [max(a, b) for a, b in zip(high, path[j], strict=True)]
            found.append(math.prod(int(h - w) + 1 for w, h in zip(low, high, strict=True)) / (j - i + 1))
    return found


def cluster_counts(path: Sequence[Sequence[int]], shape: Sequence[int], window: Sequence[int]) -> list[int]:
    """Runs along the order of the cells of each window."""
    place = {tuple(cell): k for k, cell in enumerate(path)}
    found = []
    for corner in itertools.product(*(range(s - w + 1) for s, w in zip(shape, window, strict=True))):
        inside = itertools.product(*(range(c, c + w) for c, w in zip(corner, window, strict=True)))
        ranks = sorted(place[cell] for cell in inside)
        found.append(1 + sum(b != a + 1 for a, b in itertools.pairwise(ranks)))
    return found


def cut(path: Sequence[Sequence[int]], pieces: int) -> tuple[set[int], int]:
    """Pairs of adjacent cells in different pieces, for all ways to share the rest out; and of all pairs.

    Sizes of pieces differ by one cell at most: here the longer ones come first, or last, or are spread.
    """
    size = len(path)
    place = {tuple(cell): k for k, cell in enumerate(path)}
    pairs = []
    for cell, k in place.items():
        for axis in range(len(cell)):
            other = (*cell[:axis], cell[axis] + 1, *cell[axis + 1 :])
            if other in place:
                pairs.append((k, place[other]))
    short, more = divmod(size, pieces)
    ways = [
        [short + (k < more) for k in range(pieces)],
        [short + (k >= pieces - more) for k in range(pieces)],
        [(k + 1) * size // pieces - k * size // pieces for k in range(pieces)],
        [-(-(k + 1) * size // pieces) + -k * size // pieces for k in range(pieces)],
    ]
    found = set()
    for sizes in ways:
        piece = [k for k, count in enumerate(sizes) for _ in range(count)]
        found.add(sum(piece[a] != piece[b] for a, b in pairs))
    return found, len(pairs)


def lru_hits(items: Sequence[int], capacity: int) -> int:
    """Hits of a fully associative cache that drops what was used longest ago."""
    held: collections.OrderedDict[int, None] = collections.OrderedDict()
    hits = 0
    for item in items:
        if item in held:
            hits += 1
            held.move_to_end(item)
        else:
            held[item] = None
            if len(held) > capacity:
                held.popitem(last=False)
    return hits


def set_hits(addresses: Sequence[int], size: int, line: int, ways: int) -> int:
    """Hits of a cache of sets, of each of which the line used longest ago is dropped."""
    sets: dict[int, list[int]] = collections.defaultdict(list)
    count, hits = size // (line * ways), 0
    for address in addresses:
        number = address // line
        held = sets[number % count]
        if number in held:
            hits += 1
            held.remove(number)
        held.append(number)
        if len(held) > ways:
            held.pop(0)
    return hits


def block_hits(
    offsets: Sequence[int], reads: Sequence[int], readers: Sequence[int], capacity: int
) -> list[int]:
    """Reads in the reader's own block of slots, reader by reader."""
    return [
        sum(read // capacity == reader // capacity for read in reads[begin:end])
        for (begin, end), reader in zip(itertools.pairwise(offsets), readers, strict=True)
    ]


def addresses(slots: Sequence[int], layout: str, dim: int, itemsize: int, n: int) -> list[int]:
    """Byte addresses of the loads of rows."""
    found = []
    for slot in slots:
        if layout == "soa":
            found += [(axis * n + slot) * itemsize for axis in range(dim)]
        elif layout == "aos":
            found += [(slot * dim + axis) * itemsize for axis in range(dim)]
        else:
            width = 4 * itemsize
            found += [slot * width + 16 * k for k in range(width // 16)]
    return found
