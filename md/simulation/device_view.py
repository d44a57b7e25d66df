"""View of a simulation on its backend, which `md.observe` reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.boundaries.external_field import ExternalField
from md.laws import PairLaw
from md.particles.arrays import ParticleArrays
from md.search.base import Search


class DeviceView(NamedTuple):
    """View of a simulation between two steps, valid until the next one; made by `Simulation.device_view`.

    Attributes:
        particles: in their present memory order. Their stored velocities may be behind the positions in time.
        vel: (n, dim) array of the backend, velocities at the time of the positions, in the same order.
        search: up to date with the positions.
        law: of the simulation.
        step: steps taken so far.
        time: passed, in time units.
        drift: time for which the stored velocities moved the particles in the last step; 0 if there was no
            step, or if other velocities moved them.
        backend: where the arrays are stored.
        outside: gravity and walls, at the time of the positions.
        integrator: name of the integrator.
        total: number of particles; of all ranks, if the simulation is divided.
        domain: `md.domain.division.Domain` of this rank; None if it is not divided.
    """

    particles: ParticleArrays
    vel: Array
    search: Search
    law: PairLaw
    step: int
    time: float
    drift: float
    backend: Backend
    outside: ExternalField
    integrator: str
    total: int
    domain: Any = None

    def across(self, sums: np.ndarray) -> np.ndarray:
        """Return sums over the particles of all ranks.

        Args:
            sums: over those of this rank.
        """
        return sums if self.domain is None else self.domain.communicator.reduce(sums, "sum")

    def __repr__(self) -> str:
        return f"<DeviceView of {self.total} particles at step {self.step}, search {self.search.name}>"
