"""Linked lists of the particles in each cell, as in [thesis]: one head per cell, one link per particle.

The lists point into the particle arrays in their present order, so the time of a step depends on the memory
order: the claims of [thesis] are measured on this search. Hockney and Eastwood, Computer Simulation Using
Particles (1981), 8.4; [thesis], appendix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md.backend import OnDevice
from md.backend.base import Array
from md.backend.prelude import (
    axis_neighbours,
    cell_number,
    displacement,
    dot,
    finish,
    home_cell,
    load,
    neighbour_rows,
    slot_of,
)
from md.laws.pair import initial, interact, result
from md.particles.capabilities import SearchCapabilities
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc.compile import kernel

CLEARED = 4  # lists that are emptied in their order in the time of one that is found by a particle


@dataclass(frozen=True)
class Linked(SearchConfig):
    """Configuration of linked cell lists, rebuilt at every step; the particles are not moved in memory.

    On the CPU each list is in memory order, so runs repeat bit for bit. On a device the lists are linked by
    atomics in no fixed order, so the rounding of a force's sum differs from run to run.
    """

    name = "linked"
    capabilities = SearchCapabilities(fusable=True, capturable=True, divisible=True, bitwise_on=("cpu",))

    def build(self, system: System) -> LinkedSearch:
        """Make the search for a system, with one head a cell and one link a particle.

        Raises:
            ValueError: more cells than fit in memory.
        """
        return LinkedSearch(self, system)


class LinkedSearch(Search):
    """Search with linked cell lists over the particles of a system."""

    def __init__(self, config: Linked, system: System):
        super().__init__(config, system)
        self.grid.require_memory(4, self.backend.free_memory)
        self._head = self.backend.empty(self.grid.size, np.int32)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Make room for the links of all rows, of which none is linked yet."""
        self._is_linked = False
        self._keys, self._next = (self.backend.empty(self.particles.rows, np.int32) for _ in range(2))

    def build(self) -> None:
        """Link every particle into the list of its cell."""
        backend, particles = self.backend, self.particles
        is_rank = particles.region is not None  # on the CPU; most cells of the box are of other ranks
        if is_rank and self._is_linked and self.grid.size > CLEARED * particles.rows:
            _empty_lists(self._keys, self._head)
        else:
            backend.fill(self._head, -1)
        backend.kernels(__name__).link(
            particles.rows,
            particles.pos,
            self.grid.record,
            self._keys,
            self._head,
            self._next,
            backend.workers,
        )
        self._is_linked = True

    def structure(self) -> tuple[Array, Array]:
        """Return the head of each cell's list and the link of each particle."""
        return self._head, self._next


@OnDevice(registers=(15, 16))
@kernel(parallel=True)
def link(n, pos, grid, keys, head, next, parts):
    """Link the lists in ascending order of slots; each part owns a range of cells, so no two write one head.

    `keys` is scratch for the cell of each particle, which every part reads; a device does not use it.
    """
    cells = len(head)
    for i in numba.prange(n):
        g = grid[0]
        keys[i] = cell_number(g, home_cell(g, load(pos, i, g)))
    for p in numba.prange(parts):
        low, high = p * cells // parts, (p + 1) * cells // parts
        for i in range(n - 1, -1, -1):
            key = keys[i]
            if low <= key < high:
                next[i] = head[key]
                head[key] = i


@kernel(parallel=True)
def _empty_lists(keys, head):
    """Empty the lists that particles were linked into, by the cell of each particle."""
    for i in numba.prange(len(keys)):
        head[keys[i]] = -1


@OnDevice(registers=(32, 54), of_boids=(47, 66))
@kernel(parallel=True)
def force(n, pos, vel, work, head, next, grid, law, out):
    """Compute out[i], the law folded over the lists of the home cell and of the cells around it."""
    for item in numba.prange(n):
        g = grid[0]
        i = slot_of(work, item)
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = initial(law, ri)
        home = home_cell(g, ri)
        for row in neighbour_rows(g, home):
            if row < 0:
                continue
            for x in axis_neighbours(g, 0, home[0]):
                if x < 0:
                    continue
                j = head[row + x]
                while j >= 0:
                    if j != i:
                        dr = displacement(g, ri, load(pos, j, g))
                        acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
                    j = next[j]
        finish(out, g, i, ri, vi, result(law, ri, vi, acc))
