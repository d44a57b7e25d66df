"""Searches along an order that is not that of memory: by work items, or on a sorted copy of the particles.

`build` updates the copy, in a given order. The force kernel reads the copy only, and its output scatters each
force to the particle's own row.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.backend.prelude import finish, store
from md.laws import PairLaw
from md.particles.arrays import ParticleArrays
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc.cache import AccessStream
from sfc.compile import implement, inlined


class Order(NamedTuple):
    """Permutation of the particles along which a search works; the particles stay where they are in memory.

    Attributes:
        slots: (n,) int32 of the backend: the slot of the particle in each place. Entries may change between
            steps.
        is_copied: whether the search works on a copy of the particles in this order; else its work items
            follow it.
    """

    slots: Array
    is_copied: bool


def build_search(config: SearchConfig, system: System, order: Order | None = None) -> Search:
    """Make the search of a configuration, in an order if one is given.

    Args:
        config: of the search; with an order it must not move the particles.
        system: shared state of the simulation.
        order: of its work; None for that of memory.

    Raises:
        ValueError: parameters that do not fit the box.
    """
    if order is None:
        return config.build(system)
    if order.is_copied:
        return SortedCopySearch(config, system, order.slots)
    system.particles.work = order.slots
    return config.build(system)


def room_for_copy(particles: ParticleArrays, backend: Backend) -> ParticleArrays:
    """Return particles with positions, velocities and radii to fill, and otherwise the given arrays."""
    copied, dim, precision = copy.copy(particles), particles.box.dim, particles.pos.dtype
    copied.pos, copied.vel = (backend.rows(particles.n, dim, precision) for _ in range(2))
    copied.radius = backend.empty(len(particles.radius), precision)
    return copied


class ScatterOutput(NamedTuple):
    """Output of a force kernel on a sorted copy: row k is written to the slot it was copied from.

    Attributes:
        rows: (n, dim) array, filled.
        order: (n,) int32 slot of each row of the copy.
    """

    rows: Array
    order: Array


class SortedCopySearch(Search):
    """Search that runs another one on a sorted copy of position and velocity, updated at every step.

    Args:
        config: of the search on the copy; it must not move the particles.
        system: shared state of the simulation.
        order: (n,) int32 permutation on the backend: row k of the copy is the particle in slot order[k]. The
            reorder that owns the array may change its entries.
    """

    def __init__(self, config: SearchConfig, system: System, order: Array):
        super().__init__(config, system)
        self.capabilities = replace(config.capabilities, fusable=False)
        self._order, self._copy = order, room_for_copy(self.particles, self.backend)
        self._search = config.build(system.with_particles(self._copy))

    @property
    def name(self) -> str:
        """Name of the reorder mode that uses this search."""
        return "shadow"

    def build(self) -> None:
        """Copy the present particles in the given order, and build on the copy."""
        self.particles.copy_to(self._order, self._copy.pos, self._copy.vel, self._copy.radius)
        self._search.update()

    def reset(self) -> None:
        """Return to the state after construction, with the search on the copy."""
        super().reset()
        self._search.reset()

    def structure(self) -> tuple[Any, ...]:
        """Return the structure of the search on the copy."""
        return self._search.structure()

    def force(self, law: PairLaw, out: Array) -> None:
        """Compute the force on every particle, or another sum of a pair law over its partners.

        Args:
            law: the law.
            out: (n, dim) array of the backend, filled: the force on each particle, in its own slot.
        """
        self._search.force(law, ScatterOutput(out, self._order))

    @property
    def slots(self) -> Array:
        """(n,) int32 slot of the particle in each row of the copy."""
        return self._order

    def accesses(self) -> AccessStream:
        """Return the rows of the copy that `force` reads, in the order of its reads."""
        return self._search.accesses()

    def access_count(self) -> int:
        """Return the number of rows in `accesses`, without storing them."""
        return self._search.access_count()

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs with centres closer than a cutoff: (p, 2) int32, i < j, sorted."""
        self._copy_ids()
        return self._search.pairs(cutoff)

    def touching(self, cutoff: float) -> np.ndarray:
        """Return the ids of the touching pairs, as `Search.touching` does: (p, 2) int32, i < j, sorted."""
        self._copy_ids()
        return self._search.touching(cutoff)

    def _copy_ids(self) -> None:
        id, order = (self.backend.download(a) for a in (self.particles.id, self._order))
        self._copy.id = self.backend.upload(id[order])


@inlined
def scatter(out, grid, i, ri, vi, acc):
    """Write the force on row i of the copy to the slot that the row was copied from."""
    store(out.rows, np.uint32(out.order[i]), acc)
    return 0.0


implement(finish, ScatterOutput, lambda *kinds: scatter)
