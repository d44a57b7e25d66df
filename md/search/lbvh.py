"""A walk through a tree of boxes for every particle: those whose box is out of reach are passed by.

The particles are sorted along a curve, of which `md.tree` makes the tree.
"""

import numba
import numpy as np
from numba.extending import overload, register_jitable

from md.backend.jit import kernel
from md.backend.prelude import displacement, dot, finish, load, zero
from md.counts import require_count
from md.laws.pair import interact
from md.search.strategy import Plan, Search
from md.tree import WIDTH, Tree, halving, place_of
from sfc import Curve

REBUILD_EVERY = 16  # fused steps


class Lbvh(Search):
    """A linear bounding volume hierarchy, walked without a stack from each leaf to the right and to the left.

    A particle near a periodic side walks from the root for each of its images that may have somebody in
    reach. Each pair is met twice, once from either particle, so that a step repeats bit for bit.

    Fused steps sort the particles and link the tree every few steps only; the boxes are found anew at each,
    so that no pair is missed however far particles have moved: an old tree is slower, not wrong. Other steps
    sort and link each time.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        width: particles of a leaf.
        rebuild_every: fused steps from one sort to the next; 1 for at each.

    Raises:
        ValueError: a width or a number of steps that is no integer of at least 1.
    """

    name = "lbvh"
    sorts_data = True

    def __init__(
        self, cell_order: str | Curve = "morton", width: int = WIDTH, rebuild_every: int = REBUILD_EVERY
    ):
        require_count(f"width = {width!r}", width, "particle")
        require_count(f"Lbvh(rebuild_every={rebuild_every!r})", rebuild_every)
        self.cell_order, self.width, self.rebuild_every = cell_order, width, rebuild_every

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """The curves that halve their cubes."""
        return halving(dim)

    def _allocate(self) -> None:
        grid = self.grid
        self.tree = Tree(self.particles.n, grid, self.backend, self.cell_order, self.width)
        real = grid.precision
        reach = grid.cutoff + 8 * np.finfo(real).eps * max(grid.box.lengths)  # of an image's place, rounded
        self._reach = np.zeros(
            1, np.dtype([("reach", real), ("reach2", real), ("width", np.int32)], align=True)
        )
        self._reach["reach"], self._reach["reach2"], self._reach["width"] = reach, reach**2, self.width
        self.forget()

    def forget(self) -> None:
        """Sort before the next step."""
        self._age = self.rebuild_every

    def build(self) -> None:
        """Sort the particles along the curve, move them there, and link the tree, where that is due."""
        if self._age >= self.rebuild_every:
            self.tree.build(self.particles)

    def renew(self) -> None:
        """Sort and link."""
        self.tree.build(self.particles)

    def plan(self) -> Plan:
        """As many steps as until the next sort."""
        build = self._age >= self.rebuild_every
        return Plan(self.rebuild_every - (0 if build else self._age), build, rebuild=False)

    def took(self, plan: Plan) -> None:
        """The tree has grown older."""
        self._age = plan.steps + (0 if plan.build else self._age)

    def _structure(self):
        return self.tree.box, self.tree.way, self.tree.after, self.tree.before, self._reach

    def _fold(self, law, parameters, out) -> None:
        self.tree.fit(self.particles)
        super()._fold(law, parameters, out)


@register_jitable(forceinline=True)
def is_needed(grid, r, image, reach):
    """Whether r has somebody in reach of that image of it; of its digits 1 is up a length, 2 down."""
    for axis in range(len(r)):
        digit = image % 3
        image //= 3
        if digit != 0:
            close = r[axis] < reach if digit == 1 else r[axis] > grid.length[axis] - reach
            if grid.periodic[axis] == 0 or not close:
                return False
    return True


@register_jitable(forceinline=True)
def is_nearest(grid, a, b, image):
    """Whether `displacement` of a and b is that to this image of a, so that two images meet nobody twice."""
    for axis in range(len(a)):
        d = a[axis] - b[axis]
        right = 2 if d > grid.half[axis] else (1 if d < -grid.half[axis] else 0)
        if image % 3 != right:
            return False
        image //= 3
    return True


@register_jitable(forceinline=True)
def moved(grid, axis, x, digit):
    """A coordinate of an image."""
    if digit == 0:
        return x
    return x + grid.length[axis] if digit == 1 else x - grid.length[axis]


def image_of(grid, r, image):
    """A position moved by up to a length along each axis."""
    raise NotImplementedError


def gap2(r, low, high):
    """Square of the distance from a position to a box."""
    raise NotImplementedError


@overload(image_of, jit_options={"forceinline": True})
def _image_of(grid, r, image):
    if r.count == 2:
        return lambda grid, r, image: (
            moved(grid, 0, r[0], image % 3),
            moved(grid, 1, r[1], image // 3),
        )
    return lambda grid, r, image: (
        moved(grid, 0, r[0], image % 3),
        moved(grid, 1, r[1], image // 3 % 3),
        moved(grid, 2, r[2], image // 9),
    )


@register_jitable(forceinline=True)
def outside(x, low, high):
    """How far a coordinate is from an interval."""
    return max(max(low - x, x - high), x - x)


@overload(gap2, jit_options={"forceinline": True})
def _gap2(r, low, high):
    if r.count == 2:

        def gap2_2d(r, low, high):
            x, y = outside(r[0], low[0], high[0]), outside(r[1], low[1], high[1])
            return x * x + y * y

        return gap2_2d

    def gap2_3d(r, low, high):
        x, y = outside(r[0], low[0], high[0]), outside(r[1], low[1], high[1])
        z = outside(r[2], low[2], high[2])
        return x * x + y * y + z * z

    return gap2_3d


@register_jitable(forceinline=True)
def is_at_side(grid, r, reach):
    """Whether somebody in reach may be across a periodic side."""
    found = False
    for axis in range(len(r)):
        x = r[axis]
        found |= grid.periodic[axis] != 0 and (x < reach or x > grid.length[axis] - reach)
    return found


@register_jitable(forceinline=True)
def near(r, place, box, grid, reach2):
    """Whether the box at a place among all is in reach of a position."""
    return gap2(r, load(box, 2 * place, grid), load(box, 2 * place + 1, grid)) < reach2


@register_jitable(forceinline=True)
def meet(n, pos, vel, width, grid, law, asks, leaf, i, ri, vi, image, acc):
    """Fold the law over the particles of a leaf; where it asks, those to whom this image of i is nearest."""
    for j in range(leaf * width, min(n, (leaf + 1) * width)):
        rj = load(pos, j, grid)
        if j != i and (not asks or is_nearest(grid, ri, rj, image)):
            dr = displacement(grid, ri, rj)
            acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    return acc


@register_jitable
def walk(n, pos, vel, box, way, beyond, backward, far, grid, law, asks, node, whom, acc):
    """Fold it over the leaves that a walk from a node finds in reach of a position."""
    leaves, (i, ri, vi, at, image) = len(beyond), whom
    while node != leaves:
        seen = near(at, place_of(leaves, node), box, grid, far.reach2)
        if node >= 0:
            node = way[4 * node + 2 * backward + (0 if seen else 1)]
            continue
        leaf = np.int64(~node)
        node = beyond[leaf]
        if seen:
            acc = meet(n, pos, vel, far.width, grid, law, asks, leaf, i, ri, vi, image, acc)
    return acc


@kernel(parallel=True)
def force(n, pos, vel, box, way, after, before, reach, grid, law, out):
    """out[i] = the law folded over its leaf, all that walks to either side come to, and for images."""
    for item in numba.prange(n):
        i, g, far = np.int64(item), grid[0], reach[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        asks = is_at_side(g, ri, far.reach)
        own, root = i // np.int64(far.width), 0 if len(after) > 1 else ~0
        acc = meet(n, pos, vel, far.width, g, law, asks, own, i, ri, vi, 0, zero(ri))
        for turn in range(1 + 3 ** len(ri) if asks else 2):  # to the right, to the left, and for each image
            image, backward = max(0, turn - 1), 1 if turn == 1 else 0
            if is_needed(g, ri, image, far.reach):
                at, beyond = image_of(g, ri, image), before if backward else after
                node = beyond[own] if image == 0 else root
                whom = i, ri, vi, at, image
                acc = walk(n, pos, vel, box, way, beyond, backward, far, g, law, asks, node, whom, acc)
        finish(out, g, i, ri, vi, acc)
