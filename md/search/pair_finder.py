"""Pairs of particles while the search at work stays as it is, and no particle is moved in memory."""

from __future__ import annotations

from md.particles.system import System
from md.search.base import Search, SearchConfig
from md.search.bvh.reflexive import Reflexive
from md.search.grid.scattered import Scattered

# A grid of more than MOST_CELLS + CELLS_EACH * n cells is not made for n particles; a tree is used instead.
CELLS_EACH, MOST_CELLS = 64, 2**20
IN_PLACE = Reflexive(met="twice", atomics="none", data="unsorted")  # a tree that moves no particles


def pair_finder(system: System, config: SearchConfig = IN_PLACE) -> Search:
    """Make a search that moves no particles, ready for `pairs` and `touching`.

    Args:
        system: shared state of the simulation.
        config: of the search at work. If it moves particles, another one is taken: in cells, or in a tree if
            the box has far more cells than particles, or if particles differ in radius, because cells as wide
            as the widest hold many of the others.

    Raises:
        ValueError: a structure that does not fit in memory.
    """
    if config.capabilities.moves_particles:
        is_sparse = system.grid.size > MOST_CELLS + CELLS_EACH * system.n_rows
        has_tree = is_sparse or len(system.particles.radius)
        config = IN_PLACE if has_tree and not system.rows_stay else Scattered()
    finder = config.build(system)
    finder.update()
    return finder
