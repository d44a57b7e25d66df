"""Linear bounding volume hierarchy: a binary tree over sorted particles that is traversed without a stack.

Karras, Maximizing parallelism in the construction of BVHs, octrees, and k-d trees, HPG (2012): inner node i
is one end of a range of particles; the other end and the split follow from the sorted keys. Equal keys are
distinguished by their indices. Boxes are merged from the leaves up, by the second thread that arrives at a
node. The rope of a subtree, the next node in depth-first order after it, follows from the end of its range
(Prokopenko and Lebrun-Grandie, Revising Apetrei's bounding volume hierarchy construction algorithm to allow
stackless traversal, ORNL (2024)), so that a traversal needs no stack that could overflow.

A leaf is a particle. Nodes are numbered: n - 1 inner nodes, then the leaf of each particle. 0 is the root, -1
ends a traversal.
"""

from __future__ import annotations

import numba
import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.backend.prelude import zero
from md.particles.cell_grid import CellGrid
from md.search.bvh.curve_keys import WORK, CurveKeys
from sfc import Curve
from sfc.compile import callee, in_parts, inlined, kernel

MOST = 2**29  # particles
ROW = 4  # numbers of a corner of a node's box; a device stores a rope in the last


class Tree:
    """Tree over the particles of a system, with its buffers.

    A particle that leaves the box at a periodic side and enters at the other side keeps its unwrapped
    position in the tree, until the next `build` or until it is half a length outside: nodes may extend beyond
    the box.

    Args:
        n: number of particles.
        grid: box, precision and cutoff.
        backend: where the arrays are stored.
        curve: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2; in [karras2012]
            Morton.

    Attributes:
        keys: `md.search.bvh.curve_keys.CurveKeys`, sorted; its `order` is the slot in which the particle of
            each leaf was when the tree was built.
        other_end: (n - 1,) int32 leaf at the other end of the range of inner node i; i is one end.
        ropes: (2 (2n - 1),) int32, two a node: the next node of a traversal that enters it, for an inner node
            its left child; and of a traversal that skips it, for a left child its sibling.
        parent: (2n - 1,) int32 parent of each node; -1 for the root.
        nodes: (2 (2n - 1), 4) lower and upper corner of the box of each node, of centres or of spheres,
            in d; the last column is used by a device only.
        is_new: whether the tree was built, and no boxes were computed since.

    Raises:
        ValueError: a curve that is unknown, of another dimension or of another base, or too many particles.
    """

    def __init__(self, n: int, grid: CellGrid, backend: Backend, curve: str | Curve = "morton"):
        if n > MOST:
            raise ValueError(
                f"a tree of {n} particles; allowed: up to {MOST}, so that int32 numbers the rows of its nodes"
            )
        inner, all_ = max(n - 1, 0), max(2 * n - 1, 0)
        self._n, self._grid, self._backend = n, grid, backend
        self.keys = CurveKeys(n, grid, backend, curve)
        self.other_end, self.ropes = backend.empty(inner, np.int32), backend.empty(2 * all_, np.int32)
        self.parent, self._visits = backend.empty(all_, np.int32), backend.empty(inner, np.int32)
        self.nodes = backend.zeros((2 * all_, ROW), grid.precision)
        self._in_place, self._stopped = backend.empty(0, np.int32), backend.empty(n, np.int32)
        self.is_new, self._points = True, backend.empty(0, grid.precision)

    @property
    def depth(self) -> int:
        """Largest number of nodes from the root to a leaf: one for each bit of key and index."""
        return min(self._n, self.keys.key_bits + max(self._n - 1, 1).bit_length() + 1)

    def build(self, pos: Array) -> None:
        """Sort the slots of the particles along the curve, and link the tree; by kernel launches only.

        Args:
            pos: (n, dim) positions in d; not changed.
        """
        if self._n == 0:
            return
        self.keys.sort(pos)
        links, kernels = (self.other_end, self.ropes, self.parent), self._backend.kernels(__name__)
        kernels.link(self._n, self.keys.key_bits, self.keys.keys, *links)
        self.is_new = True

    def fit(
        self, pos: Array, order: Array | None = None, radius: Array | None = None, scale: float = 1.0
    ) -> None:
        """Compute the boxes of all nodes from the present positions.

        They are exact however far particles have moved since `build`.
        Between two calls no particle may move by half a length of the box or more.

        Args:
            pos: (n, dim) positions in d.
            order: (n,) int32 slot of the particle of each leaf; None or (0,) if `pos` is in their order.
            radius: (n,) in d, in the order of `pos`, for boxes of spheres; None or (0,) for boxes of
                centres. It may differ from call to call.
            scale: factor of the radii.
        """
        if self._n == 0:
            return
        self._backend.fill(self._visits, 0)
        slots = self._in_place if order is None else order
        spread = (self._points if radius is None else radius), self._grid.precision.type(scale)
        tree, boxes = (self.ropes, self.other_end, self.parent, self._visits), (self._grid.record, self.nodes)
        is_new = self.is_new or not any(self._grid.box.periodic)  # no particle was wrapped since
        kernels, part = self._backend.kernels(__name__), (self._backend.workers, int(is_new))
        kernels.fit_parts(self._n, *part, pos, *spread, slots, *tree, *boxes, self._stopped)
        kernels.fit_spanning(self._n, pos, self._stopped, self.ropes, self.parent, self._visits, self.nodes)
        self.is_new = False


@callee
def leading_zeros(word):
    """Return the number of leading zeros of a 64-bit word; 64 for 0."""
    zeros, width = 64, 32
    while width:
        if word >> np.uint64(width):
            zeros -= width
            word >>= np.uint64(width)
        width //= 2
    return zeros - np.int64(word)


@callee
def common_prefix(n, keys, i, j):
    """Return the number of leading bits that two keys share, continued in their indices if they are equal.

    -1 for an index out of range.
    """
    if j < 0 or j >= n:
        return -1
    differ = np.uint64(keys[i]) ^ np.uint64(keys[j])
    return leading_zeros(differ) if differ else 64 + leading_zeros(np.uint64(i ^ j))


@callee
def next_subtree(n, keys, leaf):
    """Return the node that a traversal takes after a subtree that ends with a leaf.

    It is the child that begins with the next leaf, because both ranges end where a node is split.
    """
    end = leaf + 1
    if end == n:
        return -1
    return end if common_prefix(n, keys, end, end + 1) > common_prefix(n, keys, end, leaf) else n - 1 + end


def link(n, key_bits, keys, other_end, ropes, parent):
    """Store range, children and parent of every node, and its ropes; only a device needs `key_bits`."""
    in_parts(lambda part: _link(part.start, part.stop, n, keys, other_end, ropes, parent), n, rows=WORK * n)


@kernel
def _link(start, stop, n, keys, other_end, ropes, parent):
    """Store what `link` does of the leaves and inner nodes start .. stop - 1."""
    for i in range(start, stop):
        after = next_subtree(n, keys, i)
        ropes[2 * (n - 1 + i)], ropes[2 * (n - 1 + i) + 1] = after, after
        if i == n - 1:
            if n == 1:
                parent[0] = -1
            continue
        ahead, behind = common_prefix(n, keys, i, i + 1), common_prefix(n, keys, i, i - 1)
        d, least = (1, behind) if ahead > behind else (-1, ahead)
        bound = 2
        while common_prefix(n, keys, i, i + bound * d) > least:
            bound *= 2
        length, step = 0, bound // 2
        while step:
            if common_prefix(n, keys, i, i + (length + step) * d) > least:
                length += step
            step //= 2
        j = i + length * d
        first, last = min(i, j), max(i, j)
        shared = common_prefix(n, keys, first, last)
        split, step = first, last - first
        while step > 1:
            step = (step + 1) // 2
            if split + step < last and common_prefix(n, keys, first, split + step) > shared:
                split += step
        left = n - 1 + split if split == first else split
        right = n - 1 + last if split + 1 == last else split + 1
        other_end[i] = j
        ropes[2 * i], ropes[2 * i + 1] = left, next_subtree(n, keys, last)
        parent[left], parent[right] = i, i
        if i == 0:
            parent[0] = -1


@callee
def merge(dim, node, ropes, nodes):
    """Merge the boxes of a node's children into its own."""
    left = ropes[2 * node]
    right = ropes[2 * left + 1]
    for axis in range(dim):
        nodes[2 * node, axis] = min(nodes[2 * left, axis], nodes[2 * right, axis])
        nodes[2 * node + 1, axis] = max(nodes[2 * left + 1, axis], nodes[2 * right + 1, axis])


@callee
def unwrapped(grid, axis, x, before):
    """Return a coordinate without the wrapping since `before`: at most half a length outside the box."""
    half = grid.half[axis]
    shift = x - x
    if x - before > half:
        shift = -grid.image[axis]
    elif x - before < -half:
        shift = grid.image[axis]
    image_x = x + shift
    return image_x if -half <= image_x <= grid.length[axis] + half else x


@kernel(parallel=True)
def fit_parts(
    n, parts, is_new, pos, radius, scale, order, ropes, other_end, parent, visits, grid, nodes, stopped
):
    """Compute boxes from the leaves up, within each part of the leaves in parallel.

    The centre of a leaf's box is the position that the particle had in the tree before. stopped[leaf] is the
    node from which `fit_spanning` continues, because its parent spans several parts; -1 if another leaf does.
    """
    dim = pos.shape[1]
    for item in numba.prange(parts):
        g, part = grid[0], np.int64(item)
        begin, end = part * n // parts, (part + 1) * n // parts
        for leaf in range(begin, end):
            i = np.int64(order[leaf]) if len(order) else leaf
            row, spread = 2 * (n - 1 + leaf), scale - scale  # in the precision of the run
            if len(radius):
                spread = scale * radius[i]
            for axis in range(dim):
                x = pos[i, axis]
                if is_new == 0:
                    before = (nodes[row, axis] + nodes[row + 1, axis]) / 2  # exact for equal corners
                    x = unwrapped(g, axis, x, before)
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
                merge(dim, node, ropes, nodes)
                child, node = node, np.int64(parent[node])


@kernel
def fit_spanning(n, pos, stopped, ropes, parent, visits, nodes):
    """Compute the boxes of the nodes that span several parts."""
    for leaf in range(n):
        node = parent[stopped[leaf]] if stopped[leaf] >= 0 else -1
        while node >= 0:
            visits[node] += 1
            if visits[node] < 2:
                break
            merge(pos.shape[1], node, ropes, nodes)
            node = parent[node]


@inlined
def gap2(r, low, high):
    """Return the square of the distance from a position to a box."""
    total = zero(r)[0]
    for axis in range(len(r)):
        x = r[axis]
        gap = max(max(low[axis] - x, x - high[axis]), x - x)
        total += gap * gap
    return total
