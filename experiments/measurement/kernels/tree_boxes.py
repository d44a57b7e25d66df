"""Boxes of a tree that are merged again and again, with the fence between a box and the flag or without it.

`experiments.contacts` says what races without the fence. The kernels are those of `md.search.bvh.tree`.
"""

import numpy as np

import md
from md.backend import Backend
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.bvh.tree import Tree

STARTS = ("leaves", "blocks")
KERNELS = "md.search.bvh.tree"
FAR = 1e30  # d: corners of the boxes before a build


class Boxes:
    """Boxes of a tree over random spheres, which are built again and again.

    Args:
        n: number of spheres, at least 2.
        dim: 2 or 3.
        seed: of their positions and radii.
        backend: of the tree.

    Attributes:
        tree: with the right boxes, before the first `build`.
        right: (2 (n - 1), dim) lower and upper corner of each inner node, computed on the host.
    """

    def __init__(self, n: int, dim: int, seed: list[int], backend: Backend):
        generator, precision = np.random.default_rng(seed), np.dtype(np.float32)
        box = md.Box((n ** (1 / dim) + 4.0,) * dim)
        pos = generator.random((n, dim)) * box.lengths
        particles = ParticleArrays(md.State(pos, np.zeros_like(pos), box), precision, backend)
        self._n, self._dim, self._backend, self._pos = n, dim, backend, particles.pos
        self._radius = backend.upload(generator.uniform(0.1, 0.5, n).astype(precision))
        self._grid = CellGrid(box, 1.0, precision, backend)
        self.tree = Tree(n, self._grid, backend)
        self.tree.build(self._pos)
        self.tree.fit(self._pos, self.tree.keys.order, self._radius)
        self._visits, self._stopped = backend.empty(n - 1, np.int32), backend.empty(n, np.int32)
        self._leaves = backend.upload(np.arange(n - 1, 2 * n - 1, dtype=np.int32))
        host = backend.download(self.tree.nodes)[2 * (n - 1) :, :dim]
        first = np.arange(n - 1)
        end = backend.download(self.tree.other_end)
        self.right = bounds_of_ranges(host[::2], host[1::2], np.minimum(first, end), np.maximum(first, end))
        self._right = backend.upload(self.right)
        self._ropes = backend.download(self.tree.ropes)

    def build(self, start: str, fence: bool) -> None:
        """Compute the boxes of all inner nodes.

        Args:
            start: one of `STARTS`.
            fence: whether the kernel has its fences.
        """
        tree, inner = self.tree, 2 * (self._n - 1)
        tree.nodes[:inner:2], tree.nodes[1:inner:2] = -FAR, FAR
        self._backend.fill(self._visits, 0)
        if start == "blocks":
            spheres = self._pos, self._radius, np.float32(1), tree.keys.order
            links = tree.ropes, tree.other_end, tree.parent, self._visits
            out = self._grid.record, tree.nodes, self._stopped
            self._backend.kernels(KERNELS).fit_parts(
                self._n, self._backend.workers, 1, *spheres, *links, *out
            )
        stopped = self._stopped if start == "blocks" else self._leaves
        kernels = self._backend.kernels(KERNELS, constants=None if fence else {"NO_FENCE": 1})
        kernels.fit_spanning(self._n, self._pos, stopped, tree.ropes, tree.parent, self._visits, tree.nodes)

    def wrong(self) -> np.ndarray:
        """Return the inner nodes with a wrong box, in ascending order."""
        differ = self.tree.nodes[: 2 * (self._n - 1), : self._dim] != self._right
        of_node = differ.reshape(self._n - 1, -1).any(axis=1)
        return np.flatnonzero(self._backend.download(of_node)) if bool(of_node.any()) else np.empty(0, int)

    def races(self, wrong: np.ndarray) -> int:
        """Count the wrong nodes with two right children."""
        left = self._ropes[2 * wrong]
        right = self._ropes[2 * left + 1]
        return int((~np.isin(left, wrong) & ~np.isin(right, wrong)).sum())


def bounds_of_ranges(low: np.ndarray, high: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Compute the bounds of the leaves first .. last of each inner node.

    Args:
        low: (n, dim) lower corners of the leaves' boxes.
        high: (n, dim) upper corners.
        first: (n - 1,) first leaf of each inner node.
        last: (n - 1,) last leaf, included.

    Returns:
        (2 (n - 1), dim) lower and upper corner of each.
    """
    found = np.empty((2 * len(first), low.shape[1]), low.dtype)
    ends = np.column_stack([first, last + 1]).ravel()
    for rows, corners, bound in ((found[::2], low, np.minimum), (found[1::2], high, np.maximum)):
        padded = np.vstack([corners, corners[-1:]])  # an end may be n, which `reduceat` does not take
        rows[:] = bound.reduceat(padded, ends)[::2]
    return found
