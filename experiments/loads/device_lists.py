"""Neighbour lists as a device has them, of a simulation on the CPU (md/search/lists, packed_lists.cuh).

A list has the partners in the order in which the cells around a particle are visited: layer by layer, in a
layer row by row, in a row along axis 0, the cell beyond a periodic side last. In a cell they are in memory
order here; on a device in that in which atomics have counted them. A row has three entries, or one that is
far in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from md.backend.prelude import displacement, dot, home_cell, load, row_number
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.search.lists.list_search import ListConfig, usual_length, usual_rows
from md.search.lists.pruned_lists import ENTRIES, MOST_KEPT, ROW_BYTES, rows_for
from md.search.lists.skin import Skin
from sfc.compile import callee, kernel

SPAN = 2**20  # slots from a particle beyond which a partner is far in memory


class DeviceLists(NamedTuple):
    """Neighbour lists in rows.

    Attributes:
        begin: (n,) int64 place in `partners` of the first entry of each list.
        length: (n,) int64 number of its entries.
        partners: int32 slots of the partners.
        rows: of each list, of which row r of list i is row r * n + i.
        pool: (n,) int64 number of the row at which a list goes on that needs more; negative for none.
        is_there: (n,) bool; False if a list needs more, and there is no pool: its first row says so.
        span: slots from a particle beyond which a partner is far in memory.
        bytes: of the lists with their pool.
    """

    begin: np.ndarray
    length: np.ndarray
    partners: np.ndarray
    rows: int
    pool: np.ndarray
    is_there: np.ndarray
    span: int
    bytes: int


def skin_on_device(simulation: md.Simulation, prunes: bool) -> tuple[Skin, float]:
    """Return the skin that a device would choose now, and the largest displacement in a step, in d.

    Args:
        simulation: with search "verlet".
        prunes: whether lists may be pruned.
    """
    system, config = simulation.system, simulation.config.search
    assert isinstance(config, ListConfig)
    particles = system.particles
    skin = Skin(config.skin, system.grid, particles.n, config.inner_skin, on_device=True)
    fastest2 = np.square(particles.vel, dtype=np.float64).sum(axis=1).max(initial=0)
    stride = float(system.dt * np.sqrt(fastest2))
    skin.choose(stride, prunes)
    return skin, stride


def lists_of(
    simulation: md.Simulation, pos: np.ndarray, grid: CellGrid, skin: Skin
) -> tuple[DeviceLists, DeviceLists]:
    """Make the lists that a step reads, and those that it reads of particles without a list there.

    The first are pruned if the inner width of the skin is less than its width. The second are then those of
    the build, of the particles alone that need them; else they are the same lists.

    Args:
        simulation: on the CPU.
        pos: (n, dim) positions of the build, in the order of the memory.
        grid: of which the cells are as wide as the cutoff and the skin, or wider.
        skin: chosen.
    """
    n, dim = pos.shape
    cutoff, density = simulation.system.grid.cutoff, n / simulation.system.box.volume
    sort = CellSort("row", n, grid, simulation.backend)
    sort.find(pos, by_number=True)
    read, built = (usual_length(n, density, cutoff + width, dim) for width in (skin.inner, skin.width))
    around = _Around(pos, sort.start, sort.order, grid)
    every = np.arange(n)
    if not skin.inner < skin.width:
        lists = _in_rows(around.lists(every, cutoff + skin.width + skin.rounding, built), usual_rows(built))
        return lists, lists
    entries = around.lists(every, cutoff + skin.inner + skin.rounding, read)
    pruned = _in_rows(entries, rows_for(read), most=MOST_KEPT)
    crowded = np.flatnonzero(~pruned.is_there[sort.order])
    entries = around.lists(crowded, cutoff + skin.width + skin.rounding, built)
    return pruned, _in_rows(entries, usual_rows(built))


class _Entries(NamedTuple):
    """Entries of lists: `begin`, `length` and `partners` of `DeviceLists`, and the slots in listing order."""

    begin: np.ndarray
    length: np.ndarray
    partners: np.ndarray
    order: np.ndarray


class _Around(NamedTuple):
    """Particles in the order of their cells: (n, dim) positions by slot, starts of cells, slots, and grid."""

    pos: np.ndarray
    start: np.ndarray
    order: np.ndarray
    grid: CellGrid

    def lists(self, places: np.ndarray, reach: float, mean: float) -> _Entries:
        """List the partners within reach of particles that are given by their places in the order."""
        n = len(self.pos)
        near, real = self.pos[self.order], self.grid.precision.type
        begin, length = np.zeros(n, np.int64), np.zeros(n, np.int64)
        room, used = 0, int(mean * len(places))
        while used > room or not room:
            room = max(used, 1)
            partners = np.empty(room, np.int32)
            used = _list(
                places, self.grid.record, self.start, self.order, near, np.square(real(reach)), begin, length,
                partners,
            )  # fmt: skip
        return _Entries(begin, length, partners[:used], self.order)


def _in_rows(entries: _Entries, rows: int, most: int | None = None) -> DeviceLists:
    """Bring entries into rows.

    Args:
        entries: of the lists.
        rows: of each list.
        most: entries of a list; longer ones, and those with more rows, are not there. None for lists that go
            on in a pool, each in a run of rows of its own, in the order in which they are made.
    """
    n = len(entries.begin)
    is_there, pool = np.ones(n, bool), np.full(n, -1)
    lists = DeviceLists(*entries[:3], rows, pool, is_there, SPAN, ROW_BYTES * rows * n)
    needed = np.empty(n, np.int64)
    _count_rows(lists, needed)
    if most is not None:
        is_there[(entries.length > most) | (needed > rows)] = False
        return lists
    longer = entries.order[needed[entries.order] > rows]
    runs = needed[longer] - rows + 1  # the last row of a list is the link to its run
    pool[longer] = rows * n + np.cumsum(runs) - runs
    return lists._replace(bytes=ROW_BYTES * (rows * n + int(runs.sum())))


@callee
def is_far(lists, i, j):
    """Whether a partner needs a row of its own: the last two differences of slots mean something else."""
    return not -lists.span <= j - i < lists.span - 2


@kernel
def _count_rows(lists, needed):
    for i in range(len(needed)):
        rows, filled = 0, ENTRIES
        for k in range(lists.begin[i], lists.begin[i] + lists.length[i]):
            if is_far(lists, i, lists.partners[k]):
                rows, filled = rows + 1, ENTRIES
            elif filled == ENTRIES:
                rows, filled = rows + 1, 1
            else:
                filled += 1
        needed[i] = max(rows, 1)


@callee
def _beside(g, axis, home, step):
    # Cell number `step` (0, 1, 2) of those to visit along an axis around cell `home`; -1 for none.
    cell, count = home + step - 1, g.cells[axis]
    if 0 <= cell < count:
        return cell
    if g.periodic[axis] and count >= 3:
        return count - 1 if cell < 0 else 0
    return -1


@kernel
def _list(places, grid, start, order, near, reach2, begin, length, partners):
    # `near` has the positions in the order of the cells; returns the entries for which there should be room.
    g, used = grid[0], 0
    for t in range(len(places)):
        place = places[t]
        ri, i = load(near, place, g), order[place]
        home = home_cell(g, ri)
        begin[i] = used
        first, last = max(home[0] - 1, 0), min(home[0] + 2, g.cells[0])
        wraps = g.periodic[0] and g.cells[0] >= 3 and last - first < 3
        beyond = g.cells[0] - 1 if home[0] == 0 else 0
        for layer in range(3 if len(ri) == 3 else 1):
            z = _beside(g, 2, home[2], layer) if len(ri) == 3 else 0
            for step in range(3):
                row = row_number(g, _beside(g, 1, home[1], step), z)
                if row < 0:
                    continue
                for part in range(2 if wraps else 1):
                    cell, after = (row + first, row + last) if part == 0 else (row + beyond, row + beyond + 1)
                    for k in range(start[cell], start[after]):
                        dr = displacement(g, ri, load(near, k, g))
                        if k != place and dot(dr, dr) < reach2:
                            if used < len(partners):
                                partners[used] = order[k]
                            used += 1
        length[i] = used - begin[i]
    return used
