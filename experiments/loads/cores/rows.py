"""Rows of particles in layout "aos", as the force kernels of the CPU load and store them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from md.backend.prelude import displacement, dot, load
from sfc.cache import note, starts_of
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import callee

POS, VEL, PARTNER, NEAR, FORCE, OTHER = range(6)  # instructions; those of a search begin at `OTHER`


class CoreRows(NamedTuple):
    """Particles of a walk.

    Attributes:
        pos: (n, dim) positions.
        grid: record of the cells of the search.
        reach2: square of the distance up to which the law reads velocities.
        size: bytes of a row.
        base: addresses of positions, velocities and forces, and of the arrays of the search.
    """

    pos: np.ndarray
    grid: np.ndarray
    reach2: np.floating
    size: int
    base: np.ndarray


def rows_of(simulation: md.Simulation, *more: int) -> CoreRows:
    """Return the particles of a simulation on the CPU, with addresses for arrays of `more` bytes."""
    particles, pos = simulation.system.particles, simulation.system.particles.pos
    size = pos.shape[1] * pos.itemsize
    base = starts_of([size * particles.n] * 3 + [*more])
    reach2 = np.square(pos.dtype.type(simulation.law.cutoff))
    return CoreRows(pos, simulation.search.grid.record, reach2, size, base)


@callee
def note_ends(noted, instruction, address, size, kind):
    """Note the first byte of a row and the last one: it lies in one line or two."""
    note(noted, instruction, address, kind, False)
    note(noted, instruction, address + size - 1, kind, False)


@callee
def note_own(noted, rows, i):
    """Note position and velocity of a particle."""
    note_ends(noted, POS, rows.base[0] + rows.size * i, rows.size, READ)
    note_ends(noted, VEL, rows.base[1] + rows.size * i, rows.size, READ)


@callee
def note_partner(noted, rows, i, j):
    """Note the position of a partner, and its velocity if it is in reach."""
    note_ends(noted, PARTNER, rows.base[0] + rows.size * j, rows.size, READ)
    g = rows.grid[0]
    dr = displacement(g, load(rows.pos, i, g), load(rows.pos, j, g))
    if dot(dr, dr) < rows.reach2:
        note_ends(noted, NEAR, rows.base[1] + rows.size * j, rows.size, READ)


@callee
def note_force(noted, rows, i):
    """Note the store of the force on a particle."""
    note_ends(noted, FORCE, rows.base[2] + rows.size * i, rows.size, WRITTEN)
