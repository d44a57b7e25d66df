"""A linear bounding volume hierarchy: a binary tree over particles along a curve, walked without a stack.

Karras, Maximizing parallelism in the construction of BVHs, octrees, and k-d trees, HPG (2012): inner node i
is one end of a range of leaves, whose other end and split follow from the sorted keys alone; equal keys are
told apart by their places. Boxes are merged from the leaves up, by whoever comes to a node second. What
follows a subtree in depth-first order follows from where its range ends (Prokopenko and Lebrun-Grandie,
Revising Apetrei's bounding volume hierarchy construction algorithm to allow stackless traversal, ORNL
(2024)), so that a walk needs no stack that could overflow.

A leaf is a few particles in a row. A node is named by its number, leaf k by ~k, and the number of leaves
stands for the end of a walk. The root is node 0, or ~0 where there is one leaf.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.extending import register_jitable

import sfc
from md.backend import Backend
from md.backend.jit import kernel
from md.counts import require_count
from md.grid import Grid
from md.state import Particles
from sfc import Curve

SMALL, LARGE = {2: 16, 3: 10}, {2: 31, 3: 21}  # bits of a key along an axis; dim -> how many
PARTS, LANES = 256, 256  # of the particles in which the extent is found, and threads of a device for each
WIDTH = 4  # particles of a leaf
DEEPEST = 97  # nodes on the way from a leaf to the root: a bit of key or place is told apart at each


def curve_of(choice: str | Curve, dim: int) -> Curve:
    """A curve whose index has a bit for each halving of a cube, by name or as it is.

    Raises:
        ValueError: it is unknown, of another dimension or of another base; lists those that can be taken.
    """
    curve = sfc.curve(choice, dim) if isinstance(choice, str) and choice in sfc.curves(dim) else choice
    if isinstance(curve, Curve) and (curve.dim, curve.base) == (dim, 2):
        return curve
    raise ValueError(
        f"a tree in {dim}D along {choice!r}; allowed: {', '.join(halving(dim))}, or a curve of base 2"
    )


def halving(dim: int) -> tuple[str, ...]:
    """Names of the curves along which there can be a tree."""
    return tuple(name for name in sfc.curves(dim) if sfc.curve(name, dim).base == 2)


class Tree:
    """The tree over some particles, with its buffers.

    Keys have 10 bits along each axis in 3D and 16 in 2D where a step of theirs is no longer than the cutoff,
    else 21 and 31. They count from a corner of the particles' own extent: the tree does not know of the box.

    Args:
        n: number of particles.
        grid: their box, precision and cutoff.
        backend: where they live.
        curve: along which they are sorted: a name of `sfc.curves(dim)` or a curve, of base 2; the source's
            is Morton's.
        width: particles of a leaf; the last may have fewer.

    Attributes:
        leaves: how many.
        keys: (n,) uint64 indices along the curve, sorted.
        order: (n,) int32 slot that the particle of each place had before it was sorted.
        extent: (2 dim,) least and greatest coordinate along each axis, in d.
        other_end: (leaves - 1,) int32 the leaf at the other end of node i's range, of which i is one.
        way: (4 (leaves - 1),) int32 of node i, in turn: its left child and what follows its subtree; its
            right child and what comes before its subtree, for walks from right to left.
        after, before: (leaves,) int32 what follows each leaf, and what comes before it.
        parent: (2 leaves - 1,) int32 node above each node, then above each leaf; -1 above the root.
        box: (2 (2 leaves - 1), dim) lower and upper corner of each node's box, then of each leaf's; of
            centres, in d.

    Raises:
        ValueError: a curve that is unknown, of another dimension or of another base; a width below 1.
    """

    def __init__(
        self, n: int, grid: Grid, backend: Backend, curve: str | Curve = "morton", width: int = WIDTH
    ):
        require_count(f"width = {width!r}", width, "particle")
        dim, real, leaves = grid.box.dim, grid.precision, -(-n // width)
        inner = max(leaves - 1, 0)
        self._backend, self._curve, self.width, self.leaves = backend, curve_of(curve, dim), width, leaves
        small = max(grid.box.lengths) <= grid.cutoff * 2 ** SMALL[dim]
        self.bits = (SMALL if small else LARGE)[dim]
        self.keys, self.order = backend.empty(n, np.uint64), backend.empty(n, np.int32)
        self.other_end, self.way = backend.empty(inner, np.int32), backend.empty(4 * inner, np.int32)
        self.after, self.before = backend.empty(leaves, np.int32), backend.empty(leaves, np.int32)
        self.parent, self._visits = backend.empty(inner + leaves, np.int32), backend.empty(inner, np.int32)
        self.box = backend.rows(2 * (inner + leaves), dim, real)
        self._parts, self.extent = backend.empty(2 * dim * PARTS, real), backend.empty(2 * dim, real)
        self._scratch = backend.radix_scratch(n)
        self._tables = backend.upload(self._curve.rank), backend.upload(self._curve.next)
        in_turn = len(self._curve.rank) == 1 and (self._curve.rank == np.arange(2**dim)).all()
        self._start = -1 if in_turn else self._curve.start

    def build(self, particles: Particles) -> None:
        """Sort particles along the curve, move them there, and link the tree of them; by launches alone."""
        p, kernels = particles, self._backend.kernels(__name__)
        if p.n == 0:
            return
        kernels.extent_of_parts(PARTS * LANES, p.n, p.pos, self._parts)
        kernels.extent_of_all(LANES, p.pos, self._parts, self.extent)
        kernels.curve_keys(p.n, p.pos, self.extent, self.bits, self._start, *self._tables, self.keys)
        self._backend.radix_sort(self.keys, self.bits * p.box.dim, self.order, self._scratch)
        p.permute(self.order)
        links = self.other_end, self.way, self.after, self.before, self.parent
        kernels.link(self.leaves, self.width, self.keys, *links)

    def fit(self, particles: Particles) -> None:
        """Find the boxes of the particles where they are now, however far they have moved since `build`."""
        if particles.n == 0:
            return
        self._backend.fill(self._visits, 0)
        structure = self.way, self.other_end, self.parent, self._visits, self.box
        workers, n = self._backend.workers, particles.n
        self._backend.kernels(__name__).fit(self.leaves, n, self.width, workers, particles.pos, *structure)


@kernel(parallel=True)
def extent_of_parts(threads, n, pos, extents):
    """Least and greatest coordinate along each axis of every part of the particles, one after the other."""
    for part in numba.prange(PARTS):
        for axis in range(pos.shape[1]):
            low, high = pos[part % n, axis], pos[part % n, axis]
            for i in range(part, n, PARTS):
                low, high = min(low, pos[i, axis]), max(high, pos[i, axis])
            extents[2 * (axis * PARTS + part)] = low
            extents[2 * (axis * PARTS + part) + 1] = high


@kernel
def extent_of_all(threads, pos, extents, extent):
    """Of all parts: extent[2 axis] is the least, the next the greatest."""
    for axis in range(pos.shape[1]):
        lows = extents[2 * axis * PARTS : 2 * (axis + 1) * PARTS : 2]
        highs = extents[2 * axis * PARTS + 1 : 2 * (axis + 1) * PARTS : 2]
        extent[2 * axis], extent[2 * axis + 1] = lows.min(), highs.max()


@kernel(parallel=True)
def curve_keys(n, pos, extent, bits, start, rank, next, keys):
    """keys[i] = index along the curve of the cell of particle i, one of 2**bits a side; cells are cubes.

    A negative `start` stands for Morton's curve, for which a device needs no tables.
    """
    dim, real = pos.shape[1], extent.dtype.type
    widest = extent[1] - extent[0]
    for axis in range(1, dim):
        widest = max(widest, extent[2 * axis + 1] - extent[2 * axis])
    scale = real(2**bits) / widest if widest > 0 else real(0)
    for i in numba.prange(n):
        key, state = np.uint64(0), max(start, 0)
        for level in range(bits - 1, -1, -1):
            digit = 0
            for axis in range(dim):
                cell = min(np.int64((pos[i, axis] - extent[2 * axis]) * scale), 2**bits - 1)
                digit |= ((cell >> level) & 1) << axis
            key = key << np.uint64(dim) | np.uint64(rank[state, digit])
            state = np.int64(next[state, digit])
        keys[i] = key


@register_jitable
def leading_zeros(word):
    """Of a 64-bit word; 64 of 0."""
    zeros, width = 64, 32
    while width:
        if word >> np.uint64(width):
            zeros -= width
            word >>= np.uint64(width)
        width //= 2
    return zeros - np.int64(word)


@register_jitable
def alike(leaves, keys, width, i, j):
    """Leading bits that the keys of two leaves share, and if all then their places; -1 beyond an end."""
    if j < 0 or j >= leaves:
        return -1
    if keys[i * width] != keys[j * width]:
        return leading_zeros(keys[i * width] ^ keys[j * width])
    return 64 + leading_zeros(np.uint64(i ^ j))


@register_jitable
def node_beyond(leaves, keys, width, leaf, d):
    """What is met after a subtree whose range ends with a leaf, in a walk to the right (d = 1) or left (-1).

    It is the child that begins with the next leaf on that side, for both ranges end where a node is split.
    """
    end = leaf + d
    if end < 0 or end == leaves:
        return leaves
    is_inner = alike(leaves, keys, width, end, end + d) > alike(leaves, keys, width, end, leaf)
    return end if is_inner else ~end


@kernel(parallel=True)
def link(leaves, width, keys, other_end, way, after, before, parent):
    """Range, children and neighbours of every inner node, and the neighbours of every leaf."""
    for item in numba.prange(leaves):
        i = np.int64(item)  # prange counts without a sign
        after[i] = node_beyond(leaves, keys, width, i, 1)
        before[i] = node_beyond(leaves, keys, width, i, -1)
        if i == leaves - 1:
            if leaves == 1:
                parent[0] = -1
            continue
        ahead, behind = alike(leaves, keys, width, i, i + 1), alike(leaves, keys, width, i, i - 1)
        d, least = (1, behind) if ahead > behind else (-1, ahead)
        bound = 2
        while alike(leaves, keys, width, i, i + bound * d) > least:
            bound *= 2
        length, step = 0, bound // 2
        while step:
            if alike(leaves, keys, width, i, i + (length + step) * d) > least:
                length += step
            step //= 2
        j = i + length * d
        first, last = min(i, j), max(i, j)
        shared = alike(leaves, keys, width, first, last)
        split, step = first, last - first
        while step > 1:
            step = (step + 1) // 2
            if split + step < last and alike(leaves, keys, width, first, split + step) > shared:
                split += step
        left = ~split if split == first else split
        right = ~last if split + 1 == last else split + 1
        other_end[i] = j
        way[4 * i], way[4 * i + 1] = left, node_beyond(leaves, keys, width, last, 1)
        way[4 * i + 2], way[4 * i + 3] = right, node_beyond(leaves, keys, width, first, -1)
        for child in (left, right):
            parent[child if child >= 0 else leaves - 1 + ~child] = i
        if i == 0:
            parent[0] = -1


@register_jitable(forceinline=True)
def place_of(leaves, node):
    """Where the box of a node or a leaf stands among all."""
    return node if node >= 0 else leaves - 1 + ~node


@register_jitable
def merge(leaves, node, way, box):
    """The box of a node from those of its children."""
    left, right = place_of(leaves, way[4 * node]), place_of(leaves, way[4 * node + 2])
    for axis in range(box.shape[1]):
        box[2 * node, axis] = min(box[2 * left, axis], box[2 * right, axis])
        box[2 * node + 1, axis] = max(box[2 * left + 1, axis], box[2 * right + 1, axis])


@kernel(parallel=True)
def fit(leaves, n, width, parts, pos, way, other_end, parent, visits, box):
    """Boxes from the leaves up: in parts of the leaves at once, then what spans several of them."""
    for item in numba.prange(parts):
        part = np.int64(item)
        begin, end = part * leaves // parts, (part + 1) * leaves // parts
        for leaf in range(begin, end):
            place = leaves - 1 + leaf
            for axis in range(pos.shape[1]):
                low, high = pos[leaf * width, axis], pos[leaf * width, axis]
                for i in range(leaf * width + 1, min(n, (leaf + 1) * width)):
                    low, high = min(low, pos[i, axis]), max(high, pos[i, axis])
                box[2 * place, axis], box[2 * place + 1, axis] = low, high
            node = parent[place]
            while node >= 0 and min(node, other_end[node]) >= begin and max(node, other_end[node]) < end:
                visits[node] += 1
                if visits[node] < 2:
                    break
                merge(leaves, node, way, box)
                node = parent[node]
    spanning, length, count = np.empty(DEEPEST * parts, np.int32), np.empty(DEEPEST * parts, np.int32), 0
    for part in range(1, parts):
        node = parent[leaves - 1 + part * leaves // parts] if leaves > 1 else -1
        while node >= 0:
            if visits[node] == 0:
                visits[node] = 2
                spanning[count], length[count] = node, abs(node - other_end[node])
                count += 1
            node = parent[node]
    for k in np.argsort(length[:count]):  # a child is shorter
        merge(leaves, spanning[k], way, box)
