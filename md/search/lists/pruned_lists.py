"""Pruned lists of a device: the partners within cutoff + inner skin, taken from wider neighbour lists.

A step that prunes reads the lists of the build, and stores the pruned ones, which the next steps read: a
launch each, or of few particles all in one launch of a kernel that stays. The kernels are in pruned_lists.cu,
those of the CPU in `md.search.lists.blocks`. If a pruned list has no room, as in a dense cluster, the list of
the build is read instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array

ENTRIES, ROW_BYTES = 3, 8  # of a row of a list; see packed_lists.cuh
MOST_ROWS = 2**32  # of all lists, by their numbers in a kernel
MOST_KEPT = 16  # entries of a list that a thread keeps in shared memory while it is made

force = OnDevice(threads=128, registers=(40, 72), of_boids=(40, 80))  # of packed rows
force_and_prune = OnDevice(threads=256)
many_steps = OnDevice("RESIDENT_THREADS", is_resident=True)
RESIDENT_THREADS = 128, 256, 512, 1024  # of a block, of which the fewest are taken; half as many for float64


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
        self._n, self._backend, self._barrier = n, backend, backend.zeros(1, np.uint32)
        self._blocks = backend.resident_blocks
        self.free()

    def bytes_for(self, partners: float) -> int:
        """Return the bytes of the lists for a mean number of partners."""
        return ROW_BYTES * rows_for(partners) * self._n

    def resident_threads(self, itemsize: int) -> int:
        """Return the threads of a block of `many_steps`, for bytes of a number; 0 for too many particles."""
        choices = (count * 4 // itemsize for count in RESIDENT_THREADS)
        return next((count for count in choices if self._n <= self._blocks * count), 0)

    def free(self) -> None:
        """Free the lists."""
        self.rows, self._partners = 0, self._backend.empty(0, np.uint64)

    def keep(self, n: int) -> None:
        """Keep the memory of the lists for another number of particles, if there is enough."""
        self._n = n
        if len(self._partners) < self.rows * n:
            self.free()

    def allocate(self, partners: float) -> None:
        """Allocate lists for a mean number of partners.

        Raises:
            MemoryError: not enough memory.
        """
        rows = min(rows_for(partners), MOST_ROWS // max(1, self._n))
        self._partners, self.rows = self._backend.empty(rows * self._n, np.uint64), rows

    def step(
        self, law: Any, constants: Mapping[str, int], rows: tuple[Array, Array], lists: Array,
        reach2: np.floating, grid: np.ndarray, parameters: Any, out: Any, steps: int = 1,
    ) -> None:  # fmt: skip
        """Take fused steps; one that prunes reads the lists of the build, and fills the pruned ones.

        Args:
            law: the law.
            constants: of the kernels, as those of `ParticleArrays.constants`.
            rows: positions and velocities.
            lists: those of the build.
            reach2: square of the distance up to which partners are kept.
            grid: record of the cells.
            parameters: of the law in the kernel.
            out: `md.integrate.fused.KickDrift` of the first step.
            steps: that are taken, more than 1 by a resident kernel: 1 for a step that prunes.
        """
        own = {"RESIDENT_THREADS": self.resident_threads(reach2.itemsize)} if steps > 1 else {}
        kernels = self._backend.kernels(__name__, law, {**constants, "COLUMN": MOST_KEPT, **own})
        before, pruned, after = (self._n, *rows, lists), self._partners, (grid, parameters, out)
        if out.prunes:
            kernels.force_and_prune(*before, reach2, pruned, self.rows, *after)
        elif steps == 1:
            kernels.force(*before, pruned, *after)
        else:
            kernels.many_steps(*before, pruned, steps, self._barrier, *after)
