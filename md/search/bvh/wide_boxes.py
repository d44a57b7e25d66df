"""Boxes of a wide bounding volume hierarchy over particles that are sorted along a curve.

Nodes are ranges of particles in memory order: leaves of 8, nodes of 16 leaves, and further nodes of 32 nodes
each. So the tree needs no links, and any order of the particles gives one; along a curve its boxes are small.
Levels are numbered from the leaves, level 0.

A box is a centre and half its lengths along the axes. At periodic sides it may extend beyond the system: it
holds an image of each of its particles. Two boxes are then as far apart as their nearest images, along each
axis by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array
from md.backend.prelude import nearest
from md.particles.cell_grid import CellGrid
from md.particles.units import units_of
from md.search.bvh.curve_keys import WORK
from sfc.compile import callee, in_parts, inlined, kernel

LEAF, LEAVES, NODES = 8, 16, 32  # particles of a leaf, leaves of a node of level 1, nodes of a node above
MOST_LEVELS = 6  # for 2^31 particles
WIDEST = 128  # nodes of the uppermost level
MOST_NODES = 256  # leaves within reach of a node of level 1, or nodes on a level: of more, it is crowded
MOST_NEAR = 64  # leaves within reach of a leaf that is not crowded
ROW = 8  # numbers of a box: centre, then half its lengths from number 4 on
LEVELS = np.dtype(
    [("count", np.int32), ("first", np.int32, (MOST_LEVELS,)), ("number", np.int32, (MOST_LEVELS,))],
    align=True,
)
UNITS = 32  # of the cutoff: leaves that are compared are up to 8 cutoffs wide
ALL = 2**20  # a sum of squares of bytes that is larger than any


def levels_of(n: int) -> np.ndarray:
    """Make the record of the levels of n particles.

    Returns:
        (1,) record with `count`, the number of levels, at least 2; and for each the `first` of its rows in
        the array of boxes, and its `number` of nodes.
    """
    levels, total = np.zeros(1, LEVELS), 0
    size = LEAF
    for level in range(MOST_LEVELS):
        number = -(-n // size)
        levels["first"][0, level], levels["number"][0, level] = total, number
        total += number
        size *= LEAVES if level == 0 else NODES
        if level and number <= WIDEST:
            break
    levels["count"] = level + 1
    return levels


def reaches_of(
    grid: CellGrid, cutoff: float, widest: float, skin: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Make the records of the search radii of boxes of centres, and of boxes of spheres.

    Args:
        grid: box and precision.
        cutoff: of the law in d.
        widest: largest diameter in d.
        skin: in d, by which the search radii are larger.

    Returns:
        Two (1,) records: `reach` of two boxes in d and its square `reach2`, `scale` of the radii, and
        `pair2`, the square of the reach of two centres, or 0 for scale * (sum of the radii) + reach.
    """
    real = grid.precision.type
    # Distances of boxes are rounded by their sizes, for which boxes are wider, and by lengths of the box.
    slack = 16 * np.finfo(real).eps * (max(grid.box.lengths) + 2 * (cutoff + skin))
    kind = np.dtype([(name, real) for name in ("reach", "reach2", "scale", "pair2")], align=True)
    reach, apart = cutoff + skin + slack, skin + slack
    spheres = np.array([(apart, apart**2, cutoff / widest, 0)], kind)
    return np.array([(reach, reach**2, 1, reach**2)], kind), spheres


class WideBoxes:
    """Boxes of all nodes, computed again at each step.

    Args:
        n: number of particles.
        grid: box and precision.
        reach: largest distance of partners in d.
        backend: where the arrays are stored.

    Attributes:
        levels: record of `levels_of`.
        eps: spacing of numbers at 1, of the precision.
        units: record of `md.particles.units.units_of` for the reach.
        turn: number of the arrays in use: 0, or 0 and 1 in turn after `alternate`.
    """

    def __init__(self, n: int, grid: CellGrid, reach: float, backend: Backend):
        self._n, self._grid, self._backend = n, grid, backend
        self.levels, self.units = levels_of(n), units_of(grid, reach, UNITS)
        self.eps = grid.precision.type(np.finfo(grid.precision).eps)
        self.turn = 0
        self._arrays = [self._new_arrays(), (backend.empty(0, grid.precision), backend.empty(0, np.int32))]

    def _new_arrays(self) -> tuple[Array, Array]:
        """Allocate the boxes of all nodes, and the bytes of all particles: none on the CPU."""
        last = int(self.levels["count"][0]) - 1
        rows = int(self.levels["first"][0, last] + self.levels["number"][0, last])
        bytes_of_all = LEAF * int(self.levels["number"][0, 0]) if self._backend.runs_ahead else 0
        return (
            self._backend.zeros((rows, ROW), self._grid.precision),
            self._backend.zeros(bytes_of_all, np.int32),
        )

    @property
    def boxes(self) -> Array:
        """(nodes, 8) centre and half lengths of each node, in d."""
        return self._arrays[self.turn][0]

    @property
    def bytes(self) -> Array:
        """int32 of a device: the coordinates of each particle, one byte an axis; (0,) on the CPU."""
        return self._arrays[self.turn][1]

    @property
    def next(self) -> tuple[Array, Array]:
        """Boxes and bytes of the next step, for a step that computes them; (0,) each before `alternate`."""
        return self._arrays[1 - self.turn]

    def alternate(self) -> None:
        """Allocate a second pair of arrays, so that steps can compute the boxes of the next one.

        Raises:
            MemoryError: not enough memory.
        """
        if not len(self.next[0]):
            self._arrays[1 - self.turn] = self._new_arrays()

    def fit(self, pos: Array, radius: Array, scale: float) -> None:
        """Compute the boxes from the present positions, and the bytes of a device; by kernel launches only.

        Args:
            pos: (n, dim) positions in d, inside the box or beyond an open side.
            radius: (n,) in d, for boxes of spheres; (0,) for boxes of centres.
            scale: factor of the radii.
        """
        kernels, numbers = self._backend.kernels(__name__), self._numbers(scale)
        kernels.fit_leaves(self._threads, self._n, pos, radius, *numbers, self.boxes, self.bytes)
        self.fit_above(pos)

    def fit_above(self, pos: Array) -> None:
        """Compute the boxes of the levels above 1 from those of level 1, by kernel launches only.

        Args:
            pos: as for `fit`.
        """
        kernels, record = self._backend.kernels(__name__), self._grid.record
        for level in range(2, int(self.levels["count"][0])):
            threads = NODES * int(self.levels["number"][0, level])
            kernels.fit_nodes(threads, pos, level, self.eps, record, self.levels, self.boxes)

    def gather(self, constants: Mapping[str, int], scale: float) -> Callable[..., None]:
        """Return a kernel for `ParticleArrays.permute` on a device that computes boxes of levels 0 and 1 too.

        Args:
            constants: of the particles (`ParticleArrays.constants`).
            scale: factor of the radii; 0 for boxes of centres.
        """
        kernels, numbers = self._backend.kernels(__name__, constants=constants), self._numbers(scale)

        def launch(n: int, *arrays: Array) -> None:
            kernels.gather_and_fit(self._threads, n, *arrays, *numbers, self.boxes, self.bytes)

        return launch

    @property
    def _threads(self) -> int:
        """Number of work items of a kernel that fits leaves."""
        return LEAF * LEAVES * int(self.levels["number"][0, 1])

    def _numbers(self, scale: float) -> tuple[Any, ...]:
        """Arguments of the kernels that compute boxes of leaves."""
        return self._grid.precision.type(scale), self.eps, self.units, self._grid.record, self.levels


@inlined
def store_side(boxes, row, axis, low, high, eps):
    """Store a box along an axis: from `low` to `high`, and wider by what rounding could lose."""
    centre = (low + high) / 2
    half = max(high - centre, centre - low)
    boxes[row, axis] = centre
    boxes[row, 4 + axis] = half + 8 * eps * (half + abs(low) + abs(high))


@inlined
def nearest_difference(grid, axis, difference):
    """Return the difference of the nearest images of two coordinates, any number of box lengths apart."""
    return difference - grid.image[axis] * np.rint(difference * grid.per_image[axis])


@callee
def merge(dim, row, first, last, boxes, grid, eps):
    """Compute the box of a node from those of its children, which are in rows first .. last - 1."""
    for axis in range(dim):
        origin = boxes[first, axis]
        low = high = origin
        for child in range(first, last):
            centre = origin + nearest_difference(grid, axis, boxes[child, axis] - origin)
            low = min(low, centre - boxes[child, 4 + axis])
            high = max(high, centre + boxes[child, 4 + axis])
        store_side(boxes, row, axis, low, high, eps)


@OnDevice(threads=LEAF * LEAVES)
@kernel(parallel=True)
def fit_leaves(threads, n, pos, radius, scale, eps, units, grid, levels, boxes, bytes):
    """Compute the boxes of the leaves and of level 1.

    A device takes `threads` threads, a whole block of 128 for each node of level 1, and stores the bytes.
    """
    for item in numba.prange(levels[0].number[1]):
        g, block, dim = grid[0], np.int64(item), pos.shape[1]
        leaves = levels[0].number[0]
        begin, end = block * LEAVES, min((block + 1) * LEAVES, leaves)
        for leaf in range(begin, end):
            first = leaf * LEAF
            for axis in range(dim):
                origin = pos[first, axis]
                low, high = origin + np.inf, origin - np.inf
                for i in range(first, min(first + LEAF, n)):
                    x = origin + nearest(pos[i, axis] - origin, g.half[axis], g.image[axis])
                    spread = scale * radius[i] if len(radius) else scale - scale
                    low, high = min(low, x - spread), max(high, x + spread)
                store_side(boxes, leaf, axis, low, high, eps)
        merge(dim, levels[0].first[1] + block, begin, end, boxes, g, eps)


gather_and_fit = OnDevice(threads=LEAF * LEAVES)


@OnDevice(registers=(26, 40))
def fit_nodes(threads, pos, level, eps, grid, levels, boxes):
    """Compute the boxes of a level above 1; a device takes `threads` threads, 32 a node."""
    given, nodes = (pos, level, eps, grid, levels, boxes), int(levels["number"][0, level])
    in_parts(lambda part: _fit_nodes((part.start, part.stop), *given), nodes, rows=WORK * NODES * nodes)


@kernel
def _fit_nodes(nodes, pos, level, eps, grid, levels, boxes):
    """Compute the boxes of some nodes of a level above 1, from the first one to before the last."""
    for node in range(*nodes):
        below = levels[0].first[level - 1]
        first = below + node * NODES
        last = min(first + NODES, below + levels[0].number[level - 1])
        merge(pos.shape[1], levels[0].first[level] + node, first, last, boxes, grid[0], eps)


@callee
def gap2(dim, grid, boxes, a, b):
    """Return the square of the distance between two boxes, by the nearest images along each axis."""
    total = boxes[a, 0] - boxes[a, 0]
    for axis in range(dim):
        apart = abs(nearest_difference(grid, axis, boxes[a, axis] - boxes[b, axis]))
        gap = max(apart - boxes[a, 4 + axis] - boxes[b, 4 + axis], total - total)
        total += gap * gap
    return total


@callee
def particle_gap2(dim, grid, boxes, leaf, pos, i, half):
    """Return the square of the distance between a leaf and a particle, a box of half a length."""
    total = boxes[leaf, 0] - boxes[leaf, 0]
    for axis in range(dim):
        apart = abs(nearest_difference(grid, axis, boxes[leaf, axis] - pos[i, axis]))
        gap = max(apart - boxes[leaf, 4 + axis] - half, total - total)
        total += gap * gap
    return total


@inlined
def bound2_of(reach, radius, i, j):
    """Return the square of the distance up to which two particles are partners, in d^2."""
    if len(radius) == 0:
        return reach.pair2
    both = reach.scale * (radius[i] + radius[j]) + reach.reach
    return max(reach.pair2, both * both)


@callee
def near_leaves(dim, block, reach2, grid, levels, boxes, found, spare):
    """List the leaves within reach of a node of level 1, in ascending order, level by level from the top.

    Args:
        dim: 2 or 3.
        block: number of the node.
        reach2: square of the reach, in d^2.
        grid: record of the box.
        levels: record of the levels.
        boxes: of the nodes.
        found: (leaves,) int32, filled.
        spare: (leaves,) int32, overwritten.

    Returns:
        Number of leaves.
    """
    own, top = levels.first[1] + block, levels.count - 1
    here, other = (found, spare) if top % 2 else (spare, found)
    here[0], count = 0, 1  # one node above all of the uppermost level
    for level in range(top, -1, -1):
        children = levels.number[top] if level == top else NODES if level else LEAVES
        below = 0
        for k in range(count):
            first = here[k] * children
            for node in range(first, min(first + children, levels.number[level])):
                if gap2(dim, grid, boxes, own, levels.first[level] + node) < reach2:
                    other[below] = node
                    below += 1
        here, other, count = other, here, below
    return count


@callee
def copy_leaves(dim, n, pos, grid, boxes, reach, leaf, near, kept, around):
    """Copy the positions in leaves to a buffer, each at the image nearest to the centre of one leaf.

    The differences of the copies from particles of that leaf then are those of nearest images, as far as they
    are within reach.

    Args:
        dim: 2 or 3.
        n: number of particles.
        pos: (n, dim) positions.
        grid: record of the box.
        boxes: of the nodes.
        reach: distance in d.
        leaf: number of the leaf.
        near: leaves to copy.
        kept: number of leaves in `near`, up to `MOST_NEAR`.
        around: (dim, LEAF * MOST_NEAR), filled: the positions, coordinate by coordinate; infinite for absent
            particles.

    Returns:
        Number of leaves; 0, and nothing filled, if the leaf is too large for the box for that.
    """
    for axis in range(dim):
        if not boxes[leaf, 4 + axis] + reach < grid.half[axis]:
            return 0
    for k in range(kept):
        first = near[k] * LEAF
        for axis in range(dim):
            centre = boxes[leaf, axis]
            for b in range(LEAF):
                x = pos[min(first + b, n - 1), axis]
                around[axis, k * LEAF + b] = centre + nearest_difference(grid, axis, x - centre)
        for b in range(max(0, n - first), LEAF):  # there are no such particles
            around[0, k * LEAF + b] = np.inf
    return kept


@inlined
def near_and_copied(dim, n, pos, radius, grid, boxes, reach, leaf, found, count, near, around):
    """List the leaves within reach of a leaf, and copy the particles in them.

    Nothing is copied if the particles of the leaf have to test the leaves one by one: if radii differ, or if
    the leaf or its node is crowded.

    Args:
        dim: 2 or 3.
        n: number of particles.
        pos: (n, dim) positions.
        radius: (n,) in d, or (0,).
        grid: record of the box.
        boxes: of the nodes.
        reach: record of `reaches_of`.
        leaf: number of the leaf.
        found: leaves within reach of its node.
        count: number of leaves in `found`.
        near: (leaves,) int32, filled.
        around: of `copy_leaves`, filled.

    Returns:
        Number of leaves in `near`, number of those copied, and whether particles test leaves one by one.
    """
    kept = 0
    for k in range(count):
        if gap2(dim, grid, boxes, leaf, found[k]) < reach.reach2:
            near[kept] = found[k]
            kept += 1
    by_particle = len(radius) > 0 or kept > MOST_NEAR or count > MOST_NODES
    copied = 0
    if not by_particle:
        copied = copy_leaves(dim, n, pos, grid, boxes, reach.reach, leaf, near, kept, around)
    return kept, copied, by_particle


@callee
def near_of_copies(dim, pos, grid, boxes, reach2, leaf, i, leaves, copied, around, near):
    """List the particles of `copy_leaves` within reach of particle i of the leaf; return their number.

    Args:
        dim: 2 or 3.
        pos: (n, dim) positions.
        grid: record of the box.
        boxes: of the nodes.
        reach2: square of the reach, in d^2.
        leaf: number of the leaf.
        i: slot of the particle.
        leaves: numbers of the copied leaves.
        copied: number of copied leaves.
        around: their positions.
        near: int32 with room for all, filled: slots, without i.
    """
    x = boxes[leaf, 0] + nearest_difference(grid, 0, pos[i, 0] - boxes[leaf, 0])
    y = boxes[leaf, 1] + nearest_difference(grid, 1, pos[i, 1] - boxes[leaf, 1])
    z = x
    if dim == 3:
        z = boxes[leaf, 2] + nearest_difference(grid, 2, pos[i, 2] - boxes[leaf, 2])
    found = 0
    for k in range(copied):
        m = np.uint64(k * LEAF)
        xs, ys, zs = around[0, m : m + LEAF], around[1, m : m + LEAF], around[dim - 1, m : m + LEAF]
        within = 0
        for b in range(LEAF):
            far = (x - xs[b]) * (x - xs[b]) + (y - ys[b]) * (y - ys[b])
            if dim == 3:
                far += (z - zs[b]) * (z - zs[b])
            within += far < reach2
        if within == 0:
            continue
        for b in range(LEAF):  # no branch: one beyond the reach is overwritten by the next
            far = (x - xs[b]) * (x - xs[b]) + (y - ys[b]) * (y - ys[b])
            if dim == 3:
                far += (z - zs[b]) * (z - zs[b])
            j = leaves[k] * LEAF + b
            near[found] = j
            found += (far < reach2) & (j != i)
    return found


@callee
def near_of_particle(dim, n, pos, radius, grid, boxes, reach, leaves, kept, by_particle, i, near):
    """List the particles of leaves but particle i; return their number.

    Args:
        dim: 2 or 3.
        n: number of particles.
        pos: (n, dim) positions.
        radius: (n,) in d, or (0,).
        grid: record of the box.
        boxes: of the nodes.
        reach: record of `reaches_of`.
        leaves: numbers of leaves.
        kept: number of leaves in `leaves`.
        by_particle: whether leaves beyond the reach of the particle itself are left out.
        i: slot of the particle.
        near: int32 with room for all, filled.
    """
    half = reach.scale * radius[i] if len(radius) else reach.reach - reach.reach
    found = 0
    for k in range(kept):
        if by_particle and particle_gap2(dim, grid, boxes, leaves[k], pos, i, half) >= reach.reach2:
            continue
        for j in range(leaves[k] * LEAF, min((leaves[k] + 1) * LEAF, n)):
            near[found] = j
            found += j != i
    return found


@callee
def near_particles(
    dim, n, pos, radius, grid, boxes, reach, leaf, leaves, kept, copied, by_particle, around, i, near
):
    """List the particles near particle i of a leaf: from the copies, if there are any, or from the leaves.

    The arguments are those of `near_of_copies` and of `near_of_particle`. Some particles listed may be beyond
    the reach. Returns their number.
    """
    if copied:
        return near_of_copies(dim, pos, grid, boxes, reach.pair2, leaf, i, leaves, copied, around, near)
    return near_of_particle(dim, n, pos, radius, grid, boxes, reach, leaves, kept, by_particle, i, near)
