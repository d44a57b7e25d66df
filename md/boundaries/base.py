"""Base classes of the boundaries that act in steps which are not fused: a wing in a stream, an inflow.

Contract. A boundary is two classes: the choice (`Boundary`), plain data, and the `ActiveBoundary` that its
`build(system, search)` makes. That one acts twice in each step: `add_forces` adds to the forces before the
integrator reads them, `after_step` runs when the particles have moved. Both are launches that neither wait nor
allocate, the same at each step but the first, so that steps can be captured (`md.simulation.graph_capture`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from md.backend.base import Array
from md.particles.capabilities import Capabilities
from md.particles.system import System
from md.search.base import Search


class ActiveBoundary:
    """A boundary that acts on the particles of a system.

    Attributes:
        capabilities: whether `after_step` may change velocities.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(capturable=True)

    def add_forces(self, force: Array) -> None:
        """Add to the force on each particle at the present positions.

        Args:
            force: (n, dim) array of the backend, changed.
        """
        return

    def after_step(self, step_times: Array) -> None:
        """Act after the particles have moved.

        Args:
            step_times: (2,) float64 array of the backend: the times by which the step kicked and drifted.
        """
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return what a run needs to resume: name -> array on the host."""
        return {}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what `state_dict` of another boundary of this kind gave.

        Raises:
            ValueError: an entry is missing or of another kind.
        """
        return


class Boundary(ABC):
    """A boundary as a choice for `Simulation(surroundings=...)`: plain data."""

    @property
    def contact_time(self) -> float:
        """Duration of a particle's contact with the boundary, in time units; infinite without contact."""
        return math.inf

    @abstractmethod
    def build(self, system: System, search: Search) -> ActiveBoundary:
        """Make the boundary that acts on a system.

        Args:
            system: shared state of the simulation.
            search: of its particles.

        Raises:
            ValueError: it does not fit the box.
        """


class ActiveBoundaries(Sequence[ActiveBoundary]):
    """The boundaries of a simulation, in the order in which they were given; one part for saving and loading.

    Args:
        boundaries: those that act.
    """

    def __init__(self, boundaries: Sequence[ActiveBoundary]):
        self._boundaries = tuple(boundaries)

    def __getitem__(self, index):
        return self._boundaries[index]

    def __len__(self) -> int:
        return len(self._boundaries)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the states of all, each name after the number of its boundary: `0_given`."""
        return {f"{k}_{name}": array for k, b in enumerate(self) for name, array in b.state_dict().items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what `state_dict` gave.

        Raises:
            ValueError: an entry is missing or of another kind.
        """
        for k, boundary in enumerate(self):
            own = f"{k}_"
            boundary.load_state(
                {name[len(own) :]: array for name, array in state.items() if name.startswith(own)}
            )
