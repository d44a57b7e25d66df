"""Loads and stores of linked cell lists on a GPU (md/search/grid/linked.cu).

A thread loads its own rows; then for each row of three cells the heads of their lists together; then link
and position of each particle in these lists, and at a contact its velocity; of a flock it is loaded within
the radius of alignment. The lanes of a warp wait for the one with the longest lists in each row. Lists are in
memory order here; atomics link them in another.

A lane that comes to its own particle, of which it loads the link alone, waits for the others at the end of
the turn: there the compiler brings the lanes together, for every law, dimension and precision.

Link and position are one round, as neither depends on the other. In warps with all cells inside the box the
compiler waits for the link first (in 3D, of spheres in float32 and of flocks); with rounds of that kind
times were foreseen worse by an earlier model (6.1 % rms for 5.0 % over 47 cases).
"""

from __future__ import annotations

import md
from experiments.loads.force import StepLoads, block_of, note_moved, note_own, note_partner, rows_of
from md.backend.prelude import axis_neighbours, cell_number, home_cell, load, neighbour_rows
from sfc.cache import end, in_lockstep, note, note_row
from sfc.cache.loads import ADDED, READ, WRITTEN
from sfc.compile import kernel

STEM = "md.search.grid.linked"


def linked_loads(simulation: md.Simulation) -> StepLoads:
    """Make the streams of a fused step of a simulation at its present positions, in layout aos4.

    Args:
        simulation: of spheres of one size or of a flock, with search "linked", on the CPU, without a reorder
            of the work.

    Raises:
        ValueError: another search or backend.
    """
    n, cells = simulation.system.particles.n, simulation.system.grid.size
    rows = rows_of(simulation, "linked", 4 * cells, 4 * n)
    simulation.search.build()
    head, following = simulation.search.structure()
    block = block_of(STEM, "force", rows.pos.dtype, simulation.law)
    link = block_of(STEM, "link", rows.pos.dtype)
    force, before = (
        in_lockstep(_force, (one, head, following), n, **block) for one in (rows, rows.swapped())
    )
    return StepLoads(force, [before, in_lockstep(_link, (rows,), n, **link)])


@kernel
def _link(threads, rows, noted):
    g = rows.grid[0]
    for t in range(len(threads)):
        i = threads[t]
        note_row(noted, 0, rows.base[0] + 16 * rows.pieces * i, rows.pieces, READ, True)
        cell = cell_number(g, home_cell(g, load(rows.pos, i, g)))
        note(noted, 8, rows.base[4] + 4 * cell, ADDED, True)
        note(noted, 9, rows.base[5] + 4 * i, WRITTEN, True)
        end(noted, t)


@kernel
def _force(threads, rows, head, following, noted):
    g = rows.grid[0]
    for t in range(len(threads)):
        i = threads[t]
        note_own(noted, rows, i)
        home = home_cell(g, load(rows.pos, i, g))
        around = neighbour_rows(g, home)
        for b in range(len(around)):
            place, turn = (b + 1) << 32, 0
            for column in range(3):
                x = axis_neighbours(g, 0, home[0])[column]
                if around[b] >= 0 and x >= 0:
                    note(noted, place + column, rows.base[4] + 4 * (around[b] + x), READ, column == 0)
            for column in range(3):
                x = axis_neighbours(g, 0, home[0])[column]
                j = head[around[b] + x] if around[b] >= 0 and x >= 0 else -1
                while j >= 0:
                    turn += 1
                    at = place + 16 * turn
                    note(noted, at, rows.base[5] + 4 * j, READ, True)
                    if j != i:
                        note_partner(noted, rows, at + 1, i, j, False)
                    j = following[j]
        note_moved(noted, rows, i)
        end(noted, t)
