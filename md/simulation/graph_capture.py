"""Steps given to a device at once: as launches that were prepared before, or as one graph of them.

A step of a small system takes a device less time than its launches take the host. The parts of fused steps,
such as a build, are prepared once, and their launches are made again. All launches of a plan that comes twice
are captured as a graph, which is launched by one call. Launches and graphs hold the addresses of all arrays,
so that they can only be used again while the arrays have the same roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from md.particles.system import System
from md.search.base import Search
from md.search.policy import StepPlan

MOST_KEPT = 100  # graphs, or parts of steps
PATIENCE = 4  # times that steps that are not fused are taken in short pieces before they are one graph


class Launches(NamedTuple):
    """Launches that can be made again.

    Attributes:
        make: makes them.
        before, after: particle arrays in their roles before and after the launches.
        state: `Search.launch_state` after them.
    """

    make: Callable[[], None]
    before: tuple
    after: tuple
    state: Any


class LaunchCache:
    """Launches by what they do, the roles of the particle arrays and the state of the search.

    All are forgotten when the search replaces its arrays.

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

    def key(self, *what: Hashable) -> tuple:
        """Return the key of what is to be launched now."""
        if self._generation != self._search.generation:
            self._known.clear()  # these launches hold the addresses of arrays that are no longer used
            self._generation = self._search.generation
        return *what, self._search.launch_state, *map(id, self._particles.arrays)

    def __contains__(self, key: tuple) -> bool:
        return key in self._known

    def keep(self, key: tuple, make: Callable[[], None], before: tuple) -> None:
        """Keep launches by their key; the present roles and state are those after the launches.

        Args:
            key: as `key` returned it before the launches.
            make: makes the launches again.
            before: particle arrays in their roles before the launches.
        """
        if len(self._known) == MOST_KEPT:
            self._known.clear()
        self._known[key] = Launches(make, before, self._particles.arrays, self._search.launch_state)

    def launch(self, key: tuple) -> None:
        """Make known launches again."""
        known = self._known[key]
        known.make()
        self._particles.arrays, self._search.launch_state = known.after, known.state


class PreparedParts:
    """Parts of fused steps with launches that are prepared once.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
    """

    def __init__(self, system: System, search: Search):
        self._particles, self._backend = system.particles, system.backend
        self._known = LaunchCache(system, search)

    def take(self, part: str, step: int, work: Callable[[], None]) -> None:
        """Do a part of a step, or make its launches again.

        Args:
            part: name of the part. At all even steps, and at all odd steps, a part has the same launches, as
                far as the roles of the arrays and the state of the search are the same.
            step: number of the step.
            work: does the part, by launches that `Backend.note` notes.
        """
        key, before = self._known.key(part, step % 2), self._particles.arrays
        if key in self._known:
            self._known.launch(key)
        else:
            self._known.keep(key, self._backend.note(work), before)


class CapturedSteps:
    """Captured graphs of a run.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
        take: function that takes the steps of a plan by kernel launches only, from a given step on.
        fused: whether the steps are fused.

    Attributes:
        launched: whether the last steps were launched from a graph captured before, so that their time
            contains no capture.
    """

    def __init__(self, system: System, search: Search, take: Callable[[StepPlan, int], None], fused: bool):
        self._particles, self._backend = system.particles, system.backend
        self._search, self._steps, self._fused = search, take, fused
        self._graphs = LaunchCache(system, search)
        self.launched = False
        self._generation = search.generation
        self._called: set[tuple] = set()
        self._asked: Counter[StepPlan] = Counter()

    def __len__(self) -> int:
        return len(self._graphs)

    def _piece(self, plan: StepPlan) -> int:
        """Return the number of steps of the next graph.

        Fused steps are taken as a whole, up to the longest piece. Others are taken in many steps only if the
        plan keeps coming: the longest piece, or a shorter plan that starts with a build, as a whole.
        """
        longest, *shorter = self._backend.piece_lengths
        if self._fused:
            return min(plan.steps, longest)
        is_whole = plan.steps >= longest or plan.build
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
        key, before = self._graphs.key(plan, step % 2), self._particles.arrays
        self.launched = key in self._graphs
        if not self.launched:
            if not self._were_called(plan, key):
                self._steps(plan, step)
                return plan
            state = self._search.launch_state
            try:
                graph = self._backend.record(partial(self._steps, plan, step))
            except BaseException:
                self._particles.arrays, self._search.launch_state = before, state  # no step was taken
                raise
            self._graphs.keep(key, graph, before)
        self._graphs.launch(key)
        return plan

    def _were_called(self, plan: StepPlan, key: tuple) -> bool:
        """Return whether all kernels of a plan were called before: only those can be captured.

        Of fused steps it is the same plan that was taken before, so that one that comes once is not captured.
        """
        if self._generation != self._search.generation:
            self._called.clear()  # other kernels may be called from now on
            self._generation = self._search.generation
        kind = key if self._fused else (plan.build, plan.build_each)
        were_called = kind in self._called
        self._called.add(kind)
        return were_called
