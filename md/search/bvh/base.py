"""Base classes of the searches on a tree, which sort every few steps and compute boxes at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from md import checks
from md.backend.base import Array
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

    A derived class makes the records of its search radii, `_centres` for boxes of centres and `_spheres` for
    boxes of spheres.

    Args:
        config: its configuration.
        system: shared state of the simulation.
    """

    _centres: np.ndarray
    _spheres: np.ndarray
    _innermost = "leaf2"  # field of the records; infinite for `accesses`
    _by_centres = False

    def __init__(self, config: TreeConfig, system: System):
        super().__init__(config, system, policy=EverySteps(system, config.rebuild_every))

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs with centres closer than a cutoff: (p, 2) int32, i < j, sorted."""
        self._by_centres = True
        try:
            return super().pairs(cutoff)
        finally:
            self._by_centres = False

    def _boxes_of(self) -> tuple[Array, np.ndarray]:
        """Return the radii, (0,) if boxes enclose centres, and the record of search radii."""
        is_of_centres = self._by_centres or not len(self.particles.radius)
        reach = self._centres if is_of_centres else self._spheres
        if self._reads_all:
            reach = reach.copy()
            reach[self._innermost] = np.inf
        return self._no_radius if is_of_centres else self.particles.radius, reach


class BinaryTreeSearch(TreeSearch):
    """Search on a binary tree.

    Attributes:
        tree: the `Tree` over the particles.
    """

    def __init__(self, config: TreeConfig, system: System):
        super().__init__(config, system)
        self.tree = Tree(self.particles.n, self.grid, self.backend, config.cell_order)
        self._in_place = self.backend.empty(0, np.int32)

    def build(self) -> None:
        """Sort the particles along the curve in memory, and link the tree."""
        self.tree.build(self.particles.pos)
        self.particles.permute(self.tree.keys.order)

    @property
    def boxes(self) -> tuple[Array, Array, Array]:
        """Nodes and ropes of the tree, and the slot of each leaf, (0,) if it is the leaf's number."""
        return self.tree.nodes, self.tree.ropes, self._in_place

    @property
    def launch_state(self) -> bool:
        """Whether the tree was built, and no boxes of it were computed yet."""
        return self.tree.is_new

    @launch_state.setter
    def launch_state(self, is_new: Any) -> None:
        self.tree.is_new = is_new
