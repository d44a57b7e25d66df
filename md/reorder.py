"""Reordering particles in memory along an ordering of the cells."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from md.backend import Backend
from md.grid import Grid
from md.schedule import Schedule
from md.state import Particles
from sfc import Curve, ordering

MODES = ("data",)


@dataclass
class Reorder:
    """What order, when, and what moves.

    Args:
        ordering: a name of `sfc.orderings(dim)` or a curve; ranks the cells.
        schedule: when, such as `md.Every(500)`.
        mode: "data": position, velocity and id move to the sorted place.

    Raises:
        ValueError: an unknown mode, or (when bound to a grid) an unknown ordering.
    """

    ordering: str | Curve
    schedule: Schedule
    mode: str = "data"

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"unknown reorder mode {self.mode!r}; known: {', '.join(MODES)}")
        if not callable(self.schedule):
            raise ValueError(
                f"schedule = {self.schedule!r}; allowed: a function of the step, such as md.Every(500)"
            )

    def bind(self, particles: Particles, grid: Grid, backend: Backend) -> Reorder:
        """A copy that reorders these particles, with its rank table and buffers allocated."""
        bound = copy.copy(self)
        bound._particles, bound._grid, bound._backend = particles, grid, backend
        bound._rank = backend.upload(ordering(self.ordering, grid.shape).dense_ranks().astype(np.int32))
        bound._keys = backend.empty(particles.n, np.int32)
        bound._order = backend.empty(particles.n, np.int32)
        bound._start = backend.empty(grid.size + 1, np.int32)
        return bound

    def apply(self) -> None:
        """Sort the particles by the rank of their cell; stable, so particles of one cell keep their order."""
        self._grid.keys(self._particles.pos, self._rank, self._keys)
        self._backend.sort(self._keys, self._start, self._order)
        self._particles.permute(self._order)
