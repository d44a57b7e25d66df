"""Looking at the particles before the first step."""

from __future__ import annotations

import numpy as np

from md.backend import Backend
from md.faults import OverlappingStart
from md.particles.arrays import Particles
from md.particles.cell_grid import Grid
from md.search import Reflexive, Scattered, Search
from md.search.bvh.base import TreeSearch
from md.watch import Watch

# A grid of more than MOST_CELLS + CELLS_EACH * n cells is not made for n particles: a tree needs none.
CELLS_EACH, MOST_CELLS = 64, 2**20


def begin(
    watch: Watch, search: Search, particles: Particles, grid: Grid, backend: Backend, reach: float | None
) -> OverlappingStart | None:
    """Let a watch see the start, by a search of its own, so that the run's stays as it is.

    Args:
        watch: of the run.
        search: the choice, not bound; one that would move the particles is not taken.
        particles: of the run.
        grid: of the run.
        backend: of the run.
        reach: of the law, in d; None where the pairs are not needed, for they may be many.

    Returns:
        What `Watch.begin` does.
    """
    if reach is None:
        return watch.begin(np.empty((0, 2), np.int32))
    finder = search
    if search.sorts_data:
        sparse = isinstance(search, TreeSearch) and grid.size > MOST_CELLS + CELLS_EACH * particles.n
        finder = Reflexive(met="twice", atomics="none", data="unsorted") if sparse else Scattered()
    finder = finder.bind(particles, grid, backend)
    finder.build()
    return watch.begin(finder.touching(reach))
