"""Lists of the partners within a distance of each particle, made from those in the cells around it.

The CPU tests their positions (`build_lists`). A device tests coordinates of one byte first (`ListBuilder`):
most particles in the cells around a particle are too far away, and whole units, modulo 256, show that with
three instructions for all axes: a subtraction, a sum of squares and a shift of its sign. A periodic axis has
a multiple of 256 units, so that the nearest images need no more. No partner is lost within 10^9 d of the
box: the test allows for the rounding. Those that pass are listed, or tested by their positions first. The
kernels are in listing.cu.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    home_cell,
    is_interior,
    load,
    neighbour_rows,
    store,
    sub,
)
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort, Keys
from md.particles.units import distance_error, units_of
from md.search.lists.blocks import BLOCK
from md.search.lists.lister import Lister, Lists
from sfc import Curve
from sfc.compile import in_parts, inlined, kernel

FEW = 2**9  # particles for which threads of the CPU are not worth their start
WIDTH = 8  # numbers written at once
at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access
EXCESS = 1.15  # largest ratio, to the reach, of distances that are listed without a test of the positions

list_partners = OnDevice(threads=256)


def farthest(grid: CellGrid, units: np.ndarray) -> float:
    """Return the largest distance in d at which two particles in adjacent cells may pass the test of bytes.

    Both are inside the box: beyond an open side a cell has no end. It is infinite if the cells are so wide
    that an offset of two of them may be near modulo 256.
    """
    passing, per_unit = math.sqrt(units["most"][0]) + distance_error(grid.box.dim), units["per_unit"][0]
    widest = 2 * per_unit / grid.record["per_side"][0]  # offsets of two cells, in units
    return passing / per_unit.min() if (widest < 256 - passing).all() else math.inf


class CellLister(Lister):
    """Lists made from the particles in the cells around each.

    Args:
        order: of the cells in memory: a name of `sfc.orderings(dim)` or a curve.
        cutoff: of the law, in d.
        particles: the particles.
        backend: where they are stored.
        sorts: whether the particles are sorted in memory.
        by_id: whether partners are listed in order of id, on the CPU.
    """

    def __init__(
        self,
        order: str | Curve,
        cutoff: float,
        particles: ParticleArrays,
        backend: Backend,
        sorts: bool = True,
        by_id: bool = False,
    ):
        super().__init__(cutoff, particles, backend)
        self._order, self._sorts, self._by_id = order, sorts, by_id
        self._unmoved = backend.empty(0, np.int32)

    def allocate(self, grid: CellGrid) -> None:
        """Allocate the sort by the cells of a grid.

        Raises:
            ValueError: not enough memory, or more cells than can be numbered.
        """
        self.__dict__.pop("_sort", None)  # its memory is free before more is allocated
        self._grid = grid
        particles = self._particles
        self._sort = CellSort(self._order, particles.rows, grid, self._backend, particles.region)

    def rows_changed(self) -> None:
        """Make room for the sort of other rows."""
        particles = self._particles
        self._sort.make_room(particles.rows, particles.row_keys, particles.region)

    def sort(self, keep_roles: bool) -> Array | None:
        """Sort the particles in memory by the rank of their cell, unless they are to stay where they are."""
        return self._sort.apply(self._particles, keep_roles) if self._sorts else None

    def list(
        self,
        rounding: float,
        reference_pos: Array,
        lists: Lists,
        column_of: Callable[[float], int],
        is_exact: bool,
    ) -> None:
        """List the partners of each particle."""
        backend, pos, sort, grid = self._backend, self._particles.pos, self._sort, self._grid
        reach = grid.precision.type(grid.cutoff + rounding)
        if backend.runs_ahead:
            keys = self._particles.row_keys
            builder = ListBuilder(grid, reach, column_of, is_exact, backend, keys)
            builder.build(self._particles.n, pos, sort, reference_pos, lists)
            return
        n, rows = self._particles.n, self._particles.rows
        order = self._unmoved if n == rows else sort.order
        backend.kernels(__name__).build_lists(
            n, pos, self._particles.id if self._by_id else self._unmoved, sort.start, order, sort.table,
            grid.record, reach**2, reference_pos, lists.first, lists.count, lists.partners, lists.owners,
            lists.room, lists.needed, 4 * backend.workers,
        )  # fmt: skip
        reference_pos[n:] = pos[n:]

    def crowded_slot(self) -> int:
        """Return the slot of the first particle in the cell with most; waits for the device."""
        start = self._backend.download(self._sort.start)[: self._grid.size + 1]
        place = int(start[np.diff(start).argmax()])
        is_place = self._particles.n == self._particles.rows and not self._backend.runs_ahead
        return place if is_place else int(self._backend.download(self._sort.order)[place])


class ListBuilder:
    """Builds neighbour lists on a device, from coordinates of one byte.

    Args:
        grid: cells of the box, at least as wide as `reach`.
        reach: distance in d up to which partners are listed; some are listed that are up to 15 % farther
            away, or at any distance beyond an open side.
        column_of: returns the entries of a list that a thread keeps in shared memory, enough for nearly all
            lists of the partners within a distance in d.
        is_exact: list only the partners within reach.
        backend: a device.
        keys: of rows of which some have no particle; None for others.
    """

    def __init__(
        self,
        grid: CellGrid,
        reach: np.floating,
        column_of: Callable[[float], int],
        is_exact: bool,
        backend: Backend,
        keys: Keys | None = None,
    ):
        self._borders = None if keys is None else keys.borders
        self._grid, self._reach2, self._units = grid.record, reach**2, units_of(grid, float(reach))
        is_exact = is_exact or farthest(grid, self._units) > EXCESS * float(reach)
        usual = math.sqrt(self._units["most"][0]) / self._units["per_unit"].min()  # most that pass are nearer
        constants = {"COLUMN": column_of(usual), "IS_EXACT": int(is_exact)}
        constants |= {} if keys is None else {"ABSENT": 1}
        self._kernels = backend.kernels(__name__, constants=constants)

    def build(self, owned: int, pos: Array, sort: CellSort, reference_pos: Array, lists: Lists) -> None:
        """List the partners of each particle, as far as there is room.

        Args:
            owned: number of particles with lists, the first rows.
            pos: (n, dim) positions.
            sort: of the particles; sorted here by the number of their cell, without moving them.
            reference_pos: (n, dim), filled with the positions; or (0, dim).
            lists: filled.
        """
        n, coordinates = pos.shape[0], sort.scratch
        sort.find(pos, by_number=True)
        self._kernels.store_bytes(n, pos, sort.order, self._units, coordinates)
        cells = sort.start, sort.order, coordinates, self._grid
        into = lists.partners, lists.rows, lists.room, lists.needed, lists.travelled
        borders = owned if self._borders is None else self._borders
        self._kernels.list_partners(
            n, owned, borders, pos, *cells, self._units, self._reach2, reference_pos, *into
        )


def build_lists(
    n, pos, id, start, order, rank, grid, reach2, reference_pos, first, count, partners, owners, room,
    needed, parts,
):  # fmt: skip
    """List the partners of each particle within a distance, and store its position in reference_pos.

    Args:
        n: number of particles with lists, the first rows.
        pos: (rows, dim) positions.
        id: (rows,) int32, by which partners are sorted; (0,) to leave them in the order in which they lie.
        start: (cells + 1,) int32 first entry of each cell, by rank.
        order: (rows,) int32 row of each entry; (0,) if it is the number of the entry: rows are sorted by the
            rank of their cell.
        rank: (cells,) int32 rank of each cell, by row-major number; or (0,) if it is that number.
        grid: record of the cells.
        reach2: square of the distance in d^2.
        reference_pos: (rows, dim), filled with `pos` of particles with lists.
        first: (blocks,) int64, filled: place in `partners` of the first entry of each `BLOCK` particles.
        count: (blocks,) int64, filled: number of its entries.
        partners: (room,) int32, filled: slots of the partners.
        owners: (room,) uint8, filled: number, in its block of `BLOCK` particles, of the particle to which a
            partner belongs.
        room: entries of `partners`. If it is too small some lists are cut.
        needed: (1,) int64, filled: the room that is needed.
        parts: ranges of blocks, each of which fills an equal share of `partners`.
    """
    lengths = np.zeros(parts, np.int64)
    given = pos, id, start, order, rank, grid, reach2, reference_pos, first, count, partners, owners, room
    in_parts(lambda part: _build_lists((part.start, part.stop), n, *given, lengths), parts, FEW, n)
    needed[0] = parts * (lengths.max() + 1)


@inlined
def rank_of(rank, cell):
    """Return the rank of a cell; its number for an empty table."""
    return np.int64(rank[at(cell)]) if len(rank) else np.int64(cell)


@inlined
def sort_by_id(partners, begin, end, id):
    """Sort the entries of a list by the ids of the partners, by insertion: there are few."""
    for k in range(begin + 1, end):
        one, place = partners[at(k)], k
        while place > begin and id[partners[at(place - 1)]] > id[one]:
            partners[at(place)] = partners[at(place - 1)]
            place -= 1
        partners[at(place)] = one


@kernel
def _build_lists(
    ranges, n, pos, id, start, order, rank, grid, reach2, reference_pos, first, count, partners, owners,
    room, lengths,
):  # fmt: skip
    """Build the lists of the particles in some of the ranges, from the first one to before the last.

    lengths[p] gets the entries of range p; the other arguments are those of `build_lists`.
    """
    parts, blocks = len(lengths), -(-n // BLOCK)
    for p in range(*ranges):
        g = grid[0]
        begin, last = p * room // parts, (p + 1) * room // parts - 1
        here = begin
        near = np.empty(len(pos) + WIDTH, np.uint32)  # slots of the particles in the cells around a particle
        for i in range(p * blocks // parts * BLOCK, min((p + 1) * blocks // parts * BLOCK, n)):
            ri = load(pos, i, g)
            store(reference_pos, i, ri)
            begin_of_list = here
            if i % BLOCK == 0:
                first[i // BLOCK] = here
            home = home_cell(g, ri)
            columns = axis_neighbours(g, 0, home[0])
            around = 0
            for row in neighbour_rows(g, home):
                if row < 0:
                    continue
                joined = (
                    min(columns[0], columns[2]) >= 0
                    and rank_of(rank, row + columns[1]) == rank_of(rank, row + columns[0]) + 1
                    and rank_of(rank, row + columns[2]) == rank_of(rank, row + columns[0]) + 2
                )  # the three cells are contiguous in memory
                for k in range(1 if joined else 3):
                    if columns[k] < 0:
                        continue
                    cell = rank_of(rank, row + columns[k])
                    j = start[at(cell)]
                    length = start[at(cell + (3 if joined else 1))] - j
                    if len(order) and length > 0:
                        begin_row = np.int64(order[at(j)])
                        if order[at(j + length - 1)] - begin_row != length - 1:  # owned particles and ghosts
                            for b in range(length):
                                near[at(around + b)] = order[at(j + b)]
                            around += length
                            continue
                        j = begin_row
                    for b in range(WIDTH):  # most ranges are shorter; the excess is overwritten
                        near[at(around + b)] = j + b
                    for b in range(WIDTH, length):
                        near[at(around + b)] = j + b
                    around += length
            # No branch, which would be mispredicted: an entry beyond the distance is overwritten by the next.
            if is_interior(g, home):
                for k in range(around):
                    j = near[at(k)]
                    dr = sub(ri, load(pos, at(j), g))
                    partners[at(min(here, last))] = j
                    here += (dot(dr, dr) < reach2) & (j != i)
            else:
                for k in range(around):
                    j = near[at(k)]
                    dr = displacement(g, ri, load(pos, at(j), g))
                    partners[at(min(here, last))] = j
                    here += (dot(dr, dr) < reach2) & (j != i)
            if len(id):
                sort_by_id(partners, begin_of_list, min(here, last + 1), id)
            count[i // BLOCK] = here - first[i // BLOCK]
            for a in range(min(begin_of_list, last + 1), min(here, last + 1)):
                owners[at(a)] = i % BLOCK
        lengths[p] = here - begin
