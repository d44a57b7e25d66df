"""Graph capture: a device gets several steps as one graph, which is captured once and launched again.

A step of a small system takes a device less time than its launches take the host. A graph holds the addresses
of all arrays, so it can only be launched again when the arrays have the same roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from md.particles.system import System
from md.search.base import Search
from md.search.rebuild import StepPlan

MOST_GRAPHS = 100
PATIENCE = 4  # times that a plan is taken in short pieces, which many plans share, before it is one graph


class CapturedGraph(NamedTuple):
    """Graph of several steps.

    Attributes:
        launch: launches the graph.
        before, after: particle arrays, in their roles before and after the steps.
    """

    launch: Callable[[], None]
    before: tuple
    after: tuple


class CapturedSteps:
    """Captured graphs of a run.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
        take: function that takes the steps of a plan by kernel launches only, from a given step on.

    Attributes:
        launched: whether the last steps were launched from a graph captured before, so that their time
            contains no capture.
    """

    def __init__(self, system: System, search: Search, take: Callable[[StepPlan, int], None]):
        self._particles, self._backend = system.particles, system.backend
        self._search, self._steps = search, take
        self._graphs: dict[tuple, CapturedGraph] = {}
        self.launched = False
        self._generation = search.generation
        self._compiled: set[tuple[bool, ...]] = set()
        self._asked: Counter[StepPlan] = Counter()

    def __len__(self) -> int:
        return len(self._graphs)

    def _piece(self, plan: StepPlan) -> int:
        """Return the number of steps of the next graph: many only if the plan keeps coming.

        Many are the longest piece, or a shorter plan that starts with a build or a pruning, as a whole.
        """
        longest, *shorter = self._backend.piece_lengths
        is_whole = plan.steps >= longest or plan.build or plan.prune
        if not shorter or plan.steps <= shorter[0] or not is_whole:
            return next(length for length in (longest, *shorter) if length <= plan.steps)
        whole = plan._replace(steps=min(plan.steps, longest))
        self._asked[whole] += 1
        return whole.steps if self._asked[whole] > PATIENCE else shorter[0]

    def take(self, plan: StepPlan, step: int) -> StepPlan:
        """Take the steps of a plan, or the first of them.

        Args:
            plan: the plan.
            step: number of the first step, above 0.

        Returns:
            The plan of the steps that were taken.
        """
        plan = plan._replace(steps=self._piece(plan))
        if self._generation != self._search.generation:
            self._graphs.clear()  # graphs hold the addresses of arrays that are no longer used
            self._compiled.clear()  # and other kernels may be called from now on
            self._generation = self._search.generation
        kind = plan.build, plan.build_each, plan.prune, plan.prune and plan.steps > 1, plan.moves
        if kind not in self._compiled:  # only kernels that were called before can be captured
            self._compiled.add(kind)
            self.launched = False
            self._steps(plan, step)
            return plan
        before = self._particles.arrays
        key = plan, step % 2, *map(id, before)
        self.launched = key in self._graphs
        if not self.launched:
            if len(self._graphs) == MOST_GRAPHS:
                self._graphs.clear()
            try:
                launch = self._backend.record(partial(self._steps, plan, step))
            except BaseException:
                self._particles.arrays = before  # no step was taken
                raise
            self._graphs[key] = CapturedGraph(launch, before, self._particles.arrays)
        graph = self._graphs[key]
        graph.launch()
        self._particles.arrays = graph.after
        return plan
