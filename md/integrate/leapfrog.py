"""Kick and drift kernels, the two parts of a step."""

import numba

from md.backend.prelude import add_scaled, load, store
from md.integrate.fused import Placing, place
from sfc.compile import in_parts, kernel


@kernel(parallel=True)
def kick_drift(n, pos, vel, id, force, kick, drift, clock, turn, grid, fault):
    """Kick, vel += kick * force (m = 1), drift, pos += drift * vel, wrapped; on a device count the step."""
    for i in numba.prange(n):
        g = grid[0]
        v = add_scaled(load(vel, i, g), kick, load(force, i, g))
        store(vel, i, v)
        r = load(pos, i, g)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, drift, v))


@kernel(parallel=True)
def drift(n, pos, vel, id, drift, clock, turn, grid, fault):
    """Drift the particles only, pos += drift * vel, wrapped."""
    for i in numba.prange(n):
        g = grid[0]
        r = load(pos, i, g)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, drift, load(vel, i, g)))


def kicked(n, vel, force, kick, grid, out):
    """Compute the kicked velocities only, out = vel + kick * force."""
    in_parts(lambda part: _kicked(part.start, part.stop, vel, force, kick, grid, out), n)


@kernel
def _kicked(first, last, vel, force, kick, grid, out):
    """Compute the kicked velocities of the particles first .. last - 1."""
    for i in range(first, last):
        g = grid[0]
        store(out, i, add_scaled(load(vel, i, g), kick, load(force, i, g)))
