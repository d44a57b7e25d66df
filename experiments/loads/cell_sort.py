"""Loads and stores of the sort of particles by cell on a GPU (md/backend/sorting/counting.cu).

Four kernels: one computes the rank of the cell of each particle and counts it, one adds up the counts, one
stores the slots in their order, and one sorts those of each cell.

Left out: the fill of the counts with zeros, of which the sums read the same sectors later; the words by which
the blocks of the sums wait for each other; and swaps of slots in a cell. Slots are in memory order before the
last kernel here; atomics assign them another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from experiments.loads.force import Rows, block_of
from md.backend.prelude import cell_number, home_cell, load
from md.particles.cell_sort import CellSort
from md.search.grid.sorted_cells import SortedCells
from sfc.cache import LoadStream, end, in_lockstep, note, note_row
from sfc.cache.loads import ADDED, READ, WRITTEN
from sfc.compile import kernel

STEM = "md.backend.sorting.counting"
ARRAYS = 6
TABLE, COUNTS, NUMBERS, KEYS, START, ORDER = range(ARRAYS)  # addresses of the arrays
EACH = 8  # counts of a thread that adds them up


class Sorted(NamedTuple):
    """Sort of particles by cell, as walks through its kernels need it.

    Attributes:
        table: (cells,) int32 rank of each cell; (0,) if it is the number of the cell.
        keys: (n,) int32 rank of the cell of each particle, by slot.
        place: (n,) int32 place of each particle in the order, by slot.
        start: (cells + 1,) int32 place of the first particle of each cell, by rank.
        order: (n,) int32 slot in each place.
    """

    table: np.ndarray
    keys: np.ndarray
    place: np.ndarray
    start: np.ndarray
    order: np.ndarray

    @property
    def sizes(self) -> list[int]:
        """Bytes of the arrays on a device, in the order of their addresses; with a table in any case."""
        n, cells = len(self.keys), len(self.start) - 1
        return [4 * cells, 4 * cells, 4 * n, 4 * n, 4 * cells + 4, 4 * n]

    def again(self) -> Sorted:
        """Return the sort of particles that are in this order already."""
        n = np.arange(len(self.keys), dtype=np.int32)
        return self._replace(keys=self.keys[self.order], place=n, order=n)


def sorted_by_cell(simulation: md.Simulation) -> Sorted:
    """Sort the particles of a simulation by the cells of its search, and leave them where they are.

    Args:
        simulation: on the CPU, with search "scattered" or "coherent", with a division of None.

    Raises:
        ValueError: another division.
    """
    config, particles, grid = simulation.config.search, simulation.system.particles, simulation.search.grid
    assert isinstance(config, SortedCells)
    if config.division is not None:
        raise ValueError(
            f"division {config.division} of search {config.name!r}; allowed: None, of which the kernel is "
            "modelled; take cells of the cutoff"
        )
    n = np.arange(particles.n, dtype=np.int32)
    sort, keys, place = CellSort(config.cell_order, len(n), grid, simulation.backend), n.copy(), n.copy()
    sort.find(particles.pos)
    grid.keys(particles.pos, sort.table, keys)
    place[sort.order] = n
    return Sorted(sort.table, keys, place, sort.start, sort.order)


def sort_loads(rows: Rows, sort: Sorted, base: np.ndarray) -> list[LoadStream]:
    """Make the streams of the kernels of the sort, one after the other.

    Args:
        rows: of which the positions are read.
        sort: of these particles.
        base: addresses of the arrays of the sort.
    """
    n, cells = len(sort.keys), len(sort.start) - 1
    count, scan, place, bins = (
        block_of(STEM, name, rows.pos.dtype) for name in ("count_cells", "scan", "place", "sort_bins")
    )
    return [
        in_lockstep(_count_cells, (rows, sort, base), n, **count),
        in_lockstep(_scan, (cells, base), cells // EACH + 1, **scan),
        in_lockstep(_place, (sort, base), n, **place),
        in_lockstep(_sort_bins, (sort, base), cells, **bins),
    ]


@kernel
def _count_cells(threads, rows, sort, base, noted):
    g = rows.grid[0]
    for t in range(len(threads)):
        i = threads[t]
        ri = load(rows.pos, i, g)
        parts = rows.pieces if len(ri) == 3 else 1
        note_row(noted, 0, rows.base[0] + 16 * rows.pieces * i, parts, READ, True)
        if len(sort.table):
            note(noted, 2, base[TABLE] + 4 * cell_number(g, home_cell(g, ri)), READ, True)
        note(noted, 3, base[KEYS] + 4 * i, WRITTEN, True)
        note(noted, 4, base[COUNTS] + 4 * sort.keys[i], ADDED, False)
        note(noted, 5, base[NUMBERS] + 4 * i, WRITTEN, True)
        end(noted, t)


@kernel
def _scan(threads, cells, base, noted):
    for t in range(len(threads)):
        first = 4 * EACH * threads[t]
        for at in range(first, min(first + 4 * EACH, 4 * cells), 16):
            note(noted, at - first, base[COUNTS] + at, READ, at == first)
        for at in range(first, min(first + 4 * EACH, 4 * cells + 4), 16):
            note(noted, 64 + at - first, base[START] + at, WRITTEN, at == first)
        end(noted, t)


@kernel
def _place(threads, sort, base, noted):
    for t in range(len(threads)):
        i = threads[t]
        note(noted, 0, base[KEYS] + 4 * i, READ, True)
        note(noted, 1, base[NUMBERS] + 4 * i, READ, False)
        note(noted, 2, base[START] + 4 * sort.keys[i], READ, True)
        note(noted, 3, base[ORDER] + 4 * sort.place[i], WRITTEN, True)
        end(noted, t)


@kernel
def _sort_bins(threads, sort, base, noted):
    for t in range(len(threads)):
        cell = threads[t]
        note(noted, 0, base[START] + 4 * cell, READ, True)
        note(noted, 1, base[START] + 4 * cell + 4, READ, False)
        for k in range(sort.start[cell] + 1, sort.start[cell + 1]):
            at = 4 * (k - sort.start[cell])
            note(noted, at, base[ORDER] + 4 * k, READ, True)
            note(noted, at + 1, base[ORDER] + 4 * (k - 1), READ, True)
            note(noted, at + 2, base[ORDER] + 4 * k, WRITTEN, True)
        end(noted, t)
