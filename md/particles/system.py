"""The state that the parts of a simulation share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from md.backend import NO_FAULT, Backend, Timings
from md.backend.base import Array
from md.particles.arrays import ParticleArrays
from md.particles.box import Box
from md.particles.cell_grid import CellGrid

GUARD, FAULT, ENERGY, FASTEST, WORDS = slice(0, 4), slice(4, 5), slice(5, 6), slice(6, 7), 8


class StatusCopy(NamedTuple):
    """Host copy of a `StatusBlock` at some moment.

    Attributes:
        guard: (4,) uint64 words of the displacement guard (`md.search.displacement_guard`).
        fault: fault word (`md.integrate`); `md.backend.NO_FAULT` if there is none.
        energy: kinetic energy of all particles when it was last summed, in m d^2 / time^2.
        fastest: bits of the largest v^2 as float32 in the upper half, id of that particle in the lower.
    """

    guard: np.ndarray
    fault: int
    energy: float
    fastest: np.uint64


class StatusBlock:
    """The words that kernels report in, side by side in one array, so that the host copies them at once.

    Args:
        backend: where the block is stored.

    Attributes:
        guard: (4,) uint64 of the displacement guard: two words for the largest speed, one for the distances
            travelled, one for the number of halted steps.
        fault: (1,) uint64 fault word.
        energy: (1,) float64.
        fastest: (1,) uint64.
    """

    def __init__(self, backend: Backend):
        self._backend = backend
        self._words = backend.zeros(WORDS, np.uint64)
        self.guard, self.fault, self.fastest = (self._words[part] for part in (GUARD, FAULT, FASTEST))
        self.energy = self._words[ENERGY].view(np.float64)
        backend.fill(self.fault, NO_FAULT)

    def __repr__(self) -> str:
        return f"<StatusBlock of {len(self._words)} words in {self._backend!r}>"

    def poll(self) -> Callable[[], StatusCopy]:
        """Copy the block without waiting; the function that is returned waits for the copy."""
        copied = self._backend.look(self._words)

        def read() -> StatusCopy:
            words = copied()
            energy = float(words[ENERGY].view(np.float64)[0])
            return StatusCopy(words[GUARD], int(words[FAULT][0]), energy, words[FASTEST][0])

        return read


class System:
    """Particles, cells, time step, clock and status of one simulation; every part is built on it.

    Args:
        particles: the arrays, on their backend.
        grid: cells at least as wide as the cutoff of the law.
        dt: time step in time units.

    Attributes:
        backend: of the particles.
        particles: `ParticleArrays`, in their present memory order.
        grid: `CellGrid`.
        dt: as given.
        timings: `md.backend.Timings` of the phases of each step, and of whole runs.
        status: `StatusBlock`.
    """

    def __init__(self, particles: ParticleArrays, grid: CellGrid, dt: float):
        self.backend: Backend = particles.backend
        self.particles, self.grid, self.dt = particles, grid, dt
        self.timings, self.status = Timings(), StatusBlock(self.backend)
        self._scratch: dict[str, Array] = {}

    def __repr__(self) -> str:
        return (
            f"System(n={self.n_rows}, grid={self.grid.shape}, dt={self.dt:.6g}, backend={self.backend.name})"
        )

    @property
    def box(self) -> Box:
        """The simulation box."""
        return self.particles.box

    @property
    def precision(self) -> np.dtype:
        """Numpy dtype of positions, velocities and forces."""
        return self.grid.precision

    @property
    def n_rows(self) -> int:
        """Rows of the particle arrays: those owned, and copies of others' where there are some (none yet)."""
        return self.particles.n

    @property
    def n_owned(self) -> int:
        """Particles that this system moves: the first of its rows."""
        return self.particles.n

    def scratch(self, name: str) -> Array:
        """(n_rows, dim) array of a name, allocated when it is first asked for and the same from then on."""
        if name not in self._scratch:
            self._scratch[name] = self.backend.rows(self.n_rows, self.box.dim, self.precision)
        return self._scratch[name]

    def with_particles(self, particles: ParticleArrays) -> System:
        """Return the same system over other particle arrays, such as a sorted copy; scratch is new."""
        other = copy.copy(self)
        other.particles, other._scratch = particles, {}
        return other
