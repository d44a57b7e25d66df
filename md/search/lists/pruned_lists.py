"""Pruned lists of a device: the partners within cutoff + inner skin, taken from wider neighbour lists.

A step that prunes reads the lists of the build, and stores the pruned ones, which the next steps read. Both
kernels are in pruned_lists.cu, those of the CPU in `md.search.lists.blocks`. If a pruned list has no room, as
in a dense cluster, the list of the build is read instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array

ENTRIES = 3  # of a row of 64 bits; see packed_lists.cuh
MOST_KEPT = 16  # entries of a list that a thread keeps in shared memory while it is made

force, force_and_prune = OnDevice(threads=128), OnDevice(threads=256)


def rows_for(partners: float) -> int:
    """Return the rows that all but a few of 1000 lists of a mean number of partners need."""
    enough = math.ceil((partners + 2.5 * math.sqrt(partners)) / ENTRIES)
    return min(max(1, enough), math.ceil(MOST_KEPT / ENTRIES))


class PrunedLists:
    """Pruned lists, allocated by `allocate`.

    Args:
        n: number of particles.
        backend: a device.

    Attributes:
        rows: of each list; 0 if the lists are not allocated.
    """

    def __init__(self, n: int, backend: Backend):
        self._n, self._backend = n, backend
        self.free()

    def bytes_for(self, partners: float) -> int:
        """Return the bytes of the lists for a mean number of partners."""
        return 8 * rows_for(partners) * self._n

    def free(self) -> None:
        """Free the lists."""
        self.rows, self._partners = 0, self._backend.empty(0, np.uint64)

    def allocate(self, partners: float) -> None:
        """Allocate lists for a mean number of partners.

        Raises:
            MemoryError: not enough memory.
        """
        rows = rows_for(partners)
        self._partners, self.rows = self._backend.empty(rows * self._n, np.uint64), rows

    def step(
        self,
        law: Any,
        constants: Mapping[str, int],
        rows: tuple[Array, Array],
        lists: tuple[Array, int],
        reach2: np.floating,
        grid: np.ndarray,
        parameters: Any,
        out: Any,
    ) -> None:
        """Take a fused step; one that prunes reads the lists of the build, and fills the pruned ones.

        Args:
            law: the law.
            constants: of the kernels, as those of `ParticleArrays.constants`.
            rows: positions and velocities.
            lists: those of the build, and the rows of each.
            reach2: square of the distance up to which partners are kept.
            grid: record of the cells.
            parameters: of the law in the kernel.
            out: `md.integrate.fused.KickDrift`.
        """
        pruned = self._partners, self.rows
        if out.prunes:
            kernels = self._backend.kernels(__name__, law, {**constants, "COLUMN": MOST_KEPT})
            kernels.force_and_prune(self._n, *rows, *lists, reach2, *pruned, grid, parameters, out)
        else:
            kernels = self._backend.kernels(__name__, law, constants)
            kernels.force(self._n, *rows, *lists, *pruned, grid, parameters, out)
