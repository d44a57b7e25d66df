"""Integrators by the Verlet scheme in two forms: kick first, or drift first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from md.backend.base import Array
from md.boundaries.external_field import ExternalField
from md.integrate import leapfrog
from md.integrate.base import Integrator, Stepper, SynchronousStepper
from md.integrate.fused import KickDrift
from md.particles.capabilities import IntegratorCapabilities
from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard


@dataclass(frozen=True)
class VelocityVerlet(Integrator):
    """Velocity Verlet in kick-drift form: between steps the velocity is half a step behind the position.

    The first kick is by dt/2. The damping force is computed from the half-step velocity, which makes it first
    order in dt; elastic motion is second order. Swope et al., J. Chem. Phys. 76 (1982) 637.
    """

    name = "velocity_verlet"
    capabilities = IntegratorCapabilities(
        fusable=True, capturable=True, divisible=True, kicks_and_drifts=True
    )

    def build(self, system: System, field: ExternalField) -> VelocityVerletStepper:
        """Make the stepper for a system."""
        return VelocityVerletStepper(self, system, field)


class VelocityVerletStepper(Stepper):
    """Stepper for velocity Verlet of the particles of a system."""

    def __init__(self, integrator: VelocityVerlet, system: System, field: ExternalField):
        super().__init__(integrator, system, field)
        kicks = self._real(self._dt / 2), self._real(self._dt)
        upload = system.backend.upload
        self._step_times = [upload(np.array([kick, kicks[1]], np.float64)) for kick in kicks]

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt (by dt/2 at step 0), then drift by dt."""
        self._kick_and_drift(force, self._kick(step), self._dt, step, fault)

    def fused_output(self, step: int, fault: Array, guard: DisplacementGuard) -> KickDrift:
        """Return the output by which a force kernel takes the same step, into the spare arrays."""
        return self._moved(self._kick(step), step, fault, guard)

    def step_times(self, step: int) -> Array:
        """Return (dt, dt), at step 0 (dt/2, dt): (2,) float64 array of the backend."""
        return self._step_times[min(step, 1)]

    def velocity_now(self, force: Array, step: int) -> Array:
        """Return the velocities after the missing half kick."""
        return self._kicked(force, self._dt / 2 if step else 0.0)

    def _kick(self, step: int) -> float:
        """Return the time of the kick of a step."""
        return self._dt if step else self._dt / 2


@dataclass(frozen=True)
class PositionVerlet(Integrator):
    """Position Verlet: drift by dt/2, kick, drift by dt/2. Positions and velocities are at the same time.

    The force is computed half a step ahead, its damping from the velocity before the kick, which makes it
    first order in dt; elastic motion is second order. Tuckerman, Berne and Martyna, J. Chem. Phys. 97 (1992)
    1990.
    """

    name = "position_verlet"
    capabilities = IntegratorCapabilities(capturable=True, moves_before_force=True)
    lead = 0.5

    def build(self, system: System, field: ExternalField) -> PositionVerletStepper:
        """Make the stepper for a system."""
        return PositionVerletStepper(self, system, field)


class PositionVerletStepper(SynchronousStepper):
    """Stepper for position Verlet of the particles of a system."""

    def prepare(self, step: int, fault: Array) -> None:
        """Drift by dt/2 before the force is computed."""
        p, half = self._particles, self._real(self._dt / 2)
        self._backend.kernels(leapfrog.__name__).drift(
            p.n, p.pos, p.vel, p.id, half, *self._now(step), self._record, fault
        )

    def advance(self, force: Array, step: int, fault: Array) -> None:
        """Kick by dt, then drift by dt/2."""
        self._kick_and_drift(force, self._dt, self._dt / 2, step, fault)

    def last_drift(self) -> float:
        """Return 0, because half of the last drift was by the velocities before the kick."""
        return 0.0
