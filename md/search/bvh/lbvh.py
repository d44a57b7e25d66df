"""Linear bounding volume hierarchy: each particle traverses a tree of boxes and skips those out of reach.

The particles are sorted along a curve; `md.search.bvh.tree` builds the tree on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from md.backend.base import Array
from md.particles.capabilities import SearchCapabilities
from md.particles.system import System
from md.search.bvh.base import REBUILD_EVERY, BinaryTreeSearch, TreeConfig
from md.search.bvh.pair_forces import gather_leaf
from sfc import Curve
from sfc.compile import inlined, kernel


@dataclass(frozen=True)
class Lbvh(TreeConfig):
    """Linear bounding volume hierarchy, traversed without a stack by each particle from the root.

    A particle near a periodic side traverses the tree again for each of its images that may have partners.
    Each pair is found twice, once from either particle, so that a step repeats bit for bit.

    If particles differ in radius, boxes enclose whole spheres and each particle searches within its own
    radius. A few large spheres then do not widen the search of all others, as they do with cells, which have
    to be as wide.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        rebuild_every: steps from one sort to the next; 1 sorts at every step.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a number of steps that is no integer.
        ValueError: a number of steps below 1.
    """

    name = "lbvh"
    capabilities = SearchCapabilities(fusable=True, capturable=True, moves_particles=True)
    cell_order: str | Curve = "morton"
    rebuild_every: int = REBUILD_EVERY

    def build(self, system: System) -> LbvhSearch:
        """Make the search for a system.

        Raises:
            ValueError: a curve of another base or dimension, or a tree that does not fit in memory.
        """
        return LbvhSearch(self, system)


class LbvhSearch(BinaryTreeSearch):
    """Search with a linear bounding volume hierarchy over the particles of a system."""

    def __init__(self, config: Lbvh, system: System):
        super().__init__(config, system)
        grid, real = self.grid, self.grid.precision
        lengths, eps, widest = max(grid.box.lengths), np.finfo(real).eps, self.particles.widest
        reach = grid.cutoff + 8 * eps * lengths  # an image's position is rounded
        slack = 16 * eps * (np.abs(grid.box.ends).max() + 2 * grid.cutoff)  # corners of boxes are rounded
        kind = np.dtype([(name, real) for name in ("reach", "reach2", "leaf2", "scale")], align=True)
        self._centres = np.array([(reach, reach**2, 0, 1)], kind)
        self._spheres = np.array([(slack, 0, 0, grid.cutoff / widest)], kind)

    def structure(self) -> tuple[Array, Array, Array, np.ndarray]:
        """Return nodes and ropes of the tree, the radii if boxes enclose spheres, and the search radii."""
        return self.tree.nodes, self.tree.ropes, *self._boxes_of()

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        """Fit the boxes of the tree to the present positions, and fold a law over the partners."""
        radius, reach = self._boxes_of()
        self.tree.fit(self.particles.pos, radius=radius, scale=float(reach["scale"][0]))
        super()._fold(law, parameters, out)


@inlined
def reach_of(radius, reach, i):
    """Return the search radius of a particle, its square for inner nodes, and its square for leaves.

    Two spheres touch if |r_i - r_j| < radius_i + radius_j. Then the point on the line between them at
    radius_j from the centre of j is in the box of j, and within radius_i of i.
    """
    if len(radius) == 0:
        return reach.reach, reach.reach2, max(reach.reach2, reach.leaf2)
    own = reach.scale * radius[i] + reach.reach
    return own, own * own, max(own * own, reach.leaf2)


@kernel(parallel=True)
def force(n, pos, vel, nodes, ropes, radius, reach, grid, law, out):
    """Compute out[i], the law folded over the leaves that traversals for a particle and its images visit."""
    for item in numba.prange(n):
        i, rows, tree = np.int64(item), (pos, vel, ropes[:0]), (nodes, ropes)
        gather_leaf(n, i, False, rows, tree, grid[0], reach_of(radius, reach[0], i), law, None, out)
