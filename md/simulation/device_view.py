"""What a simulation has on its backend, for those who sum over it there."""

from __future__ import annotations

from typing import NamedTuple

from md.backend import Backend
from md.backend.base import Array
from md.boundaries.external_field import ExternalField
from md.laws import PairLaw
from md.particles.arrays import ParticleArrays
from md.search.base import Search


class DeviceView(NamedTuple):
    """A simulation between two steps, until the next one; made by `Simulation.inside`.

    Attributes:
        particles: in their present memory order. Their stored velocities may stand behind the positions.
        vel: (n, dim) array of the backend, velocities at the time of the positions, in the same order.
        search: built for the positions.
        law: of the simulation.
        step: steps taken so far.
        time: passed, in time units.
        drift: time by which the stored velocities carried the particles in the last step; 0 where there was
            none, or they are not those that did.
        backend: where all this is.
        outside: what acts on the particles from outside, at the time of the positions.
        integrator: name of that which takes the steps.
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
