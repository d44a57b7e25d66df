"""Pruned lists of a device: the partners within cutoff + inner skin, taken from wider neighbour lists.

A step that prunes reads the lists of the build, and stores the pruned ones, which the next steps read. The
kernel is in pruned_lists.cu and the format of lists in lists.cuh; the CPU prunes no lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from md.backend import Backend
from md.backend.base import Array

FOUR = 4  # entries of a list of a device that are read at once
MOST_FOURS, MOST_POOLED = 2**32, 2**31  # fours in all and in the pool, by their numbers in a kernel


def most_room(rows: int, n: int) -> int:
    """Return the largest pool of lists of n particles with rows, in fours, by the numbers in its kernels."""
    return min(MOST_POOLED, MOST_FOURS - rows * n)


def places(rows: int, n: int, room: int) -> int:
    """Return the entries of the lists of n particles with rows of fours and a pool.

    Raises:
        ValueError: more fours than can be numbered.
    """
    most = most_room(rows, n)
    if room > most:
        raise ValueError(
            f"neighbour lists of {n} particles on a device need {rows} rows and a pool of {room} fours of "
            f"partners; allowed: a pool of up to {most}; take a smaller skin, or fewer particles"
        )
    return FOUR * (rows * n + room)


class PrunedLists:
    """Pruned lists, allocated by `allocate`.

    Args:
        n: number of particles.
        backend: a device.

    Attributes:
        partners: the lists, as lists.cuh has them.
        rows: rows of fours.
        room: of the pool in fours; -1 if the lists are not allocated.
    """

    def __init__(self, n: int, backend: Backend):
        self._n, self._backend = n, backend
        self._needed = backend.zeros(1, np.int64)
        self.rows = 1
        self.free()

    def free(self) -> None:
        """Free the lists."""
        self.room, self.partners = -1, self._backend.empty(0, np.int32)

    def allocate(self, rows: int, room: int) -> None:
        """Allocate lists instead of the present ones, which are freed before.

        Raises:
            ValueError: more fours than can be numbered.
            MemoryError: not enough memory.
        """
        self.free()
        self.partners = self._backend.empty(places(rows, self._n, room), np.int32)
        self.rows, self.room = rows, room

    @property
    def needed(self) -> int:
        """Room of the pool that the last pruning needed, in fours; waits for the device."""
        return int(self._backend.download(self._needed)[0])

    def step(
        self,
        law: Any,
        constants: Any,
        rows: tuple[Array, Array],
        lists: tuple[Array, int],
        reach2: np.floating,
        grid: np.ndarray,
        parameters: Any,
        out: Any,
    ) -> None:
        """Take a fused step with wider lists, and fill the pruned ones.

        Args:
            law, parameters: the law and its numbers in the kernel.
            constants: of the kernel: those of `ParticleArrays.constants`, and COLUMN of lists.cuh.
            rows: positions and velocities.
            lists: the wider lists, and their rows of fours.
            reach2: square of the distance of partners that are kept.
            grid: record of the cells.
            out: `md.integrate.fused.KickDrift`.
        """
        self._backend.fill(self._needed, 0)
        self._backend.fill(out.overflow, 0)
        kernels = self._backend.kernels(__name__, law, constants)
        kernels.force_and_prune(
            self._n, *rows, *lists, reach2, self.partners, self.rows, self.room, self._needed, grid,
            parameters, out,
        )  # fmt: skip
