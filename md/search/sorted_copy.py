"""A search that works on a sorted copy of the particles, which stay where they are.

`build` brings the copy up to date, in an order that is given; the force kernel reads the copy alone, and its
output puts each force back into the row of the particle itself.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from md.backend.prelude import finish, store
from md.laws import PairLaw
from md.search.base import Search
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
    """Another search on a sorted copy of position and velocity.

    Args:
        search: works on the copy; one that does not sort the data itself.
        order: (n,) int32 permutation on the backend: row k of the copy is of the particle in slot order[k].
            Whoever owns it may change what is in it.
    """

    name = "shadow"

    def __init__(self, search: Search, order: Array):
        self._search, self._order, self.repeats_on = search, order, search.repeats_on
        self.records = search.records

    def _allocate(self) -> None:
        p, backend = self.particles, self.backend
        self._copy = copy.copy(p)
        self._copy.pos, self._copy.vel = (backend.rows(*p.pos.shape, p.pos.dtype) for _ in range(2))
        self._copy.radius = backend.empty(len(p.radius), p.radius.dtype)
        self._search = self._search.bind(self._copy, self.grid, backend)

    def build(self) -> None:
        """Copy the particles as they are now, and build on the copy."""
        self.particles.copy_to(self._order, self._copy.pos, self._copy.vel, self._copy.radius)
        self._search.build()

    def forget(self) -> None:
        """Nor does the copy outlive a step."""
        self._search.forget()

    def _structure(self) -> tuple[Array, ...]:
        return self._search._structure()

    def force(self, law: PairLaw, out: Array) -> None:
        """Fold a pair law over the partners of every particle.

        Args:
            law: the law.
            out: (n, dim) array of the backend, filled: the force on each particle, in its own slot.
        """
        self._search.force(law, ScatterOutput(out, self._order))

    @property
    def slots(self) -> Array:
        """Of the copy."""
        return self._order

    def accesses(self) -> AccessStream:
        """The rows of the copy that `force` reads, in the order it visits them."""
        return self._search.accesses()

    def pairs(self, cutoff: float) -> np.ndarray:
        """Ids of the pairs closer than a distance; see `Search.pairs`."""
        self._name_rows()
        return self._search.pairs(cutoff)

    def touching(self, cutoff: float) -> np.ndarray:
        """Ids of the pairs that touch; see `Search.touching`."""
        self._name_rows()
        return self._search.touching(cutoff)

    def _name_rows(self) -> None:
        id, order = (self.backend.download(a) for a in (self.particles.id, self._order))
        self._copy.id = self.backend.upload(id[order])


@inlined
def scatter(out, grid, i, ri, vi, acc):
    """Write to the slot that row i of the copy is from."""
    store(out.rows, np.uint32(out.order[i]), acc)


implement(finish, ScatterOutput, lambda *kinds: scatter)
