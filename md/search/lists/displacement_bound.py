"""Rebuild policy of neighbour lists: they are made again when a particle may have moved too far."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from md.particles.system import System
from md.search.displacement_guard import DisplacementGuard
from md.search.lists.skin import Skin
from md.search.lists.step_costs import FEW, MARGIN
from md.search.policy import RebuildPolicy, StepPlan

RECALL = 0.98  # decay from poll to poll of the largest displacement a step, which may occur again
LONGEST, MOST_FIRST = 10_000, 64  # largest number of planned steps, and of the first ones
MOST_UNMOVED = 7  # builds between two that sort the particles in memory
MOST_UNMOVED_OF_FEW = 31  # the same of few particles, which are in the cache in any order


def _rounded_down(steps: int, few: bool) -> int:
    """Round a number of steps down to one of few different ones, so that few graphs of steps are captured.

    Even numbers: after these the arrays of particles have the same roles (`md.simulation.graph_capture`).

    Args:
        steps: at least 1.
        few: whether the particles are few, so that steps take less time than the capture of a graph: round to
            a power of 2.
    """
    if few:
        return 1 << (steps.bit_length() - 1)
    return steps - steps % (4 if steps > 16 else 2) if steps > 1 else steps


class DisplacementBound(RebuildPolicy):
    """Policy that rebuilds when a particle may have moved more than half the skin since the last build.

    On the CPU the displacements are measured before each step. Before a fused step in a box without an open
    side they are measured only if their bound reaches the limit: the displacement at the last measurement
    or build, and the sum of the largest speeds since, times the time step. A device bounds them by that sum
    alone and halts fused steps (`DisplacementGuard`); the host plans as many steps as the fastest particle
    allows, and takes halted steps again. If the skin has an inner width, steps of a device, and those of the
    CPU that are measured rarely, read pruned lists, which are taken from the lists of the build several times
    between two builds. Positions that are assigned from outside between fused steps may not be noticed: call
    `Search.update(force=True)` then.

    Args:
        system: shared state of the simulation.
        skin: width of the skin, and the displacement it allows.
        farthest: measures the largest displacement since the last build, in d; waits for the device.
        grow: makes more room if the last lists overflowed, and returns whether they did; waits.

    Attributes:
        travelled: (6,) float32 view of the guard's bound of the displacement, and of what halts steps.
        is_guarded: whether all steps are fused steps of a device, so that the guard bounds the displacement
            at any time and nothing is measured.
        is_bounded: whether all steps are fused steps of the CPU in a box without an open side, which bound
            the displacement, so that it is measured only if the bound reaches the limit.
    """

    def __init__(self, system: System, skin: Skin, farthest: Callable[[], float], grow: Callable[[], bool]):
        super().__init__(system)
        self._backend, self._skin, self._farthest, self._grow = system.backend, skin, farthest, grow
        self._status, self._dt, self.is_guarded = system.status, system.dt, False
        # Far beyond an open side positions are rounded by more than `step_rounding`.
        self._is_open = any(system.particles.box.open)
        self._has_few = system.n_usual < FEW
        self.is_bounded = False
        self._displacement_bound = np.inf  # of any particle since the build, in d
        self._bound_since_pruning = np.inf  # the same since the pruning, on the CPU
        self.restart()
        self._make_views()

    def _make_views(self) -> None:
        """Name the words of the status block that the displacement guard reads and writes."""
        self._words = self._status.guard
        self._speeds = self._words[:2]
        self.travelled = self._words[2:5].view(np.float32)
        self._halted_steps = self._words[5:].view(np.int32)[:1]
        self._bounds = self._words[6:].view(np.float32)
        self.set_limit()

    def __setstate__(self, state: dict[str, Any]) -> None:  # the views are of the copied status block
        self.__dict__.update(state)
        self._make_views()

    def restart(self) -> None:
        """Discard the lists, and plan few steps at first."""
        self._window, self._since, self._stride = 8, 0, 0.0
        self._unmoved_builds = 0  # builds since the particles were sorted in memory
        self._inner_window = 8  # largest number of steps with lists of one pruning
        self._since_pruning = 0
        self._has_lists = self._is_whole = False  # whether there are lists, and none overflowed

    def start_at(self, stride: float) -> None:
        """Plan the first steps by the largest displacement in a step, in d; few steps if that is 0."""
        if 0 < stride < np.inf:
            self._stride = stride
            self._window = self._allowed(self._skin.limit, MOST_FIRST // 2, False)
            self._inner_window = self._allowed(self._skin.inner_limit, MOST_FIRST // 2, False)

    def set_limit(self) -> None:
        """Set the limit of the guard from the present width of the skin."""
        if self._backend.runs_ahead:
            limits = np.float32(self._skin.limit), np.float32(self._skin.step_rounding)
            bounds = self._bounds if self.prunes else self._bounds[:0]
            self.guard = DisplacementGuard(
                self._speeds, self.travelled, self._halted_steps, *limits,
                bounds, np.float32(self._skin.inner_limit), 0,
            )  # fmt: skip

    @property
    def prunes(self) -> bool:
        """Whether fused steps read pruned lists, which are made between two builds."""
        return (self.is_guarded or self.is_bounded) and self._skin.inner < self._skin.width

    @property
    def tunes(self) -> bool:  # type: ignore[override]  # a constant of the other policies
        """Whether the width of the skin is being tuned."""
        return self._skin.tunes

    @property
    def is_due(self) -> bool:
        """Whether the lists are missing or incomplete, or two particles that are not listed may touch."""
        displacement = self._bound if self.is_guarded else self._displacement
        return not (self._is_whole and displacement() < self._skin.limit)

    @property
    def limit(self) -> float:  # type: ignore[override]  # a constant of the other policies
        """Displacement up to which lists are complete, in d."""
        return float(self._skin.limit)

    def is_due_within(self, farther: float) -> bool:
        """Return whether lists are incomplete if particles move so far before they are used, in d."""
        limit = self._skin.limit
        if self._is_whole and self.is_bounded and self._displacement_bound + farther < limit:
            return False
        self._displacement_bound = self._farthest() if self._is_whole else np.inf
        return not self._displacement_bound + farther < limit

    def expect_fused(self) -> None:
        """Let fused steps bound the displacement, which is then measured less often, or never on a device."""
        self.is_guarded = self._backend.runs_ahead
        self.set_limit()
        self.is_bounded = not self._backend.runs_ahead and not self._is_open

    def _displacement(self) -> float:
        """Return the largest displacement since the build, in d, or a bound of it that is below the limit."""
        if not self.is_bounded or self._displacement_bound >= self._skin.limit:
            self._displacement_bound = self._farthest()
        return self._displacement_bound

    def travel(self) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return the bounds of the displacement for fused steps of the CPU, in d.

        Returns:
            Since the build and since the pruning, each the bound and the limit up to which the lists are
            complete, infinite for no pruning; and the rounding of a step.
        """
        inner = (self._bound_since_pruning, self._skin.inner_limit) if self.prunes else (0.0, np.inf)
        return (self._displacement_bound, self._skin.limit), inner, float(self._skin.step_rounding)

    def moved_to(self, bound: float, since_pruning: float) -> None:
        """Record the bounds of the displacement after fused steps of the CPU, in d."""
        self._displacement_bound, self._bound_since_pruning = bound, since_pruning

    def others_moved(self, farther: float) -> None:
        """Record by how much particles of other ranks moved farther in the last step than those of this one.

        Args:
            farther: in d, 0 or more.
        """
        self._displacement_bound += farther
        self._bound_since_pruning += farther

    def _bound(self) -> float:
        """Return the guard's bound of the displacement since the build, in d; waits for the device."""
        words = self._backend.download(self._words)
        latest = int(words[:2].argmax())
        travelled = words[2:3].view(np.float32)[latest]
        if travelled.view(np.int32) == -1:  # just built
            return 0.0
        speed2 = np.uint32(int(words[latest]) & 0xFFFFFFFF).view(np.float32)
        stride = self._dt * math.sqrt(speed2) * (1 + 1e-5) + self._skin.step_rounding
        return float(travelled) + stride

    @property
    def must_wait(self) -> bool:
        """Whether a device has no lists yet, or the skin is to be changed."""
        if not self._backend.runs_ahead:
            return False
        is_build_due = self._since >= self._windows()[0]
        return not self._has_lists or (is_build_due and self._skin.proposed is not None)

    @property
    def must_build(self) -> bool:
        """Whether the next step begins with a build."""
        return self.must_wait or self._since >= self._windows()[0]

    def begin_period(self) -> None:
        """Count steps from 0 on again, on all ranks, and set the largest speed to 0."""
        self._backend.fill(self._speeds, 0)

    def halve(self) -> None:
        """Plan half as many steps for a build and for a pruning."""
        self._window, self._inner_window = max(1, self._window // 2), max(1, self._inner_window // 2)

    def begin_build(self) -> None:
        """Record that `Search.update` starts a build: the lists are incomplete until `built`."""
        self._is_whole = False

    def lists_freed(self) -> None:
        """Record that there are no lists until the next complete build."""
        self._has_lists = self._is_whole = False

    def rows_changed(self) -> None:
        """Make a build due before the next step, since there are other rows in the memory of the lists."""
        self._since, self._is_whole = LONGEST, False

    def built(self) -> None:
        """Record a complete build of the lists."""
        self.builds, self._since, self._has_lists, self._is_whole = self.builds + 1, 0, True, True
        self._unmoved_builds = 0
        self._displacement_bound, self._bound_since_pruning = 0.0, np.inf

    def plan(self) -> StepPlan:
        """Return as many steps as the fastest particle has allowed so far; on the CPU any number."""
        if not self._backend.runs_ahead:
            return super().plan()
        window, inner = self._windows()
        build = self._since >= window
        since = 0 if build else self._since
        steps = window - since
        moves = not build or self._unmoved_builds >= (MOST_UNMOVED_OF_FEW if self._has_few else MOST_UNMOVED)
        if not self.prunes:
            return StepPlan(steps, build, build_each=False, moves=moves)
        prune = since == 0 or self._since_pruning >= inner
        steps = min(steps, inner - (0 if prune else self._since_pruning))
        return StepPlan(steps, build, build_each=False, prune=prune, moves=moves)

    def _windows(self) -> tuple[int, int]:
        """Return the steps between two builds, a multiple of those between two prunings, and the latter."""
        if not self.prunes:
            steps = _rounded_down(self._window, self._has_few)
            return steps, steps
        window, inner = self._window, min(self._inner_window, self._window)
        choices = []
        for prunings in (window // inner, -(-window // inner)):
            steps = _rounded_down(min(inner, window // prunings), self._has_few)
            choices.append((prunings * steps, steps))
        return max(choices)

    def steps_taken(self, plan: StepPlan) -> None:
        """Record steps that were launched as planned."""
        if self._backend.runs_ahead:
            self.builds += plan.build
            if plan.build:
                self._unmoved_builds = 0 if plan.moves else self._unmoved_builds + 1
            self._is_whole |= plan.build
            self._since = plan.steps + (0 if plan.build else self._since)
            self._since_pruning = plan.steps + (0 if plan.prune else self._since_pruning)

    def step_taken(self) -> None:
        """Record one step that was neither fused nor captured; `Search.update` has checked the lists."""

    def reset(self) -> None:
        """Reset the planned window, the speed estimate and the guard, so that a loaded run is the same."""
        self._backend.fill(self._words, 0)
        self.restart()

    def process(self, words: np.ndarray, dt: float) -> int:
        """Plan as many steps as the fastest particle allows; return the number of halted fused steps."""
        if not words[:2].any():  # no fused step was taken
            return 0
        halted = self.halted(words)
        speed2 = np.uint32(int(words[:2].max()) & 0xFFFFFFFF).view(np.float32)
        self._stride = max(dt * math.sqrt(speed2), RECALL * self._stride)
        self._window = self._allowed(self._skin.limit, self._window, halted > 0)
        self._inner_window = self._allowed(self._skin.inner_limit, self._inner_window, halted > 0)
        if int(words[:2].max()) >> 63:  # the step counter is half full; before a build the words may be reset
            self._backend.fill(self._speeds, 0)
            self._since, self._is_whole = LONGEST, False  # the bound cannot be read from words of 0
        return halted

    def _allowed(self, limit: float, window: int, is_halted: bool) -> int:
        """Return the steps in which no particle moves farther than a limit, up to twice as many as before."""
        longest = min(2 * window, LONGEST)
        stride = self._stride + self._skin.step_rounding
        if math.isnan(stride):
            return 1
        if limit < longest * stride:
            longest = min(longest, 1 + int(max(0.0, MARGIN * limit / stride)))
        return max(1, min(longest, window - 1) if is_halted else longest)

    def retry(self) -> None:
        """Plan a build before the next step, with more room if the lists overflowed."""
        self._since = LONGEST  # due whatever the window becomes
        self._is_whole = not self._grow()
        self._has_lists = True  # the arrays are there, or `_grow` has raised
        self._backend.fill(self._halted_steps, 0)

    def observe_steps(self, ms: float, steps: int) -> None:
        """Record the time of several steps with the present width of the skin, in ms."""
        self._skin.timed(ms, steps)
