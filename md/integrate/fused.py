"""Where a particle goes: the outputs of a force kernel that moves what it has found the force on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from md.backend.base import Array
from md.backend.prelude import add_scaled, finish, store
from md.backend.wrapping import folded, in_box, is_finite, well_inside
from md.boundaries.external_field import outside, radius_of
from sfc.compile import implement, inlined


class KickDrift(NamedTuple):
    """Output of a fused force kernel: where the moved particles go, and by how much.

    Attributes:
        pos, vel: (n, dim) arrays, filled; not those the kernel reads.
        id: (n,) int32.
        kick: time of the kick.
        drift: time of the drift.
        fault: (1,) uint64 fault word.
        clock: (2,) int64; clock[turn] is the number of the step. A device counts on: it sets the other entry,
            to one more where the step was taken.
        turn: 0 and 1 in turn.
        fastest, travelled, halted_steps, limit, rounding: of `md.search.displacement_guard.DisplacementGuard`.
        outside, now: `record` and `now` of `md.boundaries.external_field.ExternalField`; None where nothing acts from outside.
        radius: of the particles, (0,) where all are a half; None likewise.
    """

    pos: Array
    vel: Array
    id: Array
    kick: np.floating
    drift: np.floating
    fault: Array
    clock: Array
    turn: int
    fastest: Array
    travelled: Array
    halted_steps: Array
    limit: np.float32
    rounding: np.float32
    outside: np.ndarray | None = None
    now: Array | None = None
    radius: Array | None = None


class Placing(NamedTuple):
    """Where `place` writes: as the fields of `KickDrift`."""

    pos: Array
    id: Array
    fault: Array
    clock: Array
    turn: int


@inlined
def place(out, grid, i, old, new):
    """Write a position to row i of `out.pos`, wrapped into the box; or report the particle and leave it.

    So every position in memory stays inside the box, and what runs before the fault is read finds its cell.
    The arrays come in one tuple, used last where the branches have met again: else Numba counts references
    to them at every particle, at twice the cost of the step (`tests/md/search/test_verlet.py` looks for it).

    Args:
        out: `KickDrift` or `Placing`.
        grid: the box.
        i: the row.
        old: position to leave the particle at.
        new: where it moves.
    """
    if not well_inside(grid, new):
        new = folded(grid, new)
        if not in_box(grid, new):
            word = np.uint64(2) * np.uint64(out.clock[out.turn]) + np.uint64(is_finite(new))
            out.fault[0] = min(out.fault[0], word << np.uint64(32) | np.uint64(out.id[i]))
            new = old
    store(out.pos, i, new)


def _kick_drift(out, grid, i, ri, vi, acc):
    def finish_kick_drift(out, grid, i, ri, vi, acc):
        v = add_scaled(vi, out.kick, acc)
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, out.drift, v))

    def finish_driven(out, grid, i, ri, vi, acc):
        o = out.outside[0]
        own = radius_of(o, out.radius, i)
        v = add_scaled(vi, out.kick, outside(o, own, out.now, grid, ri, vi, acc))
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, out.drift, v))

    driven = out.types[KickDrift._fields.index("outside")] is not types.none
    return finish_driven if driven else finish_kick_drift


implement(finish, KickDrift, _kick_drift)
