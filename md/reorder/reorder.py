"""Reorder along an ordering of the cells: of the particles in memory, or of the work on them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from md import checks
from md.backend import Backend, Cpu
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.reorder.base import RunTrigger, Trigger
from md.reorder.triggers import active
from md.search.sorted_copy import Order
from sfc import Curve

MODES = ("data", "threads", "shadow")
ROUTES = ("device", "host")
SCHEDULED = "a function of the step, or an md.reorder.RunTrigger"


@dataclass(frozen=True)
class Reorder:
    """Configuration of a reorder: ordering, trigger, mode, and the place where the order is computed.

    Args:
        ordering: a name of `sfc.orderings(dim)` or a curve; ranks the cells.
        schedule: the trigger, such as `md.Every(500)`, `md.Moved(0.5)`, `md.Decayed("auto")`, or any function
            of the step.
        mode: what is reordered. "data": position, velocity and id are moved to the sorted slot.

            The other two do not move the particles, and keep the permutation of the last reorder until the
            next one; before the first it is the identity.

            "threads": work item t of the force kernel processes the particle in slot order[t], so that
            neighbouring threads (on the CPU, consecutive iterations of a thread) process neighbouring
            particles. The build of the search's structure and the integration stay in memory order.

            "shadow": the search works on a copy of position and velocity; row k is the particle in
            slot order[k]. At every step the phase `build` refreshes the copy from the particles through the
            permutation, and the phase `force` scatters each force through it to its particle's own row. The
            copy takes room for 2 n rows. No fused step: that would move the copy.
        via: where the order is computed. "device": where the particles are stored; "host": they are copied to
            the host, sorted and gathered there on all cores, and copied back, as in [thesis]. Under
            "threads" and "shadow" only the positions are copied there, and the permutation back.

    Raises:
        TypeError: an ordering that is neither a name nor a curve, or a schedule that cannot be called.
        ValueError: an unknown mode or route.
    """

    ordering: str | Curve
    schedule: Trigger | RunTrigger
    mode: str = "data"
    via: str = "device"

    def __post_init__(self):
        order = checks.order_of_cells("ordering of Reorder", self.ordering)
        object.__setattr__(self, "ordering", order)
        object.__setattr__(self, "mode", checks.word("mode of Reorder", self.mode, MODES))
        object.__setattr__(self, "via", checks.word("via of Reorder", self.via, ROUTES))
        if isinstance(self.schedule, type):
            raise checks.refuse_class("schedule", self.schedule, SCHEDULED, "make one: md.Every(500)")
        if not isinstance(self.schedule, RunTrigger):
            checks.function("schedule", self.schedule, SCHEDULED, "such as md.Every(500)")

    def build(self, system: System) -> ActiveReorder:
        """Make the reorder of the particles of a system, with its rank table and buffers allocated.

        Raises:
            ValueError: an unknown ordering, one of another dimension, or more cells than there is memory for.
        """
        return ActiveReorder(self, system)


class ActiveReorder:
    """Reorder at work on the particles of a system.

    Args:
        config: its configuration.
        system: shared state of the simulation.

    Attributes:
        config: as given.
        trigger: decides at which steps to reorder; its `chosen` is the interval of a self-tuning trigger
            (`ChosenInterval`).
        is_applied: whether the particles have been reordered, in this run or in the run that it resumes.
    """

    def __init__(self, config: Reorder, system: System):
        self.config, self.is_applied = config, False
        self._steps = array("q")
        self._system, self._backend = system, system.backend
        self._place: Backend = system.backend if config.via == "device" else Cpu()
        self._sort = CellSort(config.ordering, system.n_rows, system.grid, self._place)
        if config.mode != "data":
            empty = system.backend.empty(system.n_rows, np.int32)
            self._order = self._sort.order if self._place is system.backend else empty
            self._order[...] = system.backend.arange(system.n_rows)
        self.trigger = active(config.schedule, system)

    def __repr__(self) -> str:
        return f"<ActiveReorder of {self.config!r}, {len(self._steps)} times so far>"

    @property
    def steps(self) -> list[int]:
        """Numbers of the steps before which the particles were reordered, since this reorder was made."""
        return self._steps.tolist()

    @property
    def order(self) -> Order | None:
        """Permutation along which the search works; None if the particles are moved instead."""
        mode = self.config.mode
        return None if mode == "data" else Order(self._order, is_copied=mode == "shadow")

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the state that a run needs to resume: name -> array on the host."""
        state = {"applied": np.array([self.is_applied], np.int32)}
        if self.config.mode != "data":
            state["order"] = self._backend.download(self._order)
        return state | self.trigger.state_dict()

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` of a reorder of the same configuration returned.

        Raises:
            ValueError: an entry is missing or of another kind.
        """
        if self.config.mode != "data":
            order, n = state.get("order"), self._system.n_rows
            if order is None or order.dtype != np.int32 or not np.array_equal(np.sort(order), np.arange(n)):
                raise ValueError(f"order {order!r:.100}; allowed: a permutation of {n} slots, int32")
            self._order[...] = self._backend.upload(order)
        applied = state.get("applied", np.ones(1, np.int32))  # older files do not have it
        if applied.dtype != np.int32 or applied.shape != (1,) or applied[0] not in (0, 1):
            raise ValueError(f"applied {applied!r:.100}; allowed: 0 or 1, int32, shape (1,)")
        self.is_applied = bool(applied[0])
        self.trigger.load_state(state)

    def apply(self, step: int) -> None:
        """Sort by the rank of the cell before a step; the sort is stable within a cell."""
        self.is_applied = True
        self._steps.append(step)
        if self.config.mode == "data":
            self._move()
        else:
            self._find_order()
        self.trigger.reordered(step)

    def _move(self) -> None:
        particles = self._system.particles
        if self._place is self._backend:
            self._sort.apply(particles)
        else:
            elsewhere = particles.on(self._place)
            self._sort.apply(elsewhere)
            particles.take_from(elsewhere)

    def _find_order(self) -> None:
        pos, backend = self._system.particles.pos, self._backend
        if self._place is backend:
            self._sort.find(pos)
        else:
            self._sort.find(self._place.upload_rows(backend.download(pos)))
            self._order[...] = backend.upload(self._sort.order)
