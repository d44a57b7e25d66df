"""Listing of the partners within a distance of each particle, from those in the cells around it.

On the CPU their positions are tested (`build_lists`), on a device coordinates of one byte before (`Listing`).
Most particles in the cells around a particle are too far away. Coordinates in whole units, modulo 256, show
that with three instructions for all axes: a subtraction, a sum of squares and a comparison. A periodic axis
has a multiple of 256 units, so that the nearest images need no more. No partner is lost: the comparison
allows for the rounding. Those that pass are tested by their positions. The kernels are in listing.cu.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from md.backend import Backend
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
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from sfc.compile import kernel

WIDTH = 8  # numbers written at once
at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access
UNITS = 84  # of the reach: a partner two cells away is one reach from being taken for near, modulo 256


def units_of(grid: CellGrid, reach: float) -> np.ndarray:
    """Make the record of the units of byte coordinates.

    Args:
        grid: cells of the box.
        reach: distance in d up to which partners are listed, at most half a periodic axis.

    Returns:
        (1,) record with `per_unit`, units per d along each axis, and `most`, the largest sum of squares of
        the differences of the bytes of two particles within reach.
    """
    box = grid.box
    per_unit = []
    for length, periodic in zip(box.lengths, box.periodic, strict=True):
        rounds = max(1, math.floor(length * UNITS / (256 * reach)))  # of 256 units along a periodic axis
        per_unit.append(256 * rounds / length if periodic else UNITS / reach)
    longest = reach * max(per_unit) * (1 + 1e-5)  # in units, with the rounding of the test by positions
    wrong = math.sqrt(1 + 4 * (box.dim - 1))  # each byte is wrong by less than 1, and by 1 more with a borrow
    most = (longest + wrong) ** 2 + (4 - box.dim)  # bytes of no axis are 0 or -1
    dtype = np.dtype([("per_unit", np.float64, (box.dim,)), ("most", np.int32)], align=True)
    return np.array([(per_unit, math.ceil(most))], dtype)


class Listing:
    """Listing on a device.

    Args:
        grid: cells of the box, at least as wide as `reach`.
        reach: in d.
        column: entries of a list that a thread keeps in shared memory; the partners of nearly all particles.
        backend: a device.
    """

    def __init__(self, grid: CellGrid, reach: np.floating, column: int, backend: Backend):
        self._kernels = backend.kernels(__name__, constants={"COLUMN": column})
        self._grid, self._reach2, self._units = grid.record, reach**2, units_of(grid, float(reach))

    def fill(
        self, pos: Array, sort: CellSort, lists: tuple[Array, int, int], outcome: tuple[Any, ...]
    ) -> None:
        """List the partners of each particle, as far as there is room.

        Args:
            pos: (n, dim) positions.
            sort: of the particles; sorted here by the number of their cell, without moving them.
            lists: the entries, their rows of fours, and the fours of the pool behind them.
            outcome: (n, dim) positions to fill or (0, dim), (1,) int64 number of fours of the pool to which
                those needed are added, and (2,) float32 that become infinite if there are too few.
        """
        n, (reference_pos, *room) = pos.shape[0], outcome
        sort.find(pos, by_number=True)
        coordinates = sort.scratch
        self._kernels.store_bytes(n, pos, sort.order, self._units, coordinates)
        cells = sort.start, sort.order, coordinates, self._grid
        self._kernels.build_lists(n, pos, *cells, self._units, self._reach2, reference_pos, *lists, *room)


@kernel(parallel=True)
def build_lists(
    n, pos, start, rank, grid, reach2, reference_pos, first, count, partners, room, needed, parts
):
    """List the partners of each particle within a distance, and store its position in reference_pos.

    The partners of particle i are stored in `partners` from first[i] on. Each part lists a range of the
    particles. needed[0], 0 before, is the room that is needed. With less room some lists are cut.
    """
    lengths = np.zeros(parts, np.int64)
    for p in numba.prange(parts):
        g = grid[0]
        begin, last = p * room // parts, (p + 1) * room // parts - 1
        here = begin
        near = np.empty(n + WIDTH, np.uint32)  # slots of the particles in the cells around a particle
        for i in range(p * n // parts, (p + 1) * n // parts):
            ri = load(pos, i, g)
            store(reference_pos, i, ri)
            first[i] = here
            home = home_cell(g, ri)
            columns = axis_neighbours(g, 0, home[0])
            around = 0
            for row in neighbour_rows(g, home):
                if row < 0:
                    continue
                joined = (
                    min(columns[0], columns[2]) >= 0
                    and rank[at(row + columns[1])] == rank[at(row + columns[0])] + 1
                    and rank[at(row + columns[2])] == rank[at(row + columns[0])] + 2
                )  # the three cells are contiguous in memory
                for k in range(1 if joined else 3):
                    if columns[k] < 0:
                        continue
                    cell = rank[at(row + columns[k])]
                    j = start[at(cell)]
                    length = start[at(cell + (3 if joined else 1))] - j
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
            count[i] = here - first[i]
        lengths[p] = here - begin
    needed[0] = parts * (lengths.max() + 1)
