"""The two forms of the Verlet scheme: they differ in what of a step comes first."""

from __future__ import annotations

import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.boundaries.external_field import ExternalField
from md.integrate import leapfrog
from md.integrate.base import Integrator
from md.integrate.fused import KickDrift
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.displacement_guard import DisplacementGuard


class VelocityVerlet(Integrator):
    """Velocity Verlet in kick-drift form: between steps the velocity stands half a step behind.

    The first step kicks by half. The damping force sees the half-step velocity, which makes it first order in
    dt; elastic motion is second order. Swope et al., J. Chem. Phys. 76 (1982) 637.
    """

    name = "velocity_verlet"
    fuses = True
    counts = True

    def bind(
        self, particles: ParticleArrays, grid: CellGrid, dt: float, backend: Backend, outside: ExternalField
    ) -> VelocityVerlet:
        """A copy that moves these particles by steps of `dt` time units."""
        bound = super().bind(particles, grid, dt, backend, outside)
        kicks = grid.precision.type(dt / 2), grid.precision.type(dt)
        bound._strides = [backend.upload(np.array([kick, kicks[1]], np.float64)) for kick in kicks]
        return bound

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt (by dt/2 at step 0), then drift by dt."""
        p, real = self._particles, self._real
        kick = self._dt if step else self._dt / 2
        self._backend.kernels(leapfrog.__name__).kick_drift(
            p.n,
            p.pos,
            p.vel,
            p.id,
            force,
            real(kick),
            real(self._dt),
            *self._now(step),
            self._grid.record,
            fault,
        )

    def fused(self, step: int, fault: Array, pace: DisplacementGuard) -> KickDrift:
        """The same step as an output of the force kernel, into the spare arrays."""
        p, real = self._particles, self._real
        kick = self._dt if step else self._dt / 2
        now, outside = self._now(step), self._outside
        moved = KickDrift(*p.spare, p.id, real(kick), real(self._dt), fault, *now, *pace)
        if not outside.acts:
            return moved
        outside.at(0.0, *now)
        return moved._replace(outside=outside.record, now=outside.now, radius=p.radius)

    def step_times(self, step: int) -> Array:
        """The time step twice; the first kick is by half."""
        return self._strides[min(step, 1)]

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocity with its missing half kick."""
        return self._kicked(force, self._dt / 2 if step else 0.0)


class PositionVerlet(Integrator):
    """Position Verlet: drift by half, kick, drift by half. Positions and velocities belong to the same time.

    The force is that half a step ahead, its damping from the velocity before the kick, which makes it first
    order in dt; elastic motion is second order. Tuckerman, Berne and Martyna, J. Chem. Phys. 97 (1992) 1990.
    """

    name = "position_verlet"
    prepares = True
    counts = True
    lead = 0.5

    def prepare(self, step: int, fault: Array) -> None:
        """Drift by dt/2."""
        p, half = self._particles, self._real(self._dt / 2)
        self._backend.kernels(leapfrog.__name__).drifted(
            p.n, p.pos, p.vel, p.id, half, *self._now(step), self._grid.record, fault
        )

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt, then drift by dt/2."""
        p, real = self._particles, self._real
        self._backend.kernels(leapfrog.__name__).kick_drift(
            p.n,
            p.pos,
            p.vel,
            p.id,
            force,
            real(self._dt),
            real(self._dt / 2),
            *self._now(step),
            self._grid.record,
            fault,
        )

    def last_drift(self) -> float:
        """0, for half the step was taken with the velocities before."""
        return 0.0

    def velocity_now(self, force: Array, step: int) -> Array:
        """The velocities as they are."""
        return self._kicked(force, 0.0)
