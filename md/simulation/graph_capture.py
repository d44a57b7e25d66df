"""Steps given to a device at once: as launches that were prepared before, or as one graph of them.

A step of a small system takes a device less time than its launches take the host. Launches of fused steps are
prepared once and made again. If a plan keeps coming, its launches are captured as a graph, which is launched
by one call. Launches and graphs hold the addresses of all arrays, so they can only be used again when the arrays
have the same roles.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from md.particles.system import System
from md.search.base import Search
from md.search.rebuild import StepPlan

MOST_GRAPHS = 100
PATIENCE = int(os.environ.get("SL_PATIENCE", 4))  # times that a plan is taken before it is captured as a whole


class Launches(NamedTuple):
    """Launches that can be made again.

    Attributes:
        launch: makes them.
        before, after: particle arrays, in their roles before and after the launches.
    """

    launch: Callable[[], None]
    before: tuple
    after: tuple


class LaunchCache:
    """Launches by what they do and the roles of the particle arrays, until the search replaces its arrays.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
    """

    def __init__(self, system: System, search: Search):
        self._particles, self._search = system.particles, search
        self._known: dict[tuple, Launches] = {}
        self._generation = search.generation

    def __len__(self) -> int:
        return len(self._known)

    def key(self, *what: object) -> tuple:
        """Return the key of something that is launched with the particle arrays in their present roles."""
        if self._generation != self._search.generation:
            self._known.clear()  # they hold the addresses of arrays that are no longer used
            self._generation = self._search.generation
        return *what, *map(id, self._particles.arrays)

    def __contains__(self, key: tuple) -> bool:
        return key in self._known

    def keep(self, key: tuple, launch: Callable[[], None], before: tuple) -> None:
        """Keep launches that leave the particle arrays in their present roles."""
        if len(self._known) == MOST_GRAPHS:
            self._known.clear()
        self._known[key] = Launches(launch, before, self._particles.arrays)

    def launch(self, key: tuple) -> None:
        """Make known launches again."""
        known = self._known[key]
        known.launch()
        self._particles.arrays = known.after


class PreparedParts:
    """Parts of fused steps, such as a build, whose launches are prepared once.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
    """

    def __init__(self, system: System, search: Search):
        self._particles, self._backend = system.particles, system.backend
        self._cache = LaunchCache(system, search)

    def take(self, part: str, step: int, work: Callable[[], None]) -> None:
        """Do work of a step, or make its launches again.

        Args:
            part: name of the work. All work of this name, at an even or at an odd step, makes the same launches
                if the particle arrays have the same roles, and does nothing else on the backend.
            step: number of the step.
            work: does it.
        """
        key, before = self._cache.key(part, step % 2), self._particles.arrays
        if key in self._cache:
            self._cache.launch(key)
            return
        self._cache.keep(key, self._backend.note(work), before)


class CapturedSteps:
    """Captured graphs of a run.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
        take: function that takes the steps of a plan by kernel launches only, from a given step on.
        fused: whether the steps are fused; the launches of others are not prepared.

    Attributes:
        launched: whether the last steps were launched from a graph captured before, so that their time
            contains no capture.
    """

    def __init__(
        self, system: System, search: Search, take: Callable[[StepPlan, int], None], fused: bool = False
    ):
        self._particles, self._backend = system.particles, system.backend
        self._search, self._steps, self._fused = search, take, fused
        self._graphs = LaunchCache(system, search)
        self.launched = False
        self._generation = search.generation
        self._compiled: set[tuple[bool, ...]] = set()
        self._asked: Counter[object] = Counter()

    def __len__(self) -> int:
        return len(self._graphs)

    def _piece(self, plan: StepPlan) -> int:
        """Return the number of steps of the next graph: many only if the plan keeps coming.

        Many are the longest piece, or a shorter plan that starts with a build or a pruning, as a whole. Fused
        steps are taken as a whole at once.
        """
        longest, *shorter = self._backend.piece_lengths
        if self._fused:
            return min(plan.steps, longest)
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
            self._compiled.clear()  # other kernels may be called from now on
            self._generation = self._search.generation
            if self._fused:
                self._asked.clear()
        key, before = self._graphs.key(plan, step % 2), self._particles.arrays
        self.launched = key in self._graphs
        if not self.launched:
            if not self._is_captured(plan, key):
                self._steps(plan, step)
                return plan
            try:
                graph = self._backend.record(partial(self._steps, plan, step))
            except BaseException:
                self._particles.arrays = before  # no step was taken
                raise
            self._graphs.keep(key, graph, before)
        self._graphs.launch(key)
        return plan

    def _is_captured(self, plan: StepPlan, key: tuple) -> bool:
        """Return whether a plan is captured now: its kernels were called before, and it keeps coming."""
        if self._fused:
            self._asked[key] += 1
            return self._asked[key] > PATIENCE
        kind = plan.build, plan.build_each
        is_compiled = kind in self._compiled
        self._compiled.add(kind)
        return is_compiled
