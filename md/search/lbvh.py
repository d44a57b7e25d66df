"""A walk through a tree of boxes for every particle: those whose box is out of reach are passed by.

The particles are sorted along a curve and the tree is built anew at every step (`md.tree`).
"""

import numba
import numpy as np
from numba.extending import overload, register_jitable

from md.backend.jit import kernel
from md.backend.prelude import displacement, dot, finish, load, zero
from md.laws.pair import interact
from md.search.strategy import Search
from md.tree import Tree, halving
from sfc import Curve


class Lbvh(Search):
    """A linear bounding volume hierarchy, walked without a stack from each leaf to the right and to the left.

    A walk from the root would come to most of the nodes on the way to the leaf twice. A particle near a
    periodic side walks from the root for each of its images that may have somebody in reach. Each pair is
    met twice, once from either particle, so that a step repeats bit for bit.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
    """

    name = "lbvh"
    sorts_data = True

    def __init__(self, cell_order: str | Curve = "morton"):
        self.cell_order = cell_order

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """The curves that halve their cubes."""
        return halving(dim)

    def _allocate(self) -> None:
        grid = self.grid
        self.tree = Tree(self.particles.n, grid, self.backend, self.cell_order)
        real = grid.precision
        reach = grid.cutoff + 8 * np.finfo(real).eps * max(grid.box.lengths)  # of an image's place, rounded
        self._reach = np.zeros(1, np.dtype([("reach", real), ("reach2", real)], align=True))
        self._reach["reach"], self._reach["reach2"] = reach, reach**2

    def build(self) -> None:
        """Sort the particles along the curve, move them there, and make the tree."""
        self.tree.build(self.particles)

    def _structure(self):
        return self.tree.box, self.tree.way, self.tree.after, self.tree.before, self._reach


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


@kernel(parallel=True)
def force(n, pos, vel, box, way, after, before, reach, grid, law, out):
    """out[i] = the law folded over all that walks from leaf i to either side, and for images, come to."""
    for i in numba.prange(n):
        g, far = grid[0], reach[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = zero(ri)
        several = is_at_side(g, ri, far.reach)
        for backward in range(2):
            node = before[i] if backward else after[i]
            while node != n:
                if node >= 0:
                    near = gap2(ri, load(box, 2 * node, g), load(box, 2 * node + 1, g)) < far.reach2
                    node = way[4 * node + 2 * backward + (0 if near else 1)]
                    continue
                j = ~node
                node = before[j] if backward else after[j]
                rj = load(pos, j, g)
                if not several or is_nearest(g, ri, rj, 0):
                    dr = displacement(g, ri, rj)
                    acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        for image in range(1, 3 ** len(ri) if several else 1):
            if not is_needed(g, ri, image, far.reach):
                continue
            at = image_of(g, ri, image)
            node = 0 if n > 1 else ~0
            while node != n:
                if node >= 0:
                    near = gap2(at, load(box, 2 * node, g), load(box, 2 * node + 1, g)) < far.reach2
                    node = way[4 * node + (0 if near else 1)]
                    continue
                j = ~node
                node = after[j]
                rj = load(pos, j, g)
                if j != i and is_nearest(g, ri, rj, image):
                    dr = displacement(g, ri, rj)
                    acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        finish(out, g, i, ri, vi, acc)
