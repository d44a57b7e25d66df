"""Lists of the partners of each particle, made from a wide bounding volume hierarchy.

A block of particles descends in the tree as for forces (`md.search.bvh.wide_bvh`), with search radii that
are larger by the skin. The particles are sorted along a curve in memory, so that a tree needs no links: its
boxes are computed at each build, whether the particles were sorted for it or not. No cells are needed:
densities may differ from place to place, and radii from particle to particle. Lists then hold the partners
within the skin of contact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array
from md.backend.prelude import displacement, dot, load, store
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from md.search.base import Search
from md.search.bvh.curve_keys import CurveKeys
from md.search.bvh.wide_boxes import (
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
from md.search.lists.blocks import BLOCK
from md.search.lists.lister import Lister, Lists, mean_power
from md.search.pair_finder import pair_finder
from sfc import Curve
from sfc.compile import in_parts, kernel

at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access
FEW = 2**9  # particles for which threads of the CPU are not worth their start
SAMPLE = LEAF * LEAVES  # consecutive particles along the curve of which the density is measured

list_partners = OnDevice(threads=LEAF * LEAVES)


class TreeLister(Lister):
    """Lists made from a wide bounding volume hierarchy.

    Args:
        order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        grid: box and precision.
        cutoff: of the law, in d.
        particles: the particles.
        backend: where they are stored.
        narrowest: as for `CurveKeys`.

    Raises:
        ValueError: a curve of another base or dimension.
    """

    def __init__(
        self,
        order: str | Curve,
        grid: CellGrid,
        cutoff: float,
        particles: ParticleArrays,
        backend: Backend,
        narrowest: float | None = None,
    ):
        super().__init__(cutoff, particles, backend)
        self._scale = cutoff / particles.widest
        self._keys = CurveKeys(particles.n, grid, backend, order, narrowest)

    @property
    def is_by_radius(self) -> bool:
        """Whether particles have radii."""
        return len(self._particles.radius) > 0

    def pair_finder(self, system: System) -> Search | None:
        """Return a search for the pairs of centres within a distance; None if the lists have them all.

        Args:
            system: of the particles.
        """
        return pair_finder(system) if self.is_by_radius else None

    def usual(self) -> tuple[float, float]:
        """Return density and cutoff of equal particles with lists of the usual length, in 1 / d^dim and d.

        The usual length is the median over blocks of consecutive particles along the curve. A block is in the
        volume of the curve from its first particle to the first one of the next block. Waits for the device.
        """
        n, dim = self._particles.n, self._particles.box.dim
        if n <= SAMPLE:
            return super().usual()
        self._keys.sort(self._particles.pos)
        extent = self._backend.download(self._keys.extent).astype(np.float64)
        side = max(extent[1::2] - extent[::2]) / 2**self._keys.bits
        cells = np.diff(self._keys.sample(SAMPLE)) + 1
        if side == 0:
            return super().usual()
        density, cutoff = SAMPLE / (cells * side**dim), np.full(len(cells), self._cutoff)
        if self.is_by_radius:
            radius = self._backend.download(self._particles.radius)[self._backend.download(self._keys.order)]
            power = mean_power(radius[: len(cells) * SAMPLE].reshape(-1, SAMPLE), dim)
            cutoff = self._scale * power ** (1 / dim)
        median = np.argsort(density * cutoff**dim, kind="stable")[len(cells) // 2]
        return float(density[median]), float(cutoff[median])

    def allocate(self, grid: CellGrid) -> None:
        """Allocate the boxes of the tree, and choose the search radii."""
        self.__dict__.pop("_tree", None)  # its memory is free before more is allocated
        self._grid, self._skin = grid, grid.cutoff - self._cutoff
        self._tree = WideBoxes(self._particles.n, grid, grid.cutoff, self._backend)

    def sort(self, keep_roles: bool) -> None:
        """Sort the particles in memory along the curve."""
        if self._particles.n:
            self._keys.sort(self._particles.pos)
            self._particles.permute(self._keys.order, keep_roles)

    def list(
        self,
        rounding: float,
        reference_pos: Array,
        lists: Lists,
        column_of: Callable[[float], int],
        is_exact: bool,
    ) -> None:
        """List the partners within reach of each particle, and none that is farther away."""
        backend, p, tree, grid = self._backend, self._particles, self._tree, self._grid
        centres, spheres = reaches_of(grid, self._cutoff, p.widest, self._skin + rounding)
        reach = spheres if self.is_by_radius else centres
        tree.fit(p.pos, p.radius, float(reach["scale"][0]))
        if backend.runs_ahead:
            units = tree.units
            # Most that pass the test of bytes are nearer.
            passing = math.sqrt(units["most"][0]) / units["per_unit"].min()
            usual = grid.cutoff if self.is_by_radius else passing
            kernels = backend.kernels(__name__, constants={"COLUMN": column_of(usual)})
            kernels.list_partners(
                p.n, p.pos, tree.boxes, tree.bytes, tree.levels, units, p.radius, reach, grid.record,
                reference_pos, lists.partners, lists.rows, lists.room, lists.needed, lists.travelled,
            )  # fmt: skip
            return
        backend.kernels(__name__).build_lists(
            p.n, p.pos, tree.boxes, tree.levels, p.radius, reach, grid.record, reference_pos, lists.first,
            lists.count, lists.partners, lists.owners, lists.room, lists.needed, 4 * backend.workers,
        )  # fmt: skip

    def crowded_slot(self) -> int:
        """Return the slot of the first particle in the smallest leaf; waits for the device."""
        leaves = self._particles.n // LEAF  # that are full
        half = self._backend.download(self._tree.boxes)[:leaves, 4 : 4 + self._particles.box.dim]
        return LEAF * int(half.prod(axis=1).argmin()) if leaves else 0


def build_lists(
    n, pos, boxes, levels, radius, reach, grid, reference_pos, first, count, partners, owners, room, needed,
    parts,
):  # fmt: skip
    """List the partners of each particle within reach, and store its position in reference_pos.

    Args:
        n: number of particles.
        pos: (n, dim) positions.
        boxes: of the nodes.
        levels: record of the levels.
        radius: (n,) in d, if the reach is measured from contact; or (0,).
        reach: record of `reaches_of`.
        grid: record of the cells.
        reference_pos: (n, dim), filled with `pos`.
        first: (blocks,) int64, filled: place in `partners` of the first entry of each `BLOCK` particles.
        count: (blocks,) int64, filled: number of its entries.
        partners: (room,) int32, filled: slots of the partners.
        owners: (room,) uint8, filled: number, in its block of `BLOCK` particles, of the particle to which a
            partner belongs.
        room: entries of `partners`. If it is too small some lists are cut.
        needed: (1,) int64, filled: the room that is needed.
        parts: ranges of nodes of level 1, each of which fills an equal share of `partners`.
    """
    lengths = np.zeros(parts, np.int64)
    given = pos, boxes, levels, radius, reach, grid, reference_pos, first, count, partners, owners, room
    in_parts(lambda part: _build_lists((part.start, part.stop), n, *given, lengths), parts, FEW, n)
    needed[0] = parts * (lengths.max() + 1)


@kernel
def _build_lists(
    ranges, n, pos, boxes, levels, radius, reach, grid, reference_pos, first, count, partners, owners, room,
    lengths,
):  # fmt: skip
    """Build the lists of the particles in some of the ranges, from the first one to before the last.

    lengths[p] gets the entries of range p; the other arguments are those of `build_lists`.
    """
    parts = len(lengths)
    for p in range(*ranges):
        g, lv, rc, dim = grid[0], levels[0], reach[0], pos.shape[1]
        leaves, blocks = lv.number[0], lv.number[1]
        found, spare = np.empty(leaves, np.int32), np.empty(leaves, np.int32)
        own, near = np.empty(leaves, np.int32), np.empty(LEAF * (leaves + 1), np.int32)
        around = np.empty((dim, LEAF * MOST_NEAR), pos.dtype)
        begin, last = p * room // parts, (p + 1) * room // parts - 1
        here = begin
        for block in range(p * blocks // parts, (p + 1) * blocks // parts):
            number = near_leaves(dim, block, rc.reach2, g, lv, boxes, found, spare)
            for leaf in range(block * LEAVES, min((block + 1) * LEAVES, leaves)):
                kept, copied, is_alone = near_and_copied(
                    dim, n, pos, radius, g, boxes, rc, leaf, found, number, own, around
                )
                for i in range(leaf * LEAF, min((leaf + 1) * LEAF, n)):
                    ri = load(pos, i, g)
                    store(reference_pos, i, ri)
                    begin_of_list = here
                    if i % BLOCK == 0:
                        first[i // BLOCK] = here
                    found_i = near_particles(
                        dim, n, pos, radius, g, boxes, rc, leaf, own, kept, copied, is_alone, around, i, near
                    )
                    for k in range(found_i):  # no branch: one beyond the reach is overwritten by the next
                        j = near[k]
                        dr = displacement(g, ri, load(pos, at(j), g))
                        partners[at(min(here, last))] = j
                        here += dot(dr, dr) < bound2_of(rc, radius, i, j)
                    count[i // BLOCK] = here - first[i // BLOCK]
                    for a in range(min(begin_of_list, last + 1), min(here, last + 1)):
                        owners[at(a)] = i % BLOCK
        lengths[p] = here - begin
