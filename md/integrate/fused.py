"""Output of a fused force kernel, which moves each particle as soon as its force is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from md.backend.base import Array
from md.backend.prelude import add_scaled, dot, finish, like, store, zero
from md.backend.wrapping import folded, in_box, is_finite, well_inside
from md.boundaries.external_field import outside, radius_of
from md.particles.free_flight import free_flight, kick_drift_flight
from md.search.base import FusedOutput
from sfc.compile import implement, inlined


class KickDrift(NamedTuple):
    """Output of a fused force kernel: arrays for the moved particles, and times of kick and drift.

    Attributes:
        pos, vel: (n, dim) arrays, filled; not those the kernel reads.
        id: (n,) int32.
        kick: time of the kick.
        drift: time of the drift.
        fault: (1,) uint64 fault word.
        clock: (2,) int64; clock[turn] is the number of the step. A device sets the other entry to the number
            of the next step: one more if the step was taken, the same if it was halted.
        turn: 0 and 1 alternately.
        fastest, travelled, halted_steps, limit, rounding, bound, inner_limit, prunes: of
            `md.search.displacement_guard.DisplacementGuard`.
        outside, now: `record` and `now` of `md.boundaries.external_field.ExternalField`; None without an
            external field.
        radius: of the particles, (0,) if all are 0.5; None without an external field.
        flight: (1,) record with the largest speed, `max_speed`, and `dt`, by which the external field is
            multiplied, if the law gives increments of velocity (`md.integrate.flight`); None for a force.
        peers: `md.domain.on_device.peers.PeerRows`, by which a rank on a device stores ghosts of others; None
            without.
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
    bound: Array
    inner_limit: np.float32
    prunes: int
    outside: np.ndarray | None = None
    now: Array | None = None
    radius: Array | None = None
    flight: np.ndarray | None = None
    peers: NamedTuple | None = None


FusedOutput.register(KickDrift)


class Placing(NamedTuple):
    """Arrays that `place` writes to; fields as those of `KickDrift`."""

    pos: Array
    id: Array
    fault: Array
    clock: Array
    turn: int


@inlined
def place(out, grid, i, old, new):
    """Write a position to row i of `out.pos`, wrapped into the box; or the old one, and set the fault word.

    So every position in memory is inside the box, and kernels that run before the fault is read find its
    cell. The arrays are passed in one tuple and used after the branches have joined: else Numba counts
    references to them at every particle, at twice the cost of the step (checked in
    `tests/md/search/test_verlet.py`).

    Args:
        out: `KickDrift` or `Placing`.
        grid: cells of the box.
        i: the row.
        old: position to keep if the new one is invalid.
        new: new position, not wrapped.
    """
    if not well_inside(grid, new):
        new = folded(grid, new)
        if not in_box(grid, new):
            word = np.uint64(2) * np.uint64(out.clock[out.turn]) + np.uint64(is_finite(new))
            out.fault[0] = min(out.fault[0], word << np.uint64(32) | np.uint64(out.id[i]))
            new = old
    store(out.pos, i, new)


@inlined
def limited(max_speed, v):
    """Scale a velocity that is longer than the largest speed to that length."""
    speed2 = dot(v, v)
    if speed2 > max_speed * max_speed:
        infinite = speed2 - speed2  # 0; or not a number, which is reported as a fault
        v = add_scaled(zero(v), max_speed / math.sqrt(speed2) + infinite, v)
    return v


def _is_given(out, name):
    return out.types[KickDrift._fields.index(name)] is not types.none


def _kick_drift(out, grid, i, ri, vi, acc):
    def finish_kick_drift(out, grid, i, ri, vi, acc):
        v = add_scaled(vi, out.kick, acc)
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, out.drift, v))
        return float(dot(v, v))

    def finish_driven(out, grid, i, ri, vi, acc):
        o = out.outside[0]
        own = radius_of(o, out.radius, i)
        v = add_scaled(vi, out.kick, outside(o, own, out.now, grid, ri, vi, acc))
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, out.drift, v))
        return float(dot(v, v))

    def finish_flight(out, grid, i, ri, vi, acc):
        f = out.flight[0]
        v = limited(f.max_speed, add_scaled(vi, like(vi, 1), acc))
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, f.dt, v))
        return float(dot(v, v))

    def finish_driven_flight(out, grid, i, ri, vi, acc):
        f, o = out.flight[0], out.outside[0]
        own = radius_of(o, out.radius, i)
        pull = outside(o, own, out.now, grid, ri, vi, zero(ri))
        v = limited(f.max_speed, add_scaled(vi, like(vi, 1), add_scaled(acc, f.dt, pull)))
        store(out.vel, i, v)
        place(out, grid, i, ri, add_scaled(ri, f.dt, v))
        return float(dot(v, v))

    is_driven = _is_given(out, "outside")
    if _is_given(out, "flight"):
        return finish_driven_flight if is_driven else finish_flight
    return finish_driven if is_driven else finish_kick_drift


def _flight_of_kick_drift(out, grid, law, pos, vel, most):
    is_zero_alone = getattr(law.instance_class, "zero_alone", False)
    if not is_zero_alone or _is_given(out, "outside") or _is_given(out, "flight"):
        return lambda out, grid, law, pos, vel, most: None
    return kick_drift_flight(out, grid, law, pos, vel, most)


implement(finish, KickDrift, _kick_drift)
implement(free_flight, KickDrift, _flight_of_kick_drift)
