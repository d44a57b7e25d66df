"""Wide bounding volume hierarchy: blocks of particles traverse a tree of many children together.

The particles are sorted along a curve; `md.search.bvh.wide_boxes` has the tree. A block of 128 particles
(a block of threads on a device) descends level by level: all children of all nodes within reach are tested at
once. Each leaf of the block keeps those of the leaves found that are within its own reach, and its particles
are compared with theirs; if the leaf is crowded or radii differ, each particle only with those of the leaves
within its own reach. A device compares first by coordinates of one byte, as neighbour lists are built
(`md.search.lists.listing`). Queries that traverse a tree together: Wald, Boulos and Shirley, Ray tracing
deformable scenes using dynamic bounding volume hierarchies, ACM Trans. Graph. 26 (2007). Trees of many
children: Wald, Benthin and Boulos, Getting rid of packets, IEEE Symposium on Interactive Ray Tracing (2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from md.backend import OnDevice
from md.backend.prelude import displacement, dot, finish, load
from md.laws.pair import initial, interact, result
from md.particles.capabilities import SearchCapabilities
from md.particles.system import System
from md.search.base import FusedOutput
from md.search.bvh.base import REBUILD_EVERY, TreeConfig, TreeSearch
from md.search.bvh.curve_keys import CurveKeys
from md.search.bvh.wide_boxes import (
    ALL,
    LEAF,
    LEAVES,
    MOST_NEAR,
    WideBoxes,
    bound2_of,
    near_and_copied,
    near_leaves,
    near_particles,
    reaches_of,
)
from sfc import Curve
from sfc.compile import kernel


@dataclass(frozen=True)
class WideBvh(TreeConfig):
    """Wide bounding volume hierarchy, traversed by 128 particles together.

    On the CPU faster than `Lbvh`, and of the same use: particles anywhere, of any sizes, without cells. The
    tree has no links: its nodes are ranges of particles in memory. Each pair is found twice, once from either
    particle, always in the same order, so that a step repeats bit for bit.

    If particles differ in radius, boxes enclose whole spheres and each leaf of 8 particles searches within
    their radii. A few large spheres then do not widen the search of all others.

    A fused step of a device also computes the boxes of the next step. Positions that a caller writes to the
    particle arrays between such steps count from the next build on: call `search.update(force=True)`.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        rebuild_every: steps from one sort to the next; 1 sorts at every step.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a number of steps that is no integer.
        ValueError: a number of steps below 1.
    """

    name = "wide_bvh"
    capabilities = SearchCapabilities(fusable=True, capturable=True, moves_particles=True, packs=True)
    cell_order: str | Curve = "hilbert"
    rebuild_every: int = REBUILD_EVERY

    def build(self, system: System) -> WideBvhSearch:
        """Make the search for a system.

        Raises:
            ValueError: a curve of another base or dimension.
            MemoryError: not enough memory.
        """
        return WideBvhSearch(self, system)


class WideBvhSearch(TreeSearch):
    """Search with a wide bounding volume hierarchy over the particles of a system."""

    _innermost = "pair2"

    def __init__(self, config: WideBvh, system: System):
        super().__init__(config, system)
        grid, n = self.grid, self.particles.n
        narrowest = None if system.may_overlap else self.particles.narrowest
        self._keys = CurveKeys(n, grid, self.backend, config.cell_order, narrowest)
        self._tree = WideBoxes(n, grid, grid.cutoff, self.backend)
        # The law tests the cutoff itself.
        self._centres, self._spheres = reaches_of(grid, grid.cutoff, self.particles.widest)
        self._has_leaves = False
        self._is_kept = config.rebuild_every > 1

    def prepare(self, fused: bool) -> None:
        """Prepare for the steps of a run; fused steps of a device compute the boxes of the next step.

        Args:
            fused: whether steps are fused into the force kernel.

        Raises:
            MemoryError: not enough memory.
        """
        super().prepare(fused)
        if fused and self.backend.runs_ahead and self._is_kept:
            self._tree.alternate()

    def build(self) -> None:
        """Sort the particles along the curve in memory; a device computes the boxes of their leaves too."""
        if not self.particles.n:
            return
        self._keys.sort(self.particles.pos)
        gather = None
        if self.backend.runs_ahead:
            radius, reach = self._boxes_of()
            scale = float(reach["scale"][0]) if len(radius) else 0.0
            gather = self._tree.gather(self.particles.constants, scale)
        self.particles.permute(self._keys.order, gather=gather)
        self._has_leaves = gather is not None

    def reset(self) -> None:
        """Return to the state after construction: build before the next step."""
        super().reset()
        self._has_leaves = False

    @property
    def launch_state(self) -> tuple[bool, int]:
        """Whether the boxes of the leaves are those of the present positions, and which arrays have them."""
        return self._has_leaves, self._tree.turn

    @launch_state.setter
    def launch_state(self, state: Any) -> None:
        self._has_leaves, self._tree.turn = state

    def structure(self) -> tuple[Any, ...]:
        """Return the boxes and bytes of this step and of the next, and how they were made.

        In the order of `force`: boxes, bytes, levels, units, radii (if boxes enclose spheres), search radii,
        spacing of numbers, boxes and bytes of the next step, parts.
        """
        tree, (radius, reach) = self._tree, self._boxes_of()
        units = tree.units
        if self._reads_all:
            units = units.copy()
            units["most"] = ALL
        made = tree.levels, units, radius, reach, tree.eps
        return tree.boxes, tree.bytes, *made, *tree.next, 4 * self.backend.workers

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        """Fit the boxes and fold a law; a fused step also computes the boxes of leaves for the next step."""
        is_fused = isinstance(out, FusedOutput)
        (radius, reach), tree = self._boxes_of(), self._tree
        if is_fused and self._has_leaves:
            tree.fit_above(self.particles.pos)
        else:
            tree.fit(self.particles.pos, radius, float(reach["scale"][0]))
        super()._fold(law, parameters, out)
        self._has_leaves = is_fused and len(tree.next[0]) > 0
        if self._has_leaves:
            tree.turn = 1 - tree.turn


@OnDevice(threads=LEAF * LEAVES, registers=(48, 96), of_boids=(48, 96), static=(14752, 15136))
@kernel(parallel=True)
def force(
    n,
    pos,
    vel,
    boxes,
    bytes,
    levels,
    units,
    radius,
    reach,
    eps,
    next_boxes,
    next_bytes,
    parts,
    grid,
    law,
    out,
):
    """Compute out[i], the law folded over the leaves within reach of the leaf of particle i.

    `units`, `eps`, `bytes` and the arrays of the next step are those of a device; `parts` is the number of
    ranges of blocks on the CPU.
    """
    for p in numba.prange(parts):
        g, lv, rc, dim = grid[0], levels[0], reach[0], pos.shape[1]
        leaves, blocks = lv.number[0], lv.number[1]
        found, spare = np.empty(leaves, np.int32), np.empty(leaves, np.int32)
        own, near = np.empty(leaves, np.int32), np.empty(LEAF * (leaves + 1), np.int32)
        around = np.empty((dim, LEAF * MOST_NEAR), pos.dtype)
        for block in range(p * blocks // parts, (p + 1) * blocks // parts):
            count = near_leaves(dim, block, rc.reach2, g, lv, boxes, found, spare)
            for leaf in range(block * LEAVES, min((block + 1) * LEAVES, leaves)):
                kept, copied, is_alone = near_and_copied(
                    dim, n, pos, radius, g, boxes, rc, leaf, found, count, own, around
                )
                for i in range(leaf * LEAF, min((leaf + 1) * LEAF, n)):
                    ri, vi = load(pos, i, g), load(vel, i, g)
                    acc = initial(law, ri)
                    found_i = near_particles(
                        dim, n, pos, radius, g, boxes, rc, leaf, own, kept, copied, is_alone, around, i, near
                    )
                    for k in range(found_i):
                        j = near[k]
                        dr = displacement(g, ri, load(pos, j, g))
                        r2 = dot(dr, dr)
                        if r2 < bound2_of(rc, radius, i, j):
                            acc = interact(law, vel, i, j, r2, dr, vi, acc)
                    finish(out, g, i, ri, vi, result(law, ri, vi, acc))
