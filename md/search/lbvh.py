"""A walk through a tree of boxes for every particle: those whose box is out of reach are passed by.

The particles are sorted along a curve, of which `md.tree` makes the tree.
"""

import numba
import numpy as np
from numba.extending import register_jitable

from md.backend.base import Array
from md.backend.jit import kernel
from md.backend.prelude import displacement, dot, finish, load, zero
from md.counts import require_count
from md.curvekeys import halving
from md.images import image_of, is_nearest, is_needed, needs_images
from md.laws.pair import interact
from md.search.strategy import Plan, Search
from md.tree import Tree, gap2
from sfc import Curve
from sfc.cache import AccessStream

REBUILD_EVERY = 16  # steps


class Lbvh(Search):
    """A linear bounding volume hierarchy, walked without a stack by each particle from the root.

    A particle near a periodic side walks once more for each of its images that may have somebody in reach.
    Each pair is met twice, once from either particle, so that a step repeats bit for bit.

    The particles are sorted and the tree is linked every few steps only; the boxes are found anew at each, so
    that no pair is missed however far particles have moved: an old tree is slower, not wrong.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        rebuild_every: steps from one sort to the next; 1 for at each.

    Raises:
        ValueError: a number of steps that is no integer of at least 1.
    """

    name = "lbvh"
    sorts_data = True

    def __init__(self, cell_order: str | Curve = "morton", rebuild_every: int = REBUILD_EVERY):
        require_count(f"Lbvh(rebuild_every={rebuild_every!r})", rebuild_every)
        self.cell_order, self.rebuild_every = cell_order, rebuild_every

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """The curves that halve their cubes."""
        return halving(dim)

    def _allocate(self) -> None:
        grid, real = self.grid, self.grid.precision
        self.tree = Tree(self.particles.n, grid, self.backend, self.cell_order)
        reach = grid.cutoff + 8 * np.finfo(real).eps * max(grid.box.lengths)  # of an image's place, rounded
        fields = [(name, real) for name in ("reach", "reach2", "leaf2")]
        self._reach = np.array([(reach, reach**2, reach**2)], np.dtype(fields, align=True))
        self._in_place = self.backend.empty(0, np.int32)
        self.forget()

    def forget(self) -> None:
        """Sort before the next step."""
        self._age = self.rebuild_every

    def build(self) -> None:
        """Sort the particles along the curve, move them there, and link the tree, where that is due."""
        if self._age >= self.rebuild_every:
            self.renew()
            self._age = 0

    def renew(self) -> None:
        """Sort and link."""
        self.tree.build(self.particles.pos)
        self.particles.permute(self.tree.keys.order)

    def plan(self) -> Plan:
        """As many steps as until the next sort."""
        build = self._age >= self.rebuild_every
        return Plan(self.rebuild_every - (0 if build else self._age), build, rebuild=False)

    def took(self, plan: Plan) -> None:
        """The tree has grown older."""
        self._age = plan.steps + (0 if plan.build else self._age)

    def stepped(self) -> None:
        """The tree has grown older."""
        self._age += 1

    @property
    def boxes(self) -> tuple[Array, Array, Array]:
        """Of the tree."""
        return self.tree.nodes, self.tree.way, self._in_place

    def _structure(self):
        return self.tree.nodes, self.tree.way, self._reach

    def _collect(self, reach2: float) -> AccessStream:
        """Of all leaves that a walk sees: what it reads of one is where its particle is."""
        kept = self._reach.copy()
        self._reach["leaf2"] = np.inf
        try:
            return super()._collect(reach2)
        finally:
            self._reach[...] = kept

    def _fold(self, law, parameters, out) -> None:
        self.tree.fit(self.particles.pos)
        super()._fold(law, parameters, out)


@register_jitable
def walk(n, pos, vel, nodes, way, grid, far, law, asks, whom, acc):
    """Fold the law over all leaves in reach of a position: that of i, or of its image."""
    (i, ri, vi, at, image), node = whom, 0
    while node >= 0:
        low = load(nodes, 2 * node, grid)
        j = node - (n - 1)
        near = gap2(at, low, load(nodes, 2 * node + 1, grid)) < (far.reach2 if j < 0 else far.leaf2)
        node = np.int64(way[2 * node + (0 if near else 1)])
        if near and j >= 0 and j != i:
            rj = load(pos, j, grid)
            if not asks or is_nearest(grid, ri, rj, low, image):
                dr = displacement(grid, ri, rj)
                acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    return acc


@kernel(parallel=True)
def force(n, pos, vel, nodes, way, reach, grid, law, out):
    """out[i] = the law folded over what walks for the particle and for its images come to."""
    for item in numba.prange(n):
        i, g, far = np.int64(item), grid[0], reach[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        low, high = load(nodes, 0, g), load(nodes, 1, g)
        asks, acc = needs_images(g, ri, low, high, far.reach), zero(ri)
        for image in range(3 ** len(ri) if asks else 1):
            if is_needed(g, ri, image, low, high, far.reach):
                whom = i, ri, vi, image_of(g, ri, image), image
                acc = walk(n, pos, vel, nodes, way, g, far, law, asks, whom, acc)
        finish(out, g, i, ri, vi, acc)
