"""Loads of the searches in cells on a core: lists linked through the particles, and slots sorted by cell."""

from __future__ import annotations

import numpy as np

import md
from experiments.loads.cores.rows import OTHER, note_force, note_own, note_partner, rows_of
from md.backend.prelude import axis_neighbours, home_cell, load, neighbour_rows
from sfc.cache import end, note
from sfc.cache.core import CoreStream, one_by_one
from sfc.cache.loads import READ
from sfc.compile import kernel

INDEX = 4  # bytes of a slot, a rank and the first entry of a cell


def linked_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of `md.search.grid.linked.force`: heads of cells, links and rows."""
    n, cells = simulation.system.particles.n, simulation.system.grid.size
    simulation.search.build()
    head, following = simulation.search.structure()
    rows = rows_of(simulation, INDEX * cells, INDEX * n)
    return one_by_one(_linked, (rows, head, following), n)


def scattered_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of `md.search.grid.scattered.force`: slots in a list by cell."""
    simulation.search.build()
    start, rank, order = simulation.search.structure()
    return _sorted_stream(simulation, start, rank, order)


def coherent_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of `md.search.grid.coherent.force`: the particles of a cell follow each other."""
    simulation.search.build()
    start, rank = simulation.search.structure()
    return _sorted_stream(simulation, start, rank, np.empty(0, np.int32))


def _sorted_stream(
    simulation: md.Simulation, start: np.ndarray, rank: np.ndarray, order: np.ndarray
) -> CoreStream:
    rows = rows_of(simulation, *(INDEX * len(one) for one in (start, rank, order)))
    return one_by_one(_sorted, (rows, start, rank, order), simulation.system.particles.n)


@kernel
def _linked(items, rows, head, following, noted):
    g = rows.grid[0]
    for k in range(len(items)):
        i = items[k]
        note_own(noted, rows, i)
        home = home_cell(g, load(rows.pos, i, g))
        for row in neighbour_rows(g, home):
            if row < 0:
                continue
            for x in axis_neighbours(g, 0, home[0]):
                if x < 0:
                    continue
                note(noted, OTHER, rows.base[3] + 4 * (row + x), READ, False)
                j = head[row + x]
                while j >= 0:
                    if j != i:
                        note_partner(noted, rows, i, j)
                    note(noted, OTHER + 1, rows.base[4] + 4 * j, READ, False)
                    j = following[j]
        note_force(noted, rows, i)
        end(noted, k)


@kernel
def _sorted(items, rows, start, rank, order, noted):
    g = rows.grid[0]
    for k in range(len(items)):
        i = items[k]
        note_own(noted, rows, i)
        home = home_cell(g, load(rows.pos, i, g))
        for row in neighbour_rows(g, home):
            if row < 0:
                continue
            for x in axis_neighbours(g, 0, home[0]):
                if x < 0:
                    continue
                cell = row + x
                if len(rank):
                    note(noted, OTHER, rows.base[4] + 4 * cell, READ, False)
                    cell = rank[cell]
                note(noted, OTHER + 1, rows.base[3] + 4 * cell, READ, False)
                note(noted, OTHER + 2, rows.base[3] + 4 * (cell + 1), READ, False)
                for entry in range(start[cell], start[cell + 1]):
                    j = entry
                    if len(order):
                        note(noted, OTHER + 3, rows.base[5] + 4 * entry, READ, False)
                        j = order[entry]
                    if j != i:
                        note_partner(noted, rows, i, j)
        note_force(noted, rows, i)
        end(noted, k)
