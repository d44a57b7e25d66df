"""Neighbour lists with a skin, made from the particles in the cells around each one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from md.particles.system import System
from md.search.lists.list_search import ListConfig
from md.search.lists.lister import Lister
from md.search.lists.listing import CellLister
from sfc import Curve, checks


@dataclass(frozen=True)
class Verlet(ListConfig):
    """Configuration of neighbour lists with a skin, rebuilt when a particle has moved too far.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve. None for "tiled"
            on a device and "row" on the CPU. Fused steps of a device sort the particles in memory at one of 8
            builds, and if they are fewer than 2^18 at one of 32.
        skin: in d, 0 or more; 0 rebuilds the lists at every step. "auto" tunes it during the run by measured
            times, so that no two runs are the same. None for the width that a model of the costs finds
            fastest on a device, by the number, density and largest speed of the particles
            (`md.search.lists.step_costs`), and on the CPU for 0.4 where lists are pruned and 0.3 elsewhere;
            or less in a periodic box too narrow for it. A width that was not given is chosen again when a
            run is saved.
        inner_skin: in d, up to `skin`: of the pruned lists that fused steps read, on a device and, in a box
            without an open side, on the CPU. None for the fastest by the same model, on the CPU for 0.1; the
            same as `skin` for no pruned lists. Without effect elsewhere.
        sorts: whether the particles are sorted in memory. False, on a device alone: they stay where they are,
            so that lists refer to memory in any order; there is no reorder then.

    Raises:
        TypeError: an order that is neither a name nor a curve, a skin that is no number, or `sorts` that is
            no bool.
        ValueError: a skin that is negative or not finite, or an inner skin wider than the skin.
    """

    name = "verlet"
    capabilities = replace(ListConfig.capabilities, divisible=True)
    cell_order: str | Curve | None = None
    skin: float | Literal["auto"] | None = None
    inner_skin: float | None = None
    sorts: bool = True

    def __post_init__(self):
        super().__post_init__()
        self._check("sorts", checks.flag)

    def lister(self, system: System) -> Lister:
        """Make the lister of a system, which finds the partners.

        Raises:
            ValueError: particles that are not sorted, on the CPU.
        """
        sorts = self.sorts and not (system.rows_stay and system.backend.runs_ahead)
        if not (self.sorts or system.backend.runs_ahead):
            raise ValueError(
                "sorts=False of Verlet on the CPU; allowed: on a device, whose lists need no order in "
                "memory; take sorts=True"
            )
        order = self.cell_order or ("tiled" if system.backend.runs_ahead else "row")
        return CellLister(order, system.grid.cutoff, system.particles, system.backend, sorts, system.by_id)
