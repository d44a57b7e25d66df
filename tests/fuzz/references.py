"""What is right, in plain Python: curves as walks of an automaton, orders of a box, measures, addresses.

Nothing here calls the project: integers have no width, and loops are loops. Caches are those of
`tests.sfc.cache.test_models`.
"""

from __future__ import annotations

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

    def __init__(self, dim: int, base: int, rank: list, next: list, start: int):
        self.dim, self.base, self.rank, self.next, self.start = dim, base, rank, next, start
        self.cell = [{entry: digit for digit, entry in enumerate(row)} for row in rank]

    def encode(self, cell: Sequence[int], order: int) -> int:
        """Index of a cell, read from its highest digits on."""
        state, index = self.start, 0
        for level in range(order - 1, -1, -1):
            digit = sum(int(c) // self.base**level % self.base * self.base**k for k, c in enumerate(cell))
            index = index * self.base**self.dim + self.rank[state][digit]
            state = self.next[state][digit]
        return index

    def decode(self, index: int, order: int) -> list[int]:
        """Cell of an index."""
        state, cell = self.start, [0] * self.dim
        for level in range(order - 1, -1, -1):
            digit = self.cell[state][index // self.base ** (self.dim * level) % self.base**self.dim]
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
            if character not in rules:
                yield character
            elif depth:
                yield from rewritten(rules[character], depth - 1)

    frame = [[int(k == axis) for k in range(dim)] for axis in range(dim)]
    visited = [(0,) * dim]
    for command in rewritten(axiom, order):
        if command in "F#":
            visited.append(tuple(p + h for p, h in zip(visited[-1], frame[0], strict=True)))
            continue
        turns = [TURNS[dim]["+"]] * 2 if command == "|" else [TURNS[dim][command]]
        for one, other in turns:  # the frame's axis `one` turns to where `other` was
            frame[one], frame[other] = frame[other], [-x for x in frame[one]]
    least = [min(along) for along in zip(*visited, strict=True)]
    return [tuple(c - low for c, low in zip(cell, least, strict=True)) for cell in visited]


def zigzag(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Cells of a box in stripes, every other row and layer backwards."""
    if not shape:
        return [()]
    inner = zigzag(shape[:-1])
    return [(*cell, k) for k in range(shape[-1]) for cell in (inner if k % 2 == 0 else inner[::-1])]


def tiled(shape: Sequence[int], tile: Sequence[int]) -> list[tuple[int, ...]]:
    """Cells of a box row by row in tiles, the tiles row by row; rows have axis 0 fastest."""

    def key(cell):
        return ([c // t for c, t in zip(cell, tile, strict=True)][::-1], cell[::-1])

    return sorted(itertools.product(*map(range, shape)), key=key)


def neighbours(path: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Places along an order of cells with a common face, of each such pair."""
    place = {cell: k for k, cell in enumerate(path)}
    steps = [(cell, axis) for cell in path for axis in range(len(cell))]
    pairs = [(cell, (*cell[:axis], cell[axis] + 1, *cell[axis + 1 :])) for cell, axis in steps]
    return [(place[cell], place[other]) for cell, other in pairs if other in place]


def edge_stretch(path: Sequence[tuple[int, ...]], shape: Sequence[int], given: dict) -> list[float]:
    """How far apart along an order lie cells with a common face, for each such pair."""
    return [abs(a - b) for a, b in neighbours(path)]


def dilation(path: Sequence[tuple[int, ...]], shape: Sequence[int], given: dict) -> list[float]:
    """|c_j - c_i|**dim / (j - i) of all pairs, in a norm."""
    found, norm = [], float(given.get("norm", 2))
    for i, j in itertools.combinations(range(len(path)), 2):
        apart = [abs(a - b) for a, b in zip(path[i], path[j], strict=True)]
        length = max(apart) if norm == math.inf else sum(a**norm for a in apart) ** (1 / norm)
        found.append(length ** len(apart) / (j - i))
    return found


def bounding_box(path: Sequence[tuple[int, ...]], shape: Sequence[int], given: dict) -> list[float]:
    """Volume of the box around cells i .. j over their number, of all i < j."""
    parts = (path[i : j + 1] for i, j in itertools.combinations(range(len(path)), 2))
    return [math.prod(max(a) - min(a) + 1 for a in zip(*cells, strict=True)) / len(cells) for cells in parts]


def clusters(path: Sequence[tuple[int, ...]], shape: Sequence[int], given: dict) -> list[float]:
    """Runs along the order of the cells of each window."""
    place, found, window = {cell: k for k, cell in enumerate(path)}, [], given["window"]
    window = (window,) * len(shape) if isinstance(window, int) else window
    for corner in itertools.product(*(range(s - w + 1) for s, w in zip(shape, window, strict=True))):
        inside = itertools.product(*(range(c, c + w) for c, w in zip(corner, window, strict=True)))
        ranks = sorted(place[cell] for cell in inside)
        found.append(1 + sum(b != a + 1 for a, b in itertools.pairwise(ranks)))
    return found


MEASURES = {each.__name__: each for each in (edge_stretch, dilation, bounding_box, clusters)}


def cut(path: Sequence[tuple[int, ...]], pieces: int) -> tuple[set[int], int]:
    """Pairs of adjacent cells in different pieces, for all ways to share the rest out; and of all pairs.

    Sizes of pieces differ by one cell at most: here the longer ones come first, or last, or are spread.
    """
    size, pairs, found = len(path), neighbours(path), set()
    short, more = divmod(size, pieces)
    ways = [
        [short + (k < more) for k in range(pieces)],
        [short + (k >= pieces - more) for k in range(pieces)],
        [(k + 1) * size // pieces - k * size // pieces for k in range(pieces)],
        [-(-(k + 1) * size // pieces) + -k * size // pieces for k in range(pieces)],
    ]
    for sizes in ways:
        piece = [k for k, count in enumerate(sizes) for _ in range(count)]
        found.add(sum(piece[a] != piece[b] for a, b in pairs))
    return found, len(pairs)


def block_hits(stream, capacity: int) -> list[int]:
    """Reads in the reader's own block of slots, reader by reader."""
    offsets, reads, readers = (part.tolist() for part in (stream.offsets, stream.reads, stream.readers))
    rows = zip(itertools.pairwise(offsets), readers, strict=True)
    return [sum(r // capacity == reader // capacity for r in reads[a:b]) for (a, b), reader in rows]


def addresses(slots: Sequence[int], layout: str, dim: int, itemsize: int, n: int) -> list[int]:
    """Byte addresses of the loads of rows."""
    if layout == "soa":
        return [(axis * n + slot) * itemsize for slot in slots for axis in range(dim)]
    if layout == "aos":
        return [(slot * dim + axis) * itemsize for slot in slots for axis in range(dim)]
    width = 4 * itemsize
    return [slot * width + 16 * k for slot in slots for k in range(width // 16)]
