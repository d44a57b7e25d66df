"""Base classes of the searches on a tree, which sort every few steps and compute boxes at every step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from md import checks
from md.particles.system import System
from md.search.base import Search, SearchConfig
from md.search.bvh.curve_keys import halving
from md.search.bvh.tree import Tree
from md.search.policy import EverySteps
from sfc import Curve

REBUILD_EVERY = 16  # steps


class TreeConfig(SearchConfig):
    """Configuration of a search on a tree that sorts the particles along a curve every few steps.

    The boxes of the tree are computed again at each step, so no pair is missed however far particles have
    moved. An old tree is slower but gives the same pairs.

    Attributes:
        cell_order: the curve of the leaves.
        rebuild_every: steps from one sort to the next; 1 sorts at every step.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a number of steps that is no integer.
        ValueError: a number of steps below 1.
    """

    cell_order: str | Curve
    rebuild_every: int

    def __post_init__(self):
        self._check("cell_order", checks.order_of_cells)
        self._check("rebuild_every", checks.integer, unit="steps")

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Return the names of the curves of base 2."""
        return halving(dim)


class TreeSearch(Search):
    """Search on a tree over the particles of a system.

    Args:
        config: its configuration.
        system: shared state of the simulation.

    Attributes:
        tree: the `Tree` over the particles.
    """

    def __init__(self, config: TreeConfig, system: System):
        super().__init__(config, system, policy=EverySteps(system, config.rebuild_every))
        self.tree = Tree(self.particles.n, self.grid, self.backend, config.cell_order)

    def build(self) -> None:
        """Sort the particles along the curve in memory, and link the tree."""
        self.tree.build(self.particles.pos)
        self.particles.permute(self.tree.keys.order)

    @property
    def launch_state(self) -> bool:
        """Whether the tree was built, and no boxes of it were computed yet."""
        return self.tree.is_new

    @launch_state.setter
    def launch_state(self, is_new: Any) -> None:
        self.tree.is_new = is_new

    @property
    @abstractmethod
    def _reach_record(self) -> np.ndarray:
        """Length-1 record of the search radii; its `leaf2` is the square of the radius for leaves."""

    @contextmanager
    def _all_read(self) -> Iterator[None]:
        """Visit all leaves that a traversal reads the box of, within the search radius or not."""
        record = self._reach_record
        stored = record["leaf2"].copy()
        record["leaf2"] = np.inf
        try:
            yield
        finally:
            record["leaf2"] = stored
