"""A search that works on a sorted copy of the particles, which stay where they are.

`build` brings the copy up to date, in an order that is given; the force kernel reads the copy alone, and its
output puts each force back into the row of the particle itself.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from md.backend.base import Array
from md.backend.prelude import finish, store
from md.laws import PairLaw
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc.cache import AccessStream
from sfc.compile import implement, inlined


class ScatterOutput(NamedTuple):
    """Output of a force kernel on a sorted copy: row k goes to the slot that the copy has it from.

    Attributes:
        rows: (n, dim) array, filled.
        order: (n,) int32 slot of each row of the copy.
    """

    rows: Array
    order: Array


class SortedCopySearch(Search):
    """Another search on a sorted copy of position and velocity, rebuilt and refreshed at every step.

    Args:
        config: of the search that works on the copy; one that does not move the particles itself.
        system: shared state of the simulation.
        order: (n,) int32 permutation on the backend: row k of the copy is of the particle in slot order[k]. Its
            owner may change its entries.
    """

    def __init__(self, config: SearchConfig, system: System, order: Array):
        super().__init__(config, system)
        self.capabilities = replace(config.capabilities, fusable=False)
        p, backend = self.particles, self.backend
        self._order, self._copy = order, copy.copy(p)
        self._copy.pos, self._copy.vel = (backend.rows(*p.pos.shape, p.pos.dtype) for _ in range(2))
        self._copy.radius = backend.empty(len(p.radius), p.radius.dtype)
        self._search = config.build(system.with_particles(self._copy))

    @property
    def name(self) -> str:
        """The name of the mode of a reorder that makes it."""
        return "shadow"

    def build(self) -> None:
        """Copy the particles as they are now, and build on the copy."""
        self.particles.copy_to(self._order, self._copy.pos, self._copy.vel, self._copy.radius)
        self._search.update()

    def reset(self) -> None:
        """Be as after construction."""
        super().reset()
        self._search.reset()

    def structure(self) -> tuple[Any, ...]:
        """Return the structure on the copy."""
        return self._search.structure()

    def force(self, law: PairLaw, out: Array) -> None:
        """Fold a pair law over the partners of every particle.

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
        """Return the rows of the copy that `force` reads, in the order it visits them."""
        return self._search.accesses()

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs whose centres are closer than a distance: (p, 2) int32, i < j, sorted."""
        self._copy_ids()
        return self._search.pairs(cutoff)

    def touching(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs that touch, as `Search.touching` does: (p, 2) int32, i < j, sorted."""
        self._copy_ids()
        return self._search.touching(cutoff)

    def _copy_ids(self) -> None:
        id, order = (self.backend.download(a) for a in (self.particles.id, self._order))
        self._copy.id = self.backend.upload(id[order])


@inlined
def scatter(out, grid, i, ri, vi, acc):
    """Write to the slot that row i of the copy is from."""
    store(out.rows, np.uint32(out.order[i]), acc)


implement(finish, ScatterOutput, lambda *kinds: scatter)
