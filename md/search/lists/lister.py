"""Interface of listers, which find the partners of neighbour lists: in cells (`listing`) or in a tree."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from md.search.base import Search


class Lists(NamedTuple):
    """Arrays of neighbour lists, filled by a lister.

    Attributes:
        first: (blocks,) int64 on the CPU: place in `partners` of the first entry of each block of particles.
        count: (blocks,) int64 on the CPU: number of its entries.
        partners: int32 slots of the partners; on a device uint64 rows, see packed_lists.cuh.
        owners: uint8 on the CPU; see `md.search.lists.blocks`.
        rows: of each list on a device.
        room: entries of all lists on the CPU, rows of the pool on a device.
        needed: (1,) int64 room that is needed. If there is less, some lists are cut.
        travelled: (6,) float32 of the guard of a device, by which steps halt if there is too little room.
    """

    first: Array
    count: Array
    partners: Array
    owners: Array
    rows: int
    room: int
    needed: Array
    travelled: Array


class Lister(ABC):
    """Sorts the particles in memory, and lists the partners within reach of each.

    Args:
        cutoff: of the law, in d.
        particles: the particles.
        backend: where they are stored.
    """

    def __init__(self, cutoff: float, particles: ParticleArrays, backend: Backend):
        self._cutoff, self._particles, self._backend = cutoff, particles, backend

    @property
    def is_by_radius(self) -> bool:
        """Whether the reach of the lists is measured from the contact of two particles of unequal radii."""
        return False

    def pair_finder(self, system: System) -> Search | None:
        """Return a search for the pairs of centres within a distance; None if the lists have them all.

        Args:
            system: of the particles.
        """
        return None

    def usual(self) -> tuple[float, float]:
        """Return density and cutoff of equal particles with lists of the usual length, in 1 / d^dim and d."""
        return self._particles.total / self._particles.box.volume, self._cutoff

    @abstractmethod
    def allocate(self, grid: CellGrid) -> None:
        """Allocate the sort for lists of the partners within the cutoff of a grid; the earlier one is freed.

        Raises:
            ValueError: not enough memory, or more cells than can be numbered.
        """

    def rows_changed(self) -> None:
        """Make room for other rows.

        Raises:
            NotImplementedError: a lister that cannot be divided among ranks.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rows of several ranks")

    @abstractmethod
    def sort(self, keep_roles: bool) -> Array | None:
        """Sort the particles in memory.

        Args:
            keep_roles: as in `ParticleArrays.permute`.

        Returns:
            (rows,) int32 new row of each row of a rank; None of one rank alone, or if they stay.
        """

    @abstractmethod
    def list(
        self,
        rounding: float,
        reference_pos: Array,
        lists: Lists,
        column_of: Callable[[float], int],
        is_exact: bool,
    ) -> None:
        """List the partners of each particle, as far as there is room.

        Args:
            rounding: of distances, in d, by which the reach is larger than the cutoff of the grid.
            reference_pos: (n, dim), filled with the positions; or (0, dim).
            lists: filled.
            column_of: returns the entries of a list that a thread of a device keeps in shared memory, enough
                for nearly all lists of the partners within a distance in d.
            is_exact: list only the partners within reach; else a device may list others that are not much
                farther away.
        """

    @abstractmethod
    def crowded_slot(self) -> int:
        """Return the slot of a particle among the most crowded ones; waits for the device."""


def mean_power(radius: np.ndarray, dim: int) -> np.ndarray:
    """Return the mean of (a + b)**dim over pairs of the radii in each row: (rows,) of (rows, n) radii."""
    moments = [np.mean(radius.astype(np.float64) ** k, axis=1) for k in range(dim + 1)]
    return np.sum([math.comb(dim, k) * moments[k] * moments[dim - k] for k in range(dim + 1)], axis=0)
