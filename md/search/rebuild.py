"""When the structure of a search is rebuilt, and how many steps are taken before that is decided again.

The step loop and the fault monitor read a policy only. Three are enough: a structure that is rebuilt at every
step, one that is used for k steps (trees), and one that holds until a particle has moved too far (neighbour
lists).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard, unguarded
from md.search.skin import Skin

MANY_STEPS = 2**30
MARGIN = 0.95  # share of the distance a particle may travel that is planned for
RECALL = 0.98  # of the longest stride of the fastest particle so far: the next may be as fast
LONGEST = 10_000  # steps that are planned for at most


class StepPlan(NamedTuple):
    """Steps without a decision in between.

    Attributes:
        steps: how many at most.
        build: whether the structure is rebuilt (`Search.rebuild`) before the first of them.
        build_each: and before each of the others.
    """

    steps: int
    build: bool
    build_each: bool


class RebuildPolicy:
    """Rebuild at every step: base of the policies.

    Args:
        system: shared state of the simulation.

    Attributes:
        builds: how often the structure was built for steps since the search was made.
        guard: what a fused step reads to stop before the structure is too old (`DisplacementGuard`).
        tunes: whether `observe_steps` is of use to it.
    """

    tunes: bool = False

    def __init__(self, system: System):
        self.builds = 0
        self.guard: DisplacementGuard = unguarded(system.backend)

    @property
    def is_due(self) -> bool:
        """Whether the structure has to be rebuilt before it is used; may wait for the device."""
        return True

    @property
    def must_wait(self) -> bool:
        """Whether the next build must be made by `Search.update`, which waits for the device."""
        return False

    def plan(self) -> StepPlan:
        """Return what comes before the next steps, and how many there may be."""
        return StepPlan(MANY_STEPS, build=True, build_each=True)

    def built(self) -> None:
        """Record a build by `Search.update`."""

    def steps_taken(self, plan: StepPlan) -> None:
        """Record steps that were launched as planned."""
        self.builds += plan.steps

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured."""
        self.builds += 1

    def reset(self) -> None:
        """Be as after construction: a run that is saved here and one that is loaded plan alike."""

    def process(self, words: np.ndarray, dt: float) -> int:
        """Plan by the words of the displacement guard at some moment.

        Args:
            words: (4,) uint64, a host copy.
            dt: length of a fused step in time units.

        Returns:
            Fused steps that were halted up to then.
        """
        return 0

    def retry(self) -> None:
        """Prepare to take halted steps again; all work that was launched is done."""

    def observe_steps(self, ms: float, steps: int) -> None:
        """Record how long some steps took together, in ms."""


class EveryStep(RebuildPolicy):
    """Rebuild at every step."""


class EverySteps(RebuildPolicy):
    """Rebuild every k steps.

    Args:
        system: shared state of the simulation.
        interval: k, at least 1.
    """

    def __init__(self, system: System, interval: int):
        super().__init__(system)
        self._interval = self._age = interval

    @property
    def is_due(self) -> bool:
        """Whether the structure has been used for as many steps as it may."""
        return self._age >= self._interval

    def built(self) -> None:
        """Record a build by `Search.update`."""
        self._age = 0
        self.builds += 1

    def plan(self) -> StepPlan:
        """Return the steps until the next build; any number if the structure is rebuilt at every step."""
        if self._interval == 1:
            return super().plan()
        build = self._age >= self._interval
        return StepPlan(self._interval - (0 if build else self._age), build, build_each=False)

    def steps_taken(self, plan: StepPlan) -> None:
        """Record steps that were launched as planned: the structure has aged by as many."""
        self._age = 1 if plan.build_each else plan.steps + (0 if plan.build else self._age)
        self.builds += plan.steps if plan.build_each else plan.build

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured."""
        self._age += 1

    def reset(self) -> None:
        """Rebuild before the next step."""
        self._age = self._interval


class DisplacementBound(RebuildPolicy):
    """Rebuild when a particle may have moved farther than half the skin since the last build.

    On the CPU the displacements are measured before each step. A device bounds them by the largest speed and
    halts fused steps by itself (`DisplacementGuard`); the host plans as many steps as the fastest particle
    allows, and takes halted ones again.

    Args:
        system: shared state of the simulation.
        skin: width of the lists' margin, and how far a particle may move within it.
        farthest: measures the largest displacement since the last build, in d; waits for the device.
        grow: makes more room if the last lists were cut short, and returns whether they were; waits.
    """

    def __init__(self, system: System, skin: Skin, farthest: Callable[[], float], grow: Callable[[], bool]):
        super().__init__(system)
        self._backend, self._skin, self._farthest, self._grow = system.backend, skin, farthest, grow
        self._words = system.status.guard
        self._speeds = self._words[:2]
        self.travelled = self._words[2:3].view(np.float32)
        self._halted_steps = self._words[3:].view(np.int32)[:1]
        self.restart()
        self.set_limit()

    def restart(self) -> None:
        """Forget the lists, and plan few steps at first."""
        self._window, self._since, self._stride = 8, 0, 0.0
        self._has_lists = self._is_whole = False  # whether there are lists, and whether they had room

    def set_limit(self) -> None:
        """Take the present width of the skin for the guard."""
        if self._backend.runs_ahead:
            limits = np.float32(self._skin.limit), np.float32(self._skin.step_rounding)
            self.guard = DisplacementGuard(self._speeds, self.travelled, self._halted_steps, *limits)

    @property
    def tunes(self) -> bool:  # type: ignore[override]  # a constant of the other policies
        """Whether the width of the skin is being tuned."""
        return self._skin.tunes

    @property
    def is_due(self) -> bool:
        """Whether there are no whole lists, or two particles that are in no list of each other may touch."""
        return not (self._is_whole and self._farthest() < self._skin.limit)

    @property
    def must_wait(self) -> bool:
        """Whether a device has no lists yet, or another width of the skin is due."""
        if not self._backend.runs_ahead:
            return False
        return not self._has_lists or (self._since >= self._window and self._skin.proposed is not None)

    def begin_build(self) -> None:
        """Record that `Search.update` starts to build: until `built` the lists are not whole."""
        self._is_whole = False

    def built(self) -> None:
        """Record whole lists."""
        self.builds, self._since, self._has_lists, self._is_whole = self.builds + 1, 0, True, True

    def plan(self) -> StepPlan:
        """Return as many steps as the fastest particle has allowed so far; on the CPU any number."""
        if not self._backend.runs_ahead:
            return super().plan()
        build = self._since >= self._window
        return StepPlan(self._window - (0 if build else self._since), build, build_each=False)

    def steps_taken(self, plan: StepPlan) -> None:
        """Record steps that were launched as planned."""
        if self._backend.runs_ahead:
            self.builds += plan.build
            self._is_whole |= plan.build
            self._since = plan.steps + (0 if plan.build else self._since)

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured: `Search.update` has checked the lists."""

    def reset(self) -> None:
        """Reset the planned window, the speed estimate and the guard, so that a loaded run repeats this one."""
        self._backend.fill(self._words, 0)
        self.restart()

    def process(self, words: np.ndarray, dt: float) -> int:
        """Plan as many steps as the fastest particle allows; return how many fused steps were halted."""
        if not words[:2].any():  # no fused step was taken
            return 0
        halted = int(words[3:].view(np.int32)[0])
        speed2 = np.uint32(int(words[:2].max()) & 0xFFFFFFFF).view(np.float32)
        self._stride = max(dt * math.sqrt(speed2), RECALL * self._stride)
        longest = min(2 * self._window, LONGEST)
        stride = self._stride + self._skin.step_rounding
        if self._skin.limit < longest * stride:
            longest = min(longest, 1 + int(max(0.0, MARGIN * self._skin.limit / stride)))
        self._window = max(1, min(longest, self._window - 1) if halted else longest)
        if int(words[:2].max()) >> 63:  # their counter is half way to its end; before a build they may be 0
            self._backend.fill(self._speeds, 0)
            self._since = LONGEST
        return halted

    def retry(self) -> None:
        """Rebuild before the next step, with more room if the lists were cut short."""
        self._is_whole = not self._grow()
        self._backend.fill(self._halted_steps, 0)
        self._since = LONGEST  # however the plan may change

    def observe_steps(self, ms: float, steps: int) -> None:
        """Record how long some steps took with the present width of the skin, in ms."""
        self._skin.timed(ms, steps)
