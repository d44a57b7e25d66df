"""What force kernels load and store of packed rows (`md.particles.arrays.PackedRows`, md/backend/rows.cuh).

In 3D a particle has a row of four numbers, its position and the first component of its velocity, and a row of
two numbers with the others, which are behind all rows of four. In 2D it has one row of four numbers. Fused
steps on CUDA read and write packed rows where the search packs (`SearchCapabilities.packs`) and the law takes
`velocity*`.

The position of a partner is loaded alone, and its velocity by loads of their own, again with the first
component in 3D; in 2D these take the second half of the row. They are issued together.
"""

from __future__ import annotations

import numpy as np

import md
from experiments.loads.force import LAST, Rows, rows_of
from md.backend.prelude import displacement, dot, load
from sfc.cache import note, note_row, starts_of
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import callee


def packed_rows_of(simulation: md.Simulation, search: str, order: np.ndarray, *more: int) -> Rows:
    """Return the rows of a simulation as packed rows, with `pos` in another order.

    The addresses begin with those of the rows of four that are read, the rows of two behind them, and the
    same of the rows that are written.

    Args:
        simulation: on the CPU, with that search.
        search: name of the search.
        order: (n,) slot of each row.
        more: bytes of the arrays that the search adds.

    Raises:
        ValueError: another search or backend.
    """
    rows = rows_of(simulation, search)
    n, dim = rows.pos.shape
    size = rows.pos.itemsize
    block = 2 * dim * size * n
    first, second, *others = starts_of([block, block, *more])
    base = np.array([first, first + 4 * size * n, second, second + 4 * size * n, *others])
    pos = simulation.backend.rows(n, dim, rows.pos.dtype)
    pos[...] = rows.pos[order]
    return rows._replace(pos=pos, base=base)


@callee
def note_packed_row(noted, rows, array, place, i, kind):
    """Note all of a particle in up to 3 places, which are loaded or stored together.

    `array` is the number of the address of its row of four numbers: 0 to read it, 2 to write it.
    """
    width = 16 * rows.pieces
    note_row(noted, place, rows.base[array] + width * i, rows.pieces, kind, True)
    if len(load(rows.pos, i, rows.grid[0])) == 3:
        note(noted, place + rows.pieces, rows.base[array + 1] + width // 2 * i, kind, False)


@callee
def note_packed_own(noted, rows, i):
    """Note the load of the particle of a thread, in places 0 to 2."""
    note_packed_row(noted, rows, 0, 0, i, READ)


@callee
def note_packed_moved(noted, rows, i):
    """Note the stores of the moved particle, in the last places."""
    note_packed_row(noted, rows, 2, LAST, i, WRITTEN)


@callee
def note_packed_position(noted, rows, place, j, waits):
    """Note the load of the position of a partner, in up to 2 places."""
    parts = rows.pieces if len(load(rows.pos, j, rows.grid[0])) == 3 else 1
    note_row(noted, place, rows.base[0] + 16 * rows.pieces * j, parts, READ, waits)


@callee
def note_packed_velocity(noted, rows, place, i, j):
    """Note the loads of the velocity of a partner, if it is in reach, in up to 2 places."""
    g = rows.grid[0]
    ri = load(rows.pos, i, g)
    dr = displacement(g, ri, load(rows.pos, j, g))
    if dot(dr, dr) < rows.reach2:
        row = rows.base[0] + 16 * rows.pieces * j
        if len(ri) == 3:
            note(noted, place, rows.base[1] + 8 * rows.pieces * j, READ, True)
            note(noted, place + 1, row + 12 * rows.pieces, READ, False)
        else:
            note(noted, place, row + 8 * rows.pieces, READ, True)
