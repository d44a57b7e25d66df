"""Rebuild policies: when the structure of a search is rebuilt, and how many steps are planned ahead.

The step loop and the fault monitor use a policy only. Two are here: rebuild at every step, and every k steps
(trees). A third rebuilds when a particle has moved too far (`md.search.lists.displacement_bound`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard, unguarded

MANY_STEPS = 2**30


class StepPlan(NamedTuple):
    """Plan of steps that are taken without a decision in between.

    Attributes:
        steps: largest number of steps.
        build: whether the structure is rebuilt (`Search.rebuild`) before the first step.
        build_each: whether it is rebuilt before each of the other steps too.
        prune: whether the first step prunes lists (`md.search.displacement_guard`).
        moves: whether a rebuild sorts the particles in memory too.
    """

    steps: int
    build: bool
    build_each: bool
    prune: bool = False
    moves: bool = True


class RebuildPolicy:
    """Base of the rebuild policies: rebuild the structure of a search at every step.

    Args:
        system: shared state of the simulation.

    Attributes:
        builds: number of builds for steps since the search was made.
        guard: `DisplacementGuard` by which fused steps stop before the structure is too old.
        tunes: whether the policy uses `observe_steps`.
        limit: displacement in d up to which the structure is complete; 0 for one that is built at each step.
    """

    tunes: bool = False
    limit: float = 0.0

    def __init__(self, system: System):
        self.builds = 0
        self.guard: DisplacementGuard = unguarded(system.backend)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.builds} builds>"

    @property
    def is_due(self) -> bool:
        """Whether the structure has to be rebuilt before it is used; may wait for the device."""
        return True

    def is_due_within(self, farther: float) -> bool:
        """Return whether the structure has to be rebuilt if particles move so far before it is used.

        Args:
            farther: in d, 0 or more.
        """
        return True

    @property
    def must_wait(self) -> bool:
        """Whether the next build must be made by `Search.update`, which waits for the device."""
        return False

    def plan(self) -> StepPlan:
        """Return how many steps come next, and whether the structure is rebuilt before them."""
        return StepPlan(MANY_STEPS, build=True, build_each=True)

    @property
    def must_build(self) -> bool:
        """Whether the next step begins with a build."""
        return True

    def begin_period(self) -> None:
        """Count steps from 0 on again, on all ranks."""

    def halve(self) -> None:
        """Plan half as many steps for a build."""

    def begin_build(self) -> None:
        """Make the structure due before the next step, as during a build."""

    def built(self) -> None:
        """Record a build by `Search.update`."""

    def steps_taken(self, plan: StepPlan) -> None:
        """Record steps that were launched as planned."""
        self.builds += plan.steps

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured."""
        self.builds += 1

    def reset(self) -> None:
        """Return to the state after construction, so that a saved and a loaded run plan the same steps."""

    def expect_fused(self) -> None:
        """Prepare for steps that are all fused; called before the first build."""

    def process(self, words: np.ndarray, dt: float) -> int:
        """Update the plan from a copy of the displacement guard.

        Args:
            words: (7,) uint64, words of the guard on the host.
            dt: length of a fused step in time units.

        Returns:
            Number of fused steps that were halted before the copy.
        """
        return 0

    def halted(self, words: np.ndarray) -> int:
        """Return the number of halted fused steps, from a copy of the displacement guard."""
        return int(words[5:].view(np.int32)[0])

    def retry(self) -> None:
        """Prepare to take halted steps again; all launched work must be done."""

    def others_moved(self, farther: float) -> None:
        """Record by how much particles of other ranks moved farther in the last step than those of this one.

        Args:
            farther: in d, 0 or more.
        """

    def observe_steps(self, ms: float, steps: int) -> None:
        """Record the total time of consecutive steps, in ms, to tune the skin."""


class EveryStep(RebuildPolicy):
    """Policy that rebuilds the structure at every step."""


class EverySteps(RebuildPolicy):
    """Policy that rebuilds the structure every k steps.

    Args:
        system: shared state of the simulation.
        interval: k, at least 1.
    """

    def __init__(self, system: System, interval: int):
        super().__init__(system)
        self._interval = self._age = interval

    @property
    def is_due(self) -> bool:
        """Whether the structure has been used for k steps."""
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
        """Record steps that were launched as planned, in the age of the structure."""
        self._age = 1 if plan.build_each else plan.steps + (0 if plan.build else self._age)
        self.builds += plan.steps if plan.build_each else plan.build

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured."""
        self._age += 1

    def reset(self) -> None:
        """Make the structure due before the next step."""
        self._age = self._interval
