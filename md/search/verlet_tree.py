"""Neighbour lists that are made from a tree instead of cells.

Partners are found by a descent in a wide bounding volume hierarchy (`md.search.tree_listing`); the
lists are used and rebuilt as those made from cells (`md.search.lists.list_search`). A tree needs no cells: it
serves clusters of any density, and particles of very unequal radii, of which the small ones then have short
lists. Lists from trees: Howard and others, Comput. Phys. Commun. 203 (2016) 45; Comput. Mater. Sci. 164
(2019) 139.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from md.particles.system import System
from md.search.bvh.curve_keys import halving
from md.search.lists.list_search import ListConfig
from md.search.lists.lister import Lister
from md.search.tree_listing import TreeLister
from sfc import Curve


@dataclass(frozen=True)
class VerletTree(ListConfig):
    """Configuration of neighbour lists with a skin, made from a tree.

    The parameters are those of `Verlet`, except for the order. If particles differ in radius, a list holds
    the partners that are within the skin of contact, and no lists are pruned.

    Args:
        cell_order: the curve along which the particles are sorted: a name of `sfc.curves(dim)` or a curve, of
            base 2. None for "hilbert". Fused steps of a device sort the particles in memory at one of 8
            builds, and if they are fewer than 2^18 at one of 32.
        skin: in d, 0 or more; see `Verlet`. The model of the costs gets the density along the curve, so that
            clusters get the width that suits them.
        inner_skin: in d, up to `skin`, of the pruned lists of fused steps; see `Verlet`.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a skin that is no number.
        ValueError: a skin that is negative or not finite, or an inner skin wider than the skin.
    """

    name = "verlet_tree"
    cell_order: str | Curve | None = None
    skin: float | Literal["auto"] | None = None
    inner_skin: float | None = None

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Return the names of the curves of base 2."""
        return halving(dim)

    def lister(self, system: System) -> Lister:
        """Make the lister of a system, which finds the partners.

        Raises:
            ValueError: a curve of another base or dimension.
        """
        order, p = self.cell_order or "hilbert", system.particles
        narrowest = None if system.may_overlap else p.narrowest
        return TreeLister(order, system.grid, system.grid.cutoff, p, system.backend, narrowest)
