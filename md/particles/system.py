"""The state that the parts of a simulation share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from md.backend import NO_FAULT, Backend, Timings
from md.backend.base import Array
from md.particles.arrays import ParticleArrays
from md.particles.box import Box
from md.particles.cell_grid import CellGrid

GUARD, FAULT, ENERGY, FASTEST, WORDS = slice(0, 7), 7, 8, 9, 10  # places in the block, and its length


class StatusCopy(NamedTuple):
    """Host copy of a `StatusBlock` at some moment.

    Attributes:
        guard: (7,) uint64 words of the displacement guard (`md.search.displacement_guard`).
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
        guard: (7,) uint64 of the displacement guard: two words for the largest speed, three for the distances
            travelled and the speeds that halt steps, one for the number of halted steps, one for the bounds
            of the use of pruned lists.
        fault: (1,) uint64 fault word.
        energy: (1,) float64.
        fastest: (1,) uint64.
    """

    def __init__(self, backend: Backend):
        self._backend = backend
        words = np.zeros(WORDS, np.uint64)
        words[FAULT] = NO_FAULT
        self._words = backend.upload(words)
        self._make_views()

    def _make_views(self) -> None:
        self.guard = self._words[GUARD]
        self.fault, self.fastest = self._words[FAULT : FAULT + 1], self._words[FASTEST : FASTEST + 1]
        self.energy = self._words[ENERGY : ENERGY + 1].view(np.float64)

    def __repr__(self) -> str:
        return f"<StatusBlock of {len(self._words)} words in {self._backend!r}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"_backend": self._backend, "_words": self._words}

    def __setstate__(self, state: dict[str, Any]) -> None:  # the views are of the copied words
        self.__dict__.update(state)
        self._make_views()

    def poll(self) -> Callable[[], StatusCopy]:
        """Copy the block without waiting; the function that is returned waits for the copy."""
        copied = self._backend.look(self._words)

        def wait() -> StatusCopy:
            words = copied()
            energy = float(words.view(np.float64)[ENERGY])
            return StatusCopy(words[GUARD], int(words[FAULT]), energy, words[FASTEST])

        return wait


class System:
    """Particles, cells, time step, clock and status of one simulation; every part is built on it.

    Args:
        particles: the arrays, on their backend.
        grid: cells at least as wide as the cutoff of the law.
        dt: time step in time units.
        may_overlap: whether many particles may be in one place, as points do.

    Attributes:
        backend: of the particles.
        particles: `ParticleArrays`, in their present memory order.
        grid: `CellGrid`.
        dt, may_overlap: as given.
        domain: `md.domain.division.Domain` of this rank; None if the system is not divided.
        by_id: whether forces are summed in order of id.
        timings: `md.backend.Timings` of the phases of each step, and of whole runs.
        status: `StatusBlock`.
    """

    def __init__(self, particles: ParticleArrays, grid: CellGrid, dt: float, may_overlap: bool = False):
        self.backend: Backend = particles.backend
        self.particles, self.grid, self.dt, self.may_overlap = particles, grid, dt, may_overlap
        self.timings, self.status = Timings(), StatusBlock(self.backend)
        self.domain: Any = None
        self.by_id = False
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
        """Rows of the particle arrays: those of owned particles, and of copies of those of other ranks."""
        return self.particles.rows

    @property
    def n_owned(self) -> int:
        """Particles that this system moves: the first of its rows."""
        return self.particles.n

    def scratch(self, name: str) -> Array:
        """Return the (n_rows, dim) scratch array of a name, allocated at first use."""
        if name not in self._scratch:
            self._scratch[name] = self.backend.rows(self.n_rows, self.box.dim, self.precision)
        return self._scratch[name]

    @property
    def n_total(self) -> int:
        """Number of particles of all ranks."""
        return self.particles.total

    @property
    def n_usual(self) -> int:
        """Number of particles of a rank, on average: the same on all ranks."""
        return self.n_owned if self.domain is None else -(-self.n_total // self.domain.communicator.size)

    def largest(self, value: float) -> float:
        """Return the largest of the values of all ranks."""
        if self.domain is None:
            return value
        return float(self.domain.communicator.reduce(np.array([value]), "max")[0])

    @property
    def rows_stay(self) -> bool:
        """Whether rows are sent to other ranks: lists on the CPU alone may sort them, and tell the domain."""
        return self.domain is not None

    def divide(self, domain: Any) -> None:
        """Make this the system of one rank.

        Args:
            domain: of the rank; its particles are those of this system.
        """
        self.domain = domain
        self.particles.total = int(domain.communicator.reduce(np.array([self.particles.n]), "sum")[0])

    def settle(self) -> None:
        """Make the owned particles of a rank the first rows, so that they can be read."""
        if self.domain is not None:
            self.domain.settle()

    def rows_changed(self) -> None:
        """Discard scratch arrays, since there are other rows."""
        self._scratch.clear()

    def across(self, status: StatusCopy) -> StatusCopy:
        """Return the status of all ranks, each of which has polled its own: sum, largest and first fault.

        Args:
            status: of this rank; on the CPU its guard is kept.
        """
        if self.domain is None:
            return status
        energy = np.array([status.energy]).view(np.uint64)
        words = np.array([*status.guard, status.fault, *energy, status.fastest], np.uint64)
        every = self.domain.communicator.gather(words)
        guard = every[:, GUARD].max(axis=0) if self.backend.runs_ahead else status.guard
        energy = every[:, ENERGY].copy().view(np.float64)
        return StatusCopy(guard, int(every[:, FAULT].min()), float(energy.sum()), every[:, FASTEST].max())

    def with_particles(self, particles: ParticleArrays) -> System:
        """Return the same system over other particle arrays, such as a sorted copy; scratch is new."""
        other = copy.copy(self)
        other.particles, other._scratch = particles, {}
        return other
