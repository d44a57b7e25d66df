"""Base classes of the boundaries that act in steps that are not fused: a wing in a stream, an inflow.

Contract. A boundary is two classes: the configuration (`Boundary`), plain data, and the `ActiveBoundary` that
its `build(system, search)` makes. An active boundary acts twice in each step: `add_forces` adds to the forces
before the integrator reads them, `after_step` runs after the particles have moved. Both are kernel launches
that neither wait nor allocate, the same at each step except the first, so that steps can be captured
(`md.simulation.graph_capture`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from md.backend.base import Array
from md.particles.capabilities import BoundaryCapabilities, Capable
from md.particles.system import System
from md.search.base import Search

RADIUS = 0.5  # of a particle without a given radius, in d


class ActiveBoundary(Capable):
    """Boundary that acts on the particles of a system.

    Attributes:
        capabilities: whether `after_step` may change velocities.
    """

    capabilities: ClassVar[BoundaryCapabilities] = BoundaryCapabilities(capturable=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def add_forces(self, force: Array) -> None:
        """Add to the force on each particle at the present positions.

        Args:
            force: (n, dim) array of the backend, changed.
        """

    def after_step(self, step_times: Array) -> None:
        """Act on the particles after they have moved.

        Args:
            step_times: (2,) float64 array of the backend: the times of the step's kick and drift.
        """

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the state that a run needs to resume: name -> array on the host."""
        return {}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` of another boundary of this class returned.

        Raises:
            ValueError: an entry is missing or of another kind.
        """


class Boundary(ABC):
    """Configuration of a boundary for `Simulation(surroundings=...)`: plain data."""

    @property
    def contact_time(self) -> float:
        """Duration of a particle's contact with the boundary, in time units; infinite without contact."""
        return math.inf

    @property
    def restitution(self) -> float:
        """Coefficient of restitution of a particle and the boundary, by which a time step is derived."""
        return 1.0

    @abstractmethod
    def build(self, system: System, search: Search) -> ActiveBoundary:
        """Make the boundary that acts on a system.

        Args:
            system: shared state of the simulation.
            search: finds the neighbours of its particles.

        Raises:
            ValueError: the boundary does not fit the box.
        """


class ActiveBoundaries(tuple[ActiveBoundary, ...]):
    """Tuple of the active boundaries of a simulation, in the order given, saved and loaded together."""

    def __repr__(self) -> str:
        return f"<ActiveBoundaries {list(self)!r}>"

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the states of all boundaries; a name has the number of its boundary before it: `0_given`."""
        return {f"{k}_{name}": array for k, b in enumerate(self) for name, array in b.state_dict().items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the states that `state_dict` returned.

        Raises:
            ValueError: an entry is missing or of another kind.
        """
        for k, boundary in enumerate(self):
            own = {name: array for name, array in state.items() if name.startswith(f"{k}_")}
            boundary.load_state({name.removeprefix(f"{k}_"): array for name, array in own.items()})
