"""What else particles meet: a wing in their stream, an inlet where it comes in.

Contract. A surrounding is bound to particles, a grid and a search, and has its say twice in each step: `push`
adds to the forces before the integrator takes them, `after` comes when it has moved the particles. Both are
launches that wait for nothing and allocate nothing, the same at each step but the first, so that steps can be
recorded (`md.simulation.graph_capture`). Steps with
surroundings are not fused.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from md.backend.base import Array, Backend
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.base import Search


class ActiveBoundary:
    """A surrounding at work on some particles.

    Attributes:
        renews: whether `after` may change velocities.
    """

    changes_velocities: ClassVar[bool] = False

    def push(self, force: Array) -> None:
        """Add to the force on each particle at the present positions.

        Args:
            force: (n, dim) array of the backend, changed.
        """
        return

    def after(self, step_times: Array) -> None:
        """Come after a step.

        Args:
            strides: (2,) float64 array of the backend: the times by which it kicked and drifted.
        """
        return

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """What a run needs to go on: name -> array on the host."""
        return {}

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go on from such a memory.

        Raises:
            ValueError: it is none of this one's.
        """
        return


class Boundary(ABC):
    """A choice for `Simulation(surroundings=...)`, as plain data."""

    @property
    def contact_time(self) -> float:
        """How long a particle touches it, in time units; infinite where none does."""
        return math.inf

    @abstractmethod
    def bind(
        self, particles: ParticleArrays, grid: CellGrid, search: Search, backend: Backend
    ) -> ActiveBoundary:
        """Set it to work.

        Raises:
            ValueError: it does not fit the box.
        """


def memories(surroundings: Sequence[ActiveBoundary]) -> dict[str, np.ndarray]:
    """What some surroundings need to go on, each name after the number of whose it is."""
    return {f"{k}_{name}": array for k, s in enumerate(surroundings) for name, array in s.memory.items()}


def remember(surroundings: Sequence[ActiveBoundary], memory: Mapping[str, np.ndarray]) -> None:
    """Let some surroundings go on from what `memories` gave.

    Raises:
        ValueError: it is none of theirs.
    """
    for k, s in enumerate(surroundings):
        own = f"{k}_"
        s.remember({name[len(own) :]: array for name, array in memory.items() if name.startswith(own)})
