"""Search by tiles: rows of cells, with the particles around them copied to fast memory once a tile.

The particles are sorted by cell. A tile is a few cells in a row along axis 0. The particles of all cells
around it are copied to a small buffer (shared memory on a device), slice by slice along axis 0, so that the
particles around a cell of the tile are contiguous in the buffer. Tiles for all pairs: Nyland, Harris and
Prins, Fast N-body simulation with CUDA, GPU Gems 3 (2007), ch. 31; cells on a device: Green, Particle
Simulation using CUDA, NVIDIA (2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md import checks
from md.backend.base import Array
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    finish,
    is_interior,
    load,
    neighbour_rows,
    separation,
    store,
    sub,
)
from md.laws.pair import initial, interact, result
from md.particles.capabilities import SearchCapabilities
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc import Curve
from sfc.compile import inlined, kernel

LANES = 32  # threads of a device that work on one tile
CROWD = 20  # mean particles of a tile: most tiles have a lane a particle, and the buffer holds all around
WIDEST = 94  # cells of a tile; as in tiles.cu
MOST_TILES = 2**24  # tiles that a device works on at once
WIDTH = 4  # particles copied at once: few cells hold more
at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access


@dataclass(frozen=True)
class Tiles(SearchConfig):
    """Configuration of the search by tiles: particles sorted by the rank of their cell, neighbours staged.

    A tile reads each particle around it from memory once (on a device once for every 32 particles of the
    tile). Each particle of the tile is then compared with those in the cells next to its own, always in the
    same order, so that runs repeat bit for bit on either backend. `accesses` returns the partners that are
    compared, particle by particle, not the fewer reads of a tile from memory.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve. Tiles are along
            axis 0 in any order; only with "row" do they read a few long ranges.
        width: largest number of cells of a tile, 1 to 94; None for as many as hold about 20 particles. A row
            is divided into as few tiles as that allows, of equal width except for the last.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a width that is no integer.
        ValueError: a width outside its range.
    """

    name = "tiles"
    capabilities = SearchCapabilities(fusable=True, capturable=True, moves_particles=True, packs=True)
    cell_order: str | Curve = "row"
    width: int | None = None

    def __post_init__(self):
        self._check("cell_order", checks.order_of_cells)
        if self.width is not None:
            remedy = "None for what suits the density"
            self._check("width", checks.integer, 1, WIDEST, unit="cells", remedy=remedy)

    def build(self, system: System) -> TilesSearch:
        """Make the search for a system.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than fit in memory.
        """
        return TilesSearch(self, system)


class TilesSearch(Search):
    """Search by tiles over the particles of a system, sorted by cell."""

    def __init__(self, config: Tiles, system: System):
        super().__init__(config, system)
        self._sort = CellSort(config.cell_order, self.particles.n, self.grid, self.backend)
        along = self.grid.shape[0]
        crowd = CROWD * self.grid.size // max(self.particles.n, 1)
        width = crowd if config.width is None else config.width
        per_row = -(-along // min(max(width, 1), WIDEST))
        if along < 3:
            per_row = along  # two cells in one tile would each be a neighbour of the tile too
        self._width = -(-along // per_row)
        self._tiles = -(-along // self._width) * (self.grid.size // along)
        self._threads = (LANES * min(self._tiles, MOST_TILES) if self.particles.n else 0,)

    def build(self) -> None:
        """Sort the particles by the rank of their cell, in memory."""
        self._sort.apply(self.particles)

    def structure(self) -> tuple[Array, Array, int, int, int]:
        """Return start and rank of the cells, width and number of tiles, and number of parts on the CPU."""
        return self._sort.start, self._sort.rank, self._width, self._tiles, 4 * self.backend.workers


@inlined
def first_cell(grid, width, tile):
    """Return the first cell of a tile, as (x, y, z)."""
    per_row = (grid.cells[0] + width - 1) // width
    row = tile // per_row
    return (tile - row * per_row) * width, row % grid.cells[1], row // grid.cells[1]


@inlined
def slice_cell(grid, home, last, s):
    """Return the coordinate along axis 0 of slice s around a tile; negative if there is none.

    Slice 0 comes before the tile's first cell `home`, the last slice after its cell `last`.
    """
    if s == 0:
        return axis_neighbours(grid, 0, home[0])[0]
    x = home[0] + s - 1
    return x if x <= last else axis_neighbours(grid, 0, last)[2]


@kernel(parallel=True)
def force(threads, n, pos, vel, start, rank, width, tiles, parts, grid, law, out):
    """Compute out[i], the law folded over the staged cells around the cell of particle i.

    `threads` is the number of threads of a device, `LANES` for each tile it works on at once; on the CPU each
    part takes a range of the tiles.
    """
    crowd = 0
    for cell in range(len(rank)):  # not of threads: that would take half a second more to compile
        crowd = max(crowd, start[cell + 1] - start[cell])
    room = 9 * (width + 2) * crowd  # of a tile; it contains a cell at most twice
    for p in numba.prange(parts):
        g = grid[0]
        near = np.empty((pos.shape[1], min(room, 2 * n) + WIDTH), pos.dtype).T
        slots = np.empty(len(near), np.uint32)
        far = np.empty(len(near), pos.dtype)
        slab = np.empty(width + 3, np.int64)
        for tile in range(p * tiles // parts, (p + 1) * tiles // parts):
            home = first_cell(g, width, tile)
            last = min(home[0] + width, g.cells[0]) - 1
            rows = neighbour_rows(g, home)
            own = rows[len(rows) // 2]
            here = 0
            for x in range(home[0], last + 1):
                cell = rank[at(own + x)]
                here += start[at(cell + 1)] - start[at(cell)]
            if here == 0:
                continue
            k = 0
            for s in range(last - home[0] + 3):
                slab[at(s)] = k
                x = slice_cell(g, home, last, s)
                if x < 0:
                    continue
                for row in rows:
                    if row < 0:
                        continue
                    cell = rank[at(row + x)]
                    j = start[at(cell)]
                    count = start[at(cell + 1)] - j
                    for b in range(WIDTH):  # most cells hold fewer; the excess is overwritten
                        slots[at(k + b)] = j + b
                    for b in range(WIDTH, count):
                        slots[at(k + b)] = j + b
                    k += count
            slab[at(last - home[0] + 3)] = k
            for m in range(k):
                store(near, at(m), load(pos, at(slots[at(m)]), g))
            interior = is_interior(g, home) and is_interior(g, (last, home[1], home[2]))
            for x in range(home[0], last + 1):
                cell = rank[at(own + x)]
                low, high = slab[at(x - home[0])], slab[at(x - home[0] + 3)]
                for i in range(start[at(cell)], start[at(cell + 1)]):
                    ri = load(pos, at(i), g)
                    vi = load(vel, at(i), g)
                    acc = initial(law, ri)
                    if interior:
                        for k in range(low, high):
                            dr = sub(ri, load(near, at(k), g))
                            far[at(k)] = dot(dr, dr)
                    else:
                        for k in range(low, high):
                            dr = displacement(g, ri, load(near, at(k), g))
                            far[at(k)] = dot(dr, dr)
                    for k in range(low, high):
                        j = slots[at(k)]
                        if j != i:
                            dr = separation(g, interior, ri, load(near, at(k), g))
                            acc = interact(law, vel, i, j, far[at(k)], dr, vi, acc)
                    finish(out, g, i, ri, vi, result(law, ri, vi, acc))
