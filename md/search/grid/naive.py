"""All-pairs search: every particle visits every other. O(n^2); the reference for all other searches."""

from __future__ import annotations

from dataclasses import dataclass

import numba

from md.backend.prelude import displacement, dot, finish, load, slot_of
from md.laws.pair import initial, interact, result
from md.particles.system import System
from md.search.base import Search, SearchConfig
from sfc.compile import kernel


@dataclass(frozen=True)
class Naive(SearchConfig):
    """Configuration of the all-pairs search: each particle visits all n - 1 others in memory order."""

    name = "naive"

    def build(self, system: System) -> NaiveSearch:
        """Make the search for a system."""
        return NaiveSearch(self, system)


class NaiveSearch(Search):
    """All-pairs search over the particles of a system."""

    def build(self) -> None:
        """Do nothing: there is no structure."""

    def structure(self) -> tuple[()]:
        """Return no arrays."""
        return ()


@kernel(parallel=True)
def force(n, pos, vel, work, grid, law, out):
    """Compute out[i], the law folded over every j != i."""
    for item in numba.prange(n):
        g = grid[0]
        i = slot_of(work, item)
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = initial(law, ri)
        for j in range(n):
            if j != i:
                dr = displacement(g, ri, load(pos, j, g))
                acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        finish(out, g, i, ri, vi, result(law, ri, vi, acc))
