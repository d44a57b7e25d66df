"""Loads and stores of neighbour lists on a GPU: a fused step of search "verlet" on CUDA, in packed rows.

A thread loads its own rows and the first row of its list together. Then for each row of the list it loads the
positions of the first two partners and the next row together; at a contact the velocity of the first one,
then that of the second; then the position of the third partner, and at a contact its velocity. A row of fewer
partners has the particle itself instead of the first two, so that its own position is loaded again; so has
one that is a link to the pool. The last loads are two words of the displacement guard, the same for all. The
lanes of a warp wait in each row for those with contacts, and at the end for the longest list.

By default steps read pruned lists (`force` of md/search/lists/pruned_lists.cu); those of the build are read
by the step that prunes (`force_and_prune`), which is not modelled. A thread with no room for its pruned list
finds that in its first row, waits for the other lanes, and then takes its list of the build. Without pruned
lists steps read those of the build (`force` of md/search/lists/list_search.cu), which go on in the pool. A
fused run launches one of the two alone, and both are `force` in a profile: with `force_and_prune` beside it,
it is that of pruned lists. Few particles, as many as a device works on at once (2^17 on an H200), are moved
by `many_steps` instead. A run with fused=False launches the latter `force`, in rows that are not packed.

Every other step takes its blocks from the last to the first: the step before is that here. Left out: the
prefetches of the rows of a later particle into the second cache, as they bring what its thread loads soon
after, and are no loads; the words for which `touch` asks, as the compiler drops loads that nothing reads;
what few threads load and store, as the clock and the largest speed; and the few registers of flocks in
float32 that are spilled to memory. Crowded lists of the build take rows of the pool as many as they need
here, and have the partners within reach alone, as all lists do; on a device a list that is longer than its
column takes runs of 8 rows, and those that are pruned later have some partners more.
"""

from __future__ import annotations

import numpy as np

import md
from experiments.loads.device_lists import is_far, lists_of, skin_on_device
from experiments.loads.force import StepLoads, block_of, rows_of
from experiments.loads.packed import (
    note_packed_moved,
    note_packed_own,
    note_packed_position,
    note_packed_velocity,
    packed_rows_of,
)
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.search.lists.step_costs import MARGIN
from sfc import Curve, checks
from sfc.cache import end, in_lockstep, note
from sfc.cache.loads import READ
from sfc.compile import callee, kernel

GUARD = 56  # bytes of its words
LISTS, BUILT, WORDS = 4, 5, 6  # addresses of the arrays of the search, behind those of packed rows
SPARE, LAST_WORDS = 2**50, 2**60  # places of the lists of the build, and of the words of the guard


def verlet_loads(
    simulation: md.Simulation, age: int = 0, prunes: bool = True, cell_order: str | Curve | None = None
) -> StepLoads:
    """Make the streams of a fused step of a simulation at its present positions, in packed rows.

    The widths of the skin are those of the search, and if it gives none, those that a device would choose
    for the present speeds.

    Args:
        simulation: with search "verlet", on the CPU, of spheres of one size or of a flock; its own lists are
            not read.
        age: steps since the lists were made, or pruned: they have the partners at the positions so many steps
            back, by the present velocities.
        prunes: whether steps read pruned lists, if the inner skin is narrower than the skin; else it is the
            same as the skin.
        cell_order: order of the cells by which particles are sorted in memory at the build; "tiled" is that
            of a device. None for the memory as the simulation has it.

    Raises:
        TypeError: an age that is no integer, or another order.
        ValueError: another search or backend, spheres of several sizes, an age at which the lists would have
            been made again, or a skin too wide for the box.
    """
    rows_of(simulation, "verlet")
    system = simulation.system
    particles, n = system.particles, system.particles.n
    if len(particles.radius):
        raise ValueError("spheres with radii of their own; allowed: of one size; leave radius of State out")
    skin, stride = skin_on_device(simulation, checks.flag("prunes", prunes))
    most = max(0, int(MARGIN * skin.inner_limit / (stride + skin.step_rounding)))
    remedy = "lists are made again before the fastest particle has moved by half the skin"
    age = checks.integer("age", age, 0, most, unit="steps", remedy=remedy)
    then = _positions(simulation, age)
    grid = CellGrid(system.box, system.grid.cutoff + skin.width, then.dtype, simulation.backend)
    order = np.arange(n)
    if cell_order is not None:
        sort = CellSort(cell_order, n, grid, simulation.backend)
        sort.find(then)
        order = sort.order.astype(np.int64)
    lists, built = lists_of(simulation, then[order], grid, skin)
    are_pruned = skin.inner < skin.width
    sizes = lists.bytes, built.bytes if are_pruned else 0, GUARD
    rows = packed_rows_of(simulation, "verlet", order, *sizes)
    module = "pruned_lists" if are_pruned else "list_search"
    block = block_of(f"md.search.lists.{module}", "force", then.dtype, simulation.law)
    size = block["block"]
    force = in_lockstep(_force, (rows, lists, built, size, False), n, **block)
    threads = -(-n // size) * size
    before = in_lockstep(_force, (rows.swapped(), lists, built, size, True), threads, **block)
    return StepLoads(force, [before])


def _positions(simulation: md.Simulation, age: int) -> np.ndarray:
    """Return the positions some steps ago, by the present velocities: (n, dim)."""
    system = simulation.system
    pos = system.particles.pos
    if not age:
        return pos
    then = pos - age * system.dt * system.particles.vel.astype(np.float64)
    lengths = np.array(system.box.lengths)
    return np.where(system.box.periodic, then % lengths, then).astype(pos.dtype)


@callee
def _row_number(lists, n, i, r):
    # Number of row r of a list: the rows from lists.rows on are in the pool, behind the link.
    return lists.pool[i] + r - lists.rows if lists.pool[i] >= 0 and r >= lists.rows else r * n + i


@callee
def _note_list(noted, rows, lists, base, place, i):
    # The partners in a list of which the first row is loaded, row by row.
    k, last, turn, more = lists.begin[i], lists.begin[i] + lists.length[i], 0, True
    while more:
        here = place + 16 * turn
        first, second, third = i, i, i
        turn += 1
        if turn != lists.rows or lists.pool[i] < 0:
            taken = 0
            while k < last and taken < 3:
                j = lists.partners[k]
                far = is_far(lists, i, j)
                if far and taken:
                    break
                first = j if taken == 0 else first
                second = j if taken == 1 else second
                third = j if taken == 2 else third
                k, taken = k + 1, 3 if far else taken + 1
        more = k < last
        note_packed_position(noted, rows, here, first, True)
        note_packed_position(noted, rows, here + 2, second, False)
        if more:
            note(noted, here + 4, rows.base[base] + 8 * _row_number(lists, rows.n, i, turn), READ, False)
        if first != i:
            note_packed_velocity(noted, rows, here + 5, i, first)
        if second != i:
            note_packed_velocity(noted, rows, here + 7, i, second)
        if third != i:
            note_packed_position(noted, rows, here + 9, third, True)
            note_packed_velocity(noted, rows, here + 11, i, third)


@kernel
def _force(threads, rows, lists, built, size, is_reversed, noted):
    blocks = -(-rows.n // size)
    for t in range(len(threads)):
        i = threads[t]
        if is_reversed:
            i = (blocks - 1 - i // size) * size + i % size
        if i < rows.n:
            note_packed_own(noted, rows, i)
            note(noted, 4, rows.base[LISTS] + 8 * i, READ, False)
            if lists.is_there[i]:
                _note_list(noted, rows, lists, LISTS, 16, i)
            else:
                note(noted, SPARE, rows.base[BUILT] + 8 * i, READ, True)
                _note_list(noted, rows, built, BUILT, SPARE + 16, i)
            note(noted, LAST_WORDS, rows.base[WORDS], READ, True)
            note(noted, LAST_WORDS + 1, rows.base[WORDS] + 32, READ, False)
            note_packed_moved(noted, rows, i)
        end(noted, t)
