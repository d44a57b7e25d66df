"""Relaxation along the force."""

from __future__ import annotations

import numba

from md.backend.base import Array
from md.backend.prelude import add_scaled, load
from md.integrate.base import Integrator
from md.integrate.fused import Placing, place
from sfc.compile import kernel


class SteepestDescent(Integrator):
    """Overdamped relaxation: x += dt^2 F / m, velocities left alone. Takes overlaps out of a packing."""

    name = "steepest_descent"
    relaxes = True
    counts = True

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Move along the force."""
        p, real = self._particles, self._real
        self._backend.kernels(__name__).descend(
            p.n, p.pos, p.id, force, real(self._dt**2), *self._now(step), self._grid.record, fault
        )

    def last_drift(self) -> float:
        """0, for velocities carry nobody."""
        return 0.0

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocities as they are."""
        return self._kicked(force, 0.0)


@kernel(parallel=True)
def descend(n, pos, id, force, rate, clock, turn, grid, fault):
    """Move along the force, pos += rate * force, wrapped; a device counts the step."""
    for i in numba.prange(n):
        g = grid[0]
        r = load(pos, i, g)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, rate, load(force, i, g)))
