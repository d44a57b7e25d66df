"""Loads and stores of searches that sort by cell at every step (scattered.cu, coherent.cu in md/search/grid).

Scattered: a thread loads its own rows; then for each cell around its own the rank, the first and the last
place in the list, and for each place the slot, the position and, in reach, the velocity. The lanes of a warp
wait for each other at the end of each turn and of each cell, as in `linked`. In 3D in float32 a warp of which
no cell is at a side of the box takes two slots at a time, after one alone if their number is odd. Other loops
that the compiler unrolls, with the odd slot first but no loads together, are as they are written here: in 2D,
and of spheres in float64.

Coherent: the particles are moved into the order of their cells by a kernel before, which stores packed rows.
A thread lists ranges of particles, of all layers of cells or as many as there is room for, and then takes two
particles at a time, of which the positions are loaded together. The last blocks of particles come first.

Left out: the clock and the speeds of a step, which few threads load; registers that are spilled to memory,
two words of spheres in float32 and a dozen of boids; and particles that come into another cell in a step:
those of coherent are in their order before it is made again.
"""

from __future__ import annotations

import numpy as np

import md
from experiments.loads.cell_sort import ARRAYS, ORDER, START, TABLE, sort_loads, sorted_by_cell
from experiments.loads.force import LAST, StepLoads, block_of, note_moved, note_own, note_partner, rows_of
from experiments.loads.packed import (
    note_packed_moved,
    note_packed_own,
    note_packed_position,
    note_packed_row,
    note_packed_velocity,
    packed_rows_of,
)
from md.backend.prelude import axis_neighbours, home_cell, is_interior, load, neighbour_rows
from sfc.cache import end, in_lockstep, note
from sfc.cache.loads import LANES, READ, WRITTEN
from sfc.compile import callee, kernel

ROWS = 4  # addresses of rows, before those of the sort
MOST_RANGES = 12  # that a thread of coherent lists before it visits their particles
ABSENT = -(2**40)  # instead of the number of a cell; stays negative if another is added


def scattered_loads(simulation: md.Simulation) -> StepLoads:
    """Make the streams of a fused step of a simulation at its present positions, in layout aos4.

    Args:
        simulation: with search "scattered" of a division of None, on the CPU, without a reorder of the work.

    Raises:
        ValueError: another search, division or backend.
    """
    rows_of(simulation, "scattered")
    sort = sorted_by_cell(simulation)
    rows = rows_of(simulation, "scattered", *sort.sizes)
    table = sort.table if len(sort.table) else np.arange(len(sort.start) - 1, dtype=np.int32)
    block = block_of("md.search.grid.scattered", "force", rows.pos.dtype, simulation.law)
    force, before = (
        in_lockstep(_scattered, (one, sort, table, rows.base[ROWS:]), rows.n, **block)
        for one in (rows, rows.swapped())
    )
    return StepLoads(force, [before, *sort_loads(rows, sort, rows.base[ROWS:])])


def coherent_loads(simulation: md.Simulation) -> StepLoads:
    """Make the streams of a fused step of a simulation at its present positions, in packed rows.

    The force has as many items as its blocks have threads, some more than there are particles.

    Args:
        simulation: with search "coherent" of a division of None, on the CPU; it is left as it is.

    Raises:
        ValueError: another search, division or backend.
    """
    rows_of(simulation, "coherent")
    found = sorted_by_cell(simulation)
    n = len(found.order)
    rows = packed_rows_of(simulation, "coherent", found.order, *found.sizes, 4 * n, 4 * n)
    sort, base = found.again(), rows.base[ROWS:]
    block = block_of("md.search.grid.coherent", "force", rows.pos.dtype, simulation.law)
    threads = -(-n // block["block"]) * block["block"]
    force = in_lockstep(_coherent, (rows, sort, base, block["block"], threads), threads, **block)
    given = rows.swapped(), base[ORDER], base[ARRAYS:]
    gather = in_lockstep(_gather, given, n, **block_of("md.particles.arrays", "gather", rows.pos.dtype))
    return StepLoads(force, [force, *sort_loads(rows.swapped(), sort, base), gather])


@callee
def _are_interior(rows, threads, t):
    # Whether the cells of all lanes of the warp of threads[t], the first lane, are at no side of the box.
    g = rows.grid[0]
    for k in range(t, min(t + LANES, len(threads))):
        if not is_interior(g, home_cell(g, load(rows.pos, threads[k], g))):
            return False
    return True


@kernel
def _scattered(threads, rows, sort, table, base, noted):
    g = rows.grid[0]
    takes_two = False
    for t in range(len(threads)):
        i = threads[t]
        if i % LANES == 0:
            takes_two = (
                rows.pieces == 1 and len(load(rows.pos, i, g)) == 3 and _are_interior(rows, threads, t)
            )
        note_own(noted, rows, i)
        home = home_cell(g, load(rows.pos, i, g))
        around = neighbour_rows(g, home)
        for b in range(len(around)):
            for a in range(3):
                x = axis_neighbours(g, 0, home[0])[a]
                if around[b] >= 0 and x >= 0:
                    place = (3 * b + a + 1) << 32
                    note(noted, place, base[TABLE] + 4 * (around[b] + x), READ, True)
                    rank = table[around[b] + x]
                    note(noted, place + 1, base[START] + 4 * rank, READ, True)
                    note(noted, place + 2, base[START] + 4 * rank + 4, READ, False)
                    k, last = sort.start[rank], sort.start[rank + 1]
                    _visit(noted, rows, sort.order, base, place + 16, i, k, last, takes_two)
        note_moved(noted, rows, i)
        end(noted, t)


@callee
def _visit(noted, rows, order, base, place, i, first, last, takes_two):
    # Particles of a cell, in turns of 32 places: two of them, or one.
    k, turn = first, 0
    alone = (last - first) % 2 if takes_two else last - first
    while k < last:
        count = 1 if k - first < alone else 2
        at = place + 32 * (turn + (takes_two and not alone))
        for c in range(count):
            note(noted, at + c, base[ORDER] + 4 * (k + c), READ, c == 0)
        for c in range(count):
            j = order[k + c]
            if j != i:
                note_partner(noted, rows, at + 2 + 8 * c, i, j, True)
        k += count
        turn += 1


@kernel
def _gather(threads, rows, order, ids, noted):
    for t in range(len(threads)):
        i = threads[t]
        note(noted, 0, order + 4 * i, READ, True)
        note_packed_row(noted, rows, 0, 1, i, READ)
        note_packed_moved(noted, rows, i)
        note(noted, LAST + 4, ids[0] + 4 * i, READ, False)
        note(noted, LAST + 5, ids[1] + 4 * i, WRITTEN, True)
        end(noted, t)


@callee
def _cell_beside(g, axis, home, step):
    # As `cell_beside` of md/particles/cells_around.cuh.
    count, cell = g.cells[axis], home + step - 1
    if 0 <= cell < count:
        return cell
    if g.periodic[axis] != 0 and count >= 3:
        return count - 1 if cell < 0 else 0
    return -1


@callee
def _rows_around(g, home):
    # As `CellsAround` there: the first cells of three rows, cells from there on, and the way to one beyond.
    count, before = g.cells[0], max(home[0] - 1, 0)
    width, beyond = min(home[0] + 2, count) - before, 0
    if g.periodic[0] != 0 and count >= 3 and width < 3:
        beyond = count - 1 if before == home[0] else -before
    first = np.empty(3, np.int64)
    for step in range(3):
        y = _cell_beside(g, 1, home[1], step)
        first[step] = ABSENT if y < 0 else before + count * y
    return first, width, beyond


@callee
def _add(noted, place, base, ranges, listed, start, cell, width, waits):
    # Loads the range of `width` cells and lists it, unless it is empty; returns the number of ranges.
    note(noted, place, base[START] + 4 * cell, READ, waits)
    note(noted, place + 1, base[START] + 4 * (cell + width), READ, False)
    ranges[listed] = start[cell], start[cell + width]
    return listed + (start[cell] < start[cell + width])


@callee
def _list_layer(noted, place, base, sort, ranges, listed, around, before):
    # Lists the ranges of a layer of cells, of which `before` are before it, in 256 places.
    first, width, beyond = around
    if not len(sort.table):
        for part in range(2 if beyond else 1):
            for step in range(3):
                cell = before + first[step]
                if cell >= 0:
                    at, length = place + 16 * part + 2 * step, 1 if part else width
                    cell += beyond * part
                    listed = _add(noted, at, base, ranges, listed, sort.start, cell, length, step == 0)
        return listed
    for step in range(3):
        cell = before + first[step]
        if cell < 0:
            continue
        for load_ranks in (True, False):
            for k in range(3):
                apart = k if k < width else beyond
                if k == 0 or apart:
                    at = place + 64 * step + (k if load_ranks else 16 + 2 * k)
                    if load_ranks:
                        note(noted, at, base[TABLE] + 4 * (cell + apart), READ, k == 0)
                    else:
                        rank = sort.table[cell + apart]
                        listed = _add(noted, at, base, ranges, listed, sort.start, rank, 1, k == 0)
    return listed


@callee
def _following(ranges, at):
    # Returns the next particle of the ranges; `at` is that particle, and the number of its range.
    while at[0] == ranges[at[1], 1]:
        at[1] += 1
        at[0] = ranges[at[1], 0]
    at[0] += 1
    return at[0] - 1


@kernel
def _coherent(threads, rows, sort, base, block, every, noted):
    g = rows.grid[0]
    ranges = np.empty((MOST_RANGES + 1, 2), np.int64)
    at, partner = np.empty(2, np.int64), np.empty(2, np.int64)
    most = MOST_RANGES - (9 if len(sort.table) else 6)
    for t in range(len(threads)):
        thread = threads[t] % block
        i = every - block - (threads[t] - thread) + thread
        if i >= rows.n:
            end(noted, t)
            continue
        note_packed_own(noted, rows, i)
        home = home_cell(g, load(rows.pos, i, g))
        around = _rows_around(g, home)
        layer, layers, turn = 0, 3 if len(load(rows.pos, i, g)) == 3 else 1, np.int64(0)
        while layer < layers:
            turn += 1
            place, listed = turn << 40, 0
            while layer < layers and listed <= most:
                z = _cell_beside(g, 2, home[2], layer) if layers == 3 else 0
                place += 256
                if z >= 0:
                    before = z * g.cells[0] * g.cells[1]
                    listed = _list_layer(noted, place, base, sort, ranges, listed, around, before)
                layer += 1
            left = 0
            for k in range(listed):
                left += ranges[k, 1] - ranges[k, 0]
            ranges[listed] = i, i + 1
            at[0], at[1] = ranges[0, 0], 0
            place = (turn << 40) + (1 << 30)
            while left > 0:
                for k in range(2):
                    partner[k] = _following(ranges, at)
                    note_packed_position(noted, rows, place + 2 * k, partner[k], k == 0)
                for k in range(2):
                    if partner[k] != i:
                        note_packed_velocity(noted, rows, place + 4 + 2 * k, i, partner[k])
                place += 16
                left -= 2
        note_packed_moved(noted, rows, i)
        end(noted, t)
