"""A linear bounding volume hierarchy: a binary tree over particles along a curve, walked without a stack.

Karras, Maximizing parallelism in the construction of BVHs, octrees, and k-d trees, HPG (2012): inner node i
is one end of a range of particles, whose other end and split follow from the sorted keys alone; equal keys
are told apart by their places. Boxes are merged from the leaves up, by whoever comes to a node second. What
follows a subtree in depth-first order follows from where its range ends (Prokopenko and Lebrun-Grandie,
Revising Apetrei's bounding volume hierarchy construction algorithm to allow stackless traversal, ORNL
(2024)), so that a walk needs no stack that could overflow.

A leaf is a particle. Nodes are numbered: n - 1 inner ones, then the leaf of each particle; 0 is the root, and
-1 the end of a walk.
"""

from __future__ import annotations

import numba
import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.particles.cell_grid import CellGrid
from md.search.bvh.curve_keys import CurveKeys
from sfc import Curve
from sfc.compile import callee, inlined, kernel, overload

MOST = 2**29  # particles
ROW = 4  # numbers of a corner of a node's box; a device keeps where a walk goes in the last


class Tree:
    """The tree over some particles, with its buffers.

    A particle that goes out at a periodic side and comes in at the other stays in the tree where it went out,
    until the next `build` or half a length on: boxes may reach out of the box.

    Args:
        n: number of particles.
        grid: their box, precision and cutoff.
        backend: where they live.
        curve: along which they are sorted: a name of `sfc.curves(dim)` or a curve, of base 2; the source's
            is Morton's.

    Attributes:
        keys: `md.search.bvh.curve_keys.CurveKeys`, sorted; its `order` is the slot in which the particle of each leaf was
            when the tree was built.
        other_end: (n - 1,) int32 the leaf at the other end of the range of inner node i, of which i is one.
        way: (2 (2n - 1),) int32 of each node, in turn: where a walk goes that enters it, which of an inner
            node is its left child; and where one that does not, which of a left child is the right one.
        parent: (2n - 1,) int32 node above each; -1 above the root.
        nodes: (2 (2n - 1), 4) lower and upper corner of the box of each node, of centres or of spheres,
            in d; what stands in the last entries is a device's own.

    Raises:
        ValueError: a curve that is unknown, of another dimension or of another base, or too many particles.
    """

    def __init__(self, n: int, grid: CellGrid, backend: Backend, curve: str | Curve = "morton"):
        if n > MOST:
            raise ValueError(
                f"a tree of {n} particles; allowed: up to {MOST}, whose nodes' rows int32 counts"
            )
        inner, all_ = max(n - 1, 0), max(2 * n - 1, 0)
        self._n, self._grid, self._backend = n, grid, backend
        self.keys = CurveKeys(n, grid, backend, curve)
        self.other_end, self.way = backend.empty(inner, np.int32), backend.empty(2 * all_, np.int32)
        self.parent, self._visits = backend.empty(all_, np.int32), backend.empty(inner, np.int32)
        self.nodes = backend.zeros((2 * all_, ROW), grid.precision)
        self._in_place, self._stopped = backend.empty(0, np.int32), backend.empty(n, np.int32)
        self._is_new, self._points = True, backend.empty(0, grid.precision)

    @property
    def depth(self) -> int:
        """Nodes from the root to a leaf, at most: one for each bit of key and place that tells two apart."""
        return min(self._n, self.keys.key_bits + max(self._n - 1, 1).bit_length() + 1)

    def build(self, pos: Array) -> None:
        """Sort the particles along the curve, by name only, and link the tree of them; by launches alone.

        Args:
            pos: (n, dim) positions in d; they stay where they are.
        """
        if self._n == 0:
            return
        self.keys.sort(pos)
        links, kernels = (self.other_end, self.way, self.parent), self._backend.kernels(__name__)
        kernels.link(self._n, self.keys.key_bits, self.keys.keys, *links)
        self._is_new = True

    def fit(
        self, pos: Array, order: Array | None = None, radius: Array | None = None, scale: float = 1.0
    ) -> None:
        """Find the boxes of the particles where they are now, however far they have moved since `build`.

        Between two calls no particle may move by half a length of the box or more.

        Args:
            pos: (n, dim) positions in d.
            order: (n,) int32 slot of the particle of each leaf; None where `pos` is in the order of leaves.
            radius: (n,) in d, in the order of `pos`, for boxes of spheres; None or (0,) for those of
                centres. The next call may say otherwise.
            scale: of the radii.
        """
        if self._n == 0:
            return
        self._backend.fill(self._visits, 0)
        slots = self._in_place if order is None else order
        spread = (self._points if radius is None else radius), self._grid.precision.type(scale)
        tree, boxes = (self.way, self.other_end, self.parent, self._visits), (self._grid.record, self.nodes)
        anew = self._is_new or not any(self._grid.box.periodic)  # nobody went out and came in
        kernels, part = self._backend.kernels(__name__), (self._backend.workers, int(anew))
        kernels.fit_parts(self._n, *part, pos, *spread, slots, *tree, *boxes, self._stopped)
        kernels.fit_spanning(self._n, pos, self._stopped, self.way, self.parent, self._visits, self.nodes)
        self._is_new = False


@callee
def leading_zeros(word):
    """Of a 64-bit word; 64 of 0."""
    zeros, width = 64, 32
    while width:
        if word >> np.uint64(width):
            zeros -= width
            word >>= np.uint64(width)
        width //= 2
    return zeros - np.int64(word)


@callee
def alike(n, keys, i, j):
    """Leading bits that two keys share, and if all then their places; -1 beyond an end."""
    if j < 0 or j >= n:
        return -1
    differ = np.uint64(keys[i]) ^ np.uint64(keys[j])
    return leading_zeros(differ) if differ else 64 + leading_zeros(np.uint64(i ^ j))


@callee
def node_beyond(n, keys, leaf):
    """What a walk meets after a subtree whose range ends with a leaf.

    It is the child that begins with the next leaf, for both ranges end where a node is split.
    """
    end = leaf + 1
    if end == n:
        return -1
    return end if alike(n, keys, end, end + 1) > alike(n, keys, end, leaf) else n - 1 + end


@kernel(parallel=True)
def link(n, key_bits, keys, other_end, way, parent):
    """Range and children of every inner node, and what follows each node; a device asks how wide keys are."""
    for item in numba.prange(n):
        i = np.int64(item)  # prange counts without a sign
        after = node_beyond(n, keys, i)
        way[2 * (n - 1 + i)], way[2 * (n - 1 + i) + 1] = after, after
        if i == n - 1:
            if n == 1:
                parent[0] = -1
            continue
        ahead, behind = alike(n, keys, i, i + 1), alike(n, keys, i, i - 1)
        d, least = (1, behind) if ahead > behind else (-1, ahead)
        bound = 2
        while alike(n, keys, i, i + bound * d) > least:
            bound *= 2
        length, step = 0, bound // 2
        while step:
            if alike(n, keys, i, i + (length + step) * d) > least:
                length += step
            step //= 2
        j = i + length * d
        first, last = min(i, j), max(i, j)
        shared = alike(n, keys, first, last)
        split, step = first, last - first
        while step > 1:
            step = (step + 1) // 2
            if split + step < last and alike(n, keys, first, split + step) > shared:
                split += step
        left = n - 1 + split if split == first else split
        right = n - 1 + last if split + 1 == last else split + 1
        other_end[i] = j
        way[2 * i], way[2 * i + 1] = left, node_beyond(n, keys, last)
        parent[left], parent[right] = i, i
        if i == 0:
            parent[0] = -1


@callee
def merge(dim, node, way, nodes):
    """The box of a node from those of its children."""
    left = way[2 * node]
    right = way[2 * left + 1]
    for axis in range(dim):
        nodes[2 * node, axis] = min(nodes[2 * left, axis], nodes[2 * right, axis])
        nodes[2 * node + 1, axis] = max(nodes[2 * left + 1, axis], nodes[2 * right + 1, axis])


@callee
def where_it_went_out(grid, axis, x, before):
    """A coordinate, or its image if it came in at the other side; at most half a length out of the box."""
    half = grid.half[axis]
    shift = x - x
    if x - before > half:
        shift = -grid.image[axis]
    elif x - before < -half:
        shift = grid.image[axis]
    there = x + shift
    return there if -half <= there <= grid.length[axis] + half else x


@kernel(parallel=True)
def fit_parts(
    n, parts, is_new, pos, radius, scale, order, way, other_end, parent, visits, grid, nodes, stopped
):
    """Boxes from the leaves up in parts of the leaves at once.

    A particle is in the middle of its leaf's box: by that one knows where in the tree it was before.
    stopped[leaf] is the node from whose parent on, which spans several parts, somebody is to go on; else -1.
    """
    dim = pos.shape[1]
    for item in numba.prange(parts):
        g, part = grid[0], np.int64(item)
        begin, end = part * n // parts, (part + 1) * n // parts
        for leaf in range(begin, end):
            i = np.int64(order[leaf]) if len(order) else leaf
            row, spread = 2 * (n - 1 + leaf), scale - scale  # of the run's precision
            if len(radius):
                spread = scale * radius[i]
            for axis in range(dim):
                x = pos[i, axis]
                if is_new == 0:
                    before = (nodes[row, axis] + nodes[row + 1, axis]) / 2  # where the two are one, that
                    x = where_it_went_out(g, axis, x, before)
                nodes[row, axis], nodes[row + 1, axis] = x - spread, x + spread
            stopped[leaf] = -1
            child = n - 1 + leaf
            node = np.int64(parent[child])
            while node >= 0:
                if min(node, other_end[node]) < begin or max(node, other_end[node]) >= end:
                    stopped[leaf] = child
                    break
                visits[node] += 1
                if visits[node] < 2:
                    break
                merge(dim, node, way, nodes)
                child, node = node, np.int64(parent[node])


@kernel
def fit_spanning(n, pos, stopped, way, parent, visits, nodes):
    """Those of the nodes that span several parts."""
    for leaf in range(n):
        node = parent[stopped[leaf]] if stopped[leaf] >= 0 else -1
        while node >= 0:
            visits[node] += 1
            if visits[node] < 2:
                break
            merge(pos.shape[1], node, way, nodes)
            node = parent[node]


def gap2(r, low, high):
    """Square of the distance from a position to a box."""
    raise NotImplementedError


@inlined
def apart(x, low, high):
    """How far a coordinate is from an interval."""
    return max(max(low - x, x - high), x - x)


@overload(gap2)
def _gap2(r, low, high):
    if r.count == 2:

        def gap2_2d(r, low, high):
            x, y = apart(r[0], low[0], high[0]), apart(r[1], low[1], high[1])
            return x * x + y * y

        return gap2_2d

    def gap2_3d(r, low, high):
        x, y = apart(r[0], low[0], high[0]), apart(r[1], low[1], high[1])
        z = apart(r[2], low[2], high[2])
        return x * x + y * y + z * z

    return gap2_3d
