"""Integrator for overdamped relaxation: positions move along the force."""

from __future__ import annotations

from dataclasses import dataclass

import numba

from md.backend.base import Array
from md.backend.prelude import add_scaled, load
from md.boundaries.external_field import ExternalField
from md.integrate.base import Integrator, SynchronousStepper
from md.integrate.fused import Placing, place
from md.particles.capabilities import IntegratorCapabilities
from md.particles.system import System
from sfc.compile import kernel


@dataclass(frozen=True)
class SteepestDescent(Integrator):
    """Overdamped relaxation that removes overlaps from a packing: x += dt^2 F / m, velocities unchanged."""

    name = "steepest_descent"
    capabilities = IntegratorCapabilities(capturable=True, relaxes=True)

    def build(self, system: System, field: ExternalField) -> SteepestDescentStepper:
        """Make the stepper for a system."""
        return SteepestDescentStepper(self, system, field)


class SteepestDescentStepper(SynchronousStepper):
    """Stepper for overdamped relaxation of the particles of a system."""

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Move each particle along the force on it."""
        p, real = self._particles, self._real
        self._backend.kernels(__name__).descend(
            p.n, p.pos, p.id, force, real(self._dt**2), *self._now(step), self._record, fault
        )

    def last_drift(self) -> float:
        """Return 0, because velocities move no particle."""
        return 0.0


@kernel(parallel=True)
def descend(n, pos, id, force, rate, clock, turn, grid, fault):
    """Move the particles along the force, pos += rate * force, wrapped; on a device count the step."""
    for i in numba.prange(n):
        g = grid[0]
        r = load(pos, i, g)
        place(Placing(pos, id, fault, clock, turn), g, i, r, add_scaled(r, rate, load(force, i, g)))
