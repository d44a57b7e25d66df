"""What searches on a tree (`md.search.bvh.tree`) have in common: its age."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from md.backend.base import Array
from md.search.base import Search, StepPlan
from md.search.bvh.curve_keys import halving
from md.search.bvh.tree import Tree
from sfc.cache import AccessStream


class TreeSearch(Search):
    """A search that sorts the particles along a curve and links the tree of them every few steps only.

    The boxes of the tree are found anew at each step, so that no pair is missed however far particles have
    moved: an old tree is slower, not wrong.

    Attributes:
        tree: over the particles.
        rebuild_every: steps from one sort to the next; 1 for at each.
        builds: how often it sorted.
    """

    sorts_data = True  # so that there is no order to give it from outside
    tree: Tree
    rebuild_every: int
    builds: int = 0

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """The curves that halve their cubes."""
        return halving(dim)

    def forget(self) -> None:
        """Sort before the next step."""
        self._age = self.rebuild_every

    def build(self) -> None:
        """Sort the particles along the curve, move them there, and link the tree, where that is due."""
        if self._age >= self.rebuild_every:
            self.rebuild()
            self._age = 0
            self.builds += 1

    def rebuild(self) -> None:
        """Sort and link."""
        self.tree.build(self.particles.pos)
        self.particles.permute(self.tree.keys.order)

    def plan(self) -> StepPlan:
        """As many steps as until the next sort; where that comes at each, as many as one likes.

        There also a tree that was made since, for a look, is made anew.
        """
        if self.rebuild_every == 1:
            return super().plan()
        build = self._age >= self.rebuild_every
        return StepPlan(self.rebuild_every - (0 if build else self._age), build, rebuild=False)

    def steps_taken(self, plan: StepPlan) -> None:
        """The tree has grown older."""
        self._age = 1 if plan.rebuild else plan.steps + (0 if plan.build else self._age)
        self.builds += plan.steps if plan.rebuild else plan.build

    def step_taken(self) -> None:
        """The tree has grown older."""
        self._age += 1

    @property
    @abstractmethod
    def _far(self) -> np.ndarray:
        """Length-1 record of how far walks look, whose `leaf2` is the square of that for leaves."""

    def _collect(self, reach2: float, radius: Array) -> AccessStream:
        """Of all leaves that a walk sees, in reach or not: it reads the box of each."""
        far, kept = self._far, self._far["leaf2"].copy()
        far["leaf2"] = np.inf
        try:
            return super()._collect(reach2, radius)
        finally:
            far["leaf2"] = kept
