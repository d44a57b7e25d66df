"""All pairs: every particle visits every other. O(n^2), the reference that every search must agree with."""

import numba

from md.backend.prelude import displacement, dot, finish, load, slot_of
from md.laws.pair import initial, interact, result
from md.search.base import Search
from sfc.compile import kernel


class Naive(Search):
    """Visit all n - 1 others in memory order; no structure to build."""

    name = "naive"

    def _allocate(self) -> None:
        pass

    def build(self) -> None:
        """Nothing to build."""

    def _structure(self):
        return ()


@kernel(parallel=True)
def force(n, pos, vel, work, grid, law, out):
    """out[i] = the law folded over every j != i."""
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
