"""Captured steps: a device gets several steps as one graph, captured once and launched from then on.

A step of a small system takes a device less time than its launches take the host. A graph holds the addresses of
all arrays, so it is launched only where the arrays are in the same roles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from md.particles.system import System
from md.search.base import Search
from md.search.rebuild import StepPlan

MOST_GRAPHS = 100


class CapturedGraph(NamedTuple):
    """Some steps as one launch.

    Attributes:
        launch: takes the steps.
        before, after: particle arrays, in the roles they have before and after.
    """

    launch: Callable[[], None]
    before: tuple
    after: tuple


class CapturedSteps:
    """The captured graphs of a run.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
        take: takes the steps of a plan by launches alone, the first of them being the given one.

    Attributes:
        launched: whether the last steps were launched as they had been captured before, so that their time is
            that of the steps alone.
    """

    def __init__(self, system: System, search: Search, take: Callable[[StepPlan, int], None]):
        self._particles, self._backend = system.particles, system.backend
        self._search, self._steps = search, take
        self._graphs: dict[tuple, CapturedGraph] = {}
        self.launched = False
        self._reallocated = search.reallocated
        self._compiled: set[tuple[bool, bool]] = set()

    def __len__(self) -> int:
        return len(self._graphs)

    def take(self, plan: StepPlan, step: int) -> StepPlan:
        """Take the steps of a plan, or the first of them.

        Args:
            plan: what is allowed.
            step: number of the first step, above 0.

        Returns:
            What was done.
        """
        lengths = self._backend.piece_lengths
        plan = plan._replace(steps=next(length for length in lengths if length <= plan.steps))
        kind = plan.build, plan.build_each
        if kind not in self._compiled:  # only kernels that have been called can be captured
            self._compiled.add(kind)
            self.launched = False
            self._steps(plan, step)
            return plan
        reallocated = self._search.reallocated
        if any(array is not known for array, known in zip(reallocated, self._reallocated, strict=True)):
            self._graphs.clear()  # they hold the addresses of arrays that are no longer used
            self._reallocated = reallocated
        before = (*self._particles.arrays, *reallocated)
        key = plan, step % 2, *map(id, before)
        self.launched = key in self._graphs
        if not self.launched:
            if len(self._graphs) == MOST_GRAPHS:
                self._graphs.clear()
            try:
                launch = self._backend.record(partial(self._steps, plan, step))
            except BaseException:
                self._particles.arrays = before[: len(self._particles.arrays)]  # nothing was done
                raise
            self._graphs[key] = CapturedGraph(launch, before, self._particles.arrays)
        graph = self._graphs[key]
        graph.launch()
        self._particles.arrays = graph.after
        return plan
