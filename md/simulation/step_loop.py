"""Step loop: reorder, build, force, integrate.

A device that runs ahead gets captured steps, the CPU many fused steps in one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tqdm import tqdm

from md.backend.base import Array
from md.boundaries.base import ActiveBoundaries
from md.integrate.base import Stepper
from md.io.interrupt import defer_sigint
from md.particles.system import System
from md.reorder.reorder import ActiveReorder
from md.search.base import Search
from md.search.policy import StepPlan
from md.simulation.fault_monitor import FaultMonitor, FaultSample
from md.simulation.forces import Forces
from md.simulation.graph_capture import CapturedSteps, PreparedParts

MOST_INTERVALS = 10  # poll intervals between two polls, if planned steps are left


class StepLoop:
    """Loop that takes the steps of a simulation.

    Args:
        system: shared state of the simulation.
        search, stepper, boundaries: parts of the simulation.
        forces: computes the force on each particle.
        reorder: None for none.
        monitor: polls the run and raises its faults.
        fused: whether the stepper's step is part of the force kernel.

    Attributes:
        step: number of steps taken so far.
        captured: captured steps.
    """

    def __init__(
        self,
        system: System,
        search: Search,
        stepper: Stepper,
        boundaries: ActiveBoundaries,
        forces: Forces,
        reorder: ActiveReorder | None,
        monitor: FaultMonitor,
        fused: bool,
    ):
        self._system, self._search, self._stepper = system, search, stepper
        self._boundaries, self._forces, self._reorder = tuple(boundaries), forces, reorder
        self._monitor, self._fused = monitor, fused
        self._backend, self._policy, self._can = system.backend, search.policy, stepper.capabilities
        self._packs = fused and search.capabilities.packs and system.backend.packs_rows_for(forces.law)
        search.prepare(fused)
        self._needs_times = reorder is not None and reorder.trigger.capabilities.needs_times
        self._updates_velocities = any(b.capabilities.changes_velocities for b in boundaries)
        self.step = 0
        self._parts = PreparedParts(system, search)
        self.captured = CapturedSteps(system, search, self._take, fused)
        parts = stepper, search, *boundaries
        can_capture = fused or all(part.capabilities.capturable for part in parts)
        self._is_captured = system.backend.runs_ahead and can_capture

    @property
    def force(self) -> Array:
        """(n, dim) scratch array for forces, allocated at first use: fused steps need none."""
        return self._system.scratch("force")

    def start_at(self, step: int) -> None:
        """Resume after a number of steps that another loop has taken."""
        self.step = step
        self._stepper.set_clock(step)

    def run_to(self, last: int, phases: bool, bar: tqdm) -> float:
        """Take steps up to a given step.

        Args:
            last: number of steps since the start after which to stop.
            phases: whether to time the phases of each step.
            bar: progress bar, updated.

        Returns:
            The time of the steps, in ms.

        Raises:
            SimulationFault: a fault of the run.
        """
        shown = self.step
        if self._reorder is not None:  # a trigger may need times in some runs only
            self._needs_times = self._reorder.trigger.capabilities.needs_times
        with self._backend.stopwatch() as elapsed:
            samples: deque[FaultSample] = deque()  # a device is ahead of the host, which reads the first
            while self.step < last:
                with defer_sigint() as pressed:  # setting a handler takes as long as a small step
                    while self.step < last and not pressed:
                        self._take_interval(last, phases)
                        samples.append(self._monitor.sample(self.step))
                        while samples and (len(samples) > self._backend.runs_ahead or self.step == last):
                            if self._take_back(self._monitor.process(samples.popleft(), self.step)):
                                samples.clear()
                        bar.update(self.step - shown)
                        shown = self.step
        return elapsed[0]

    def _take_interval(self, last: int, phases: bool) -> None:
        """Take the steps up to the next look at the state, at most up to `last`."""
        check = self.step + self._backend.check_interval
        end = min(last, check + MOST_INTERVALS * self._backend.check_interval)
        end = max(end, min(last, self.step + self._search.most_steps))
        while self.step < min(check, last) or (self.step < end and self._is_mid_plan()):
            with self._monitor.overflows(self.step):
                self.advance(phases, end - self.step)

    def synchronise(self) -> None:
        """Synchronise with the device and raise any pending fault; halted steps are not counted."""
        self._take_back(self._monitor.process(self._monitor.sample(self.step, now=True), self.step))

    def reorder(self) -> None:
        """Reorder before the next step without calling the trigger; timed as a reorder of that step."""
        assert self._reorder is not None
        self.synchronise()
        with defer_sigint():
            self._timed(True, "reorder", self._reorder.apply, self.step)

    def update_search(self) -> None:
        """Update the search to the present positions."""
        with self._monitor.overflows(self.step):
            self._search.update()

    def compute_forces(self) -> Array:
        """Compute the force on each particle at the present positions in `force`, and return that array."""
        self.update_search()
        self._forces.compute(self.force, self.step)
        return self.force

    def advance(self, phases: bool, most: int) -> None:
        """Take one step, or several at once.

        Args:
            phases: whether to time the phases.
            most: largest number of steps.
        """
        reorder = self._reorder
        if reorder is not None and reorder.trigger(self.step):
            self._timed(phases or self._needs_times, "reorder", reorder.apply, self.step)
        is_timed = self._needs_times and not self._fused
        one_by_one = phases or self.step == 0 or not self._is_captured or is_timed
        if one_by_one and not self._fused:
            self._take_unfused(phases or self._needs_times)
            return
        if self._packs:  # before lists are allocated: they take the memory of the separate arrays
            self._system.particles.pack()
        plan = self._plan()
        if not (phases or self.step == 0 or self._backend.runs_ahead) and reorder is None:
            most = min(most, self._search.most_steps, self._monitor.steps_to_next(self.step))
            plan = self._take_many(plan._replace(steps=most))
        elif one_by_one:
            phases = phases or self._needs_times
            plan = plan._replace(steps=1)
            self._timed(phases, "build", *((self._search.rebuild, plan.moves) if plan.build else (_nothing,)))
            self._timed(phases, "force", self._fused_step, self.step, plan.prune)
        else:
            most = min(plan.steps, most, self._backend.piece_lengths[0])
            if reorder is not None:
                most = reorder.trigger.steps_to_next(self.step, most)
            plan = self._take_captured(plan._replace(steps=most))
        self._policy.steps_taken(plan)
        self.step += plan.steps

    def _plan(self) -> StepPlan:
        """Return the plan of the next steps, after a build that has to wait for the device, if one is due."""
        if self._policy.must_wait:
            self._search.update(force=True)
        return self._policy.plan()

    def _is_mid_plan(self) -> bool:
        """Return whether planned fused steps are left; the host polls between two plans."""
        with self._monitor.overflows(self.step):
            return self._fused and not self._plan().build

    def _take_unfused(self, phases: bool) -> None:
        """Take one step; `Search.update` builds if that is due."""
        self._timed(phases and self._can.moves_before_force, "integrate", self._prepare, self.step)
        self._timed(phases, "build", self._search.update)
        self._timed(phases, "force", self._compute_force, self.step)
        self._timed(phases, "integrate", self._move, self.step)
        self._policy.step_taken()
        self.step += 1

    def _prepare(self, step: int) -> None:
        if self._can.moves_before_force:
            self._stepper.prepare(step, self._system.status.fault)

    def _compute_force(self, step: int) -> None:
        self._forces.compute_for_step(self.force, step)

    def _move(self, step: int) -> None:
        self._stepper.advance(self.force, step, self._system.status.fault)
        for boundary in self._boundaries:
            boundary.after_step(self._stepper.step_times(step))
        if self._updates_velocities:
            self._stepper.velocities_changed(step + 1)

    def _fused_step(self, step: int, prunes: bool) -> None:
        guard = self._policy.guard._replace(prunes=1) if prunes else self._policy.guard
        output = self._stepper.fused_output(step, self._system.status.fault, guard)
        self._search.force(self._forces.law, output)
        self._system.particles.swap()

    def _take(self, plan: StepPlan, step: int) -> None:
        """Take the steps of a plan by kernel launches only, with its builds."""
        if self._fused:
            self._take_parts(plan, step)
            return
        for k in range(step, step + plan.steps):
            self._prepare(k)
            if plan.build_each or (plan.build and k == step):
                self._search.rebuild(plan.moves)
            self._compute_force(k)
            self._move(k)

    def _take_parts(self, plan: StepPlan, step: int) -> None:
        """Take fused steps in parts that are prepared once.

        After two steps the arrays have the same roles again, so that two more have the same launches.
        """
        last = step + plan.steps
        while step < last:
            if plan.build_each or plan.build:
                part = "build that moves" if plan.moves else "build"
                self._parts.take(part, step, partial(self._search.rebuild, plan.moves))
            if plan.prune or plan.build_each or last - step == 1:
                part = "step that prunes" if plan.prune else "step"
                self._parts.take(part, step, partial(self._fused_step, step, plan.prune))
                step += 1
            else:
                self._parts.take("two steps", step, partial(self._take_two, step))
                step += 2
            plan = plan._replace(build=False, prune=False)

    def _take_many(self, plan: StepPlan) -> StepPlan:
        """Take the fused steps of a plan, or the first of them, on the CPU in one call; return their plan."""
        if plan.build:
            self._search.rebuild(plan.moves)
        particles, status, most = self._system.particles, self._system.status, plan.steps
        outputs = [self._stepper.fused_output(self.step, status.fault, self._policy.guard)]
        if most > 1 and not self._stepper.depends_on_time:
            particles.swap()
            outputs.append(self._stepper.fused_output(self.step + 1, status.fault, self._policy.guard))
            particles.swap()
        else:
            outputs, most = 2 * outputs, 1
        taken = self._search.take_steps(self._forces.law, outputs, self.step, most)
        if taken % 2:
            particles.swap()
        return plan._replace(steps=taken)

    def _take_two(self, step: int) -> None:
        self._fused_step(step, prunes=False)
        self._fused_step(step + 1, prunes=False)

    def _take_captured(self, plan: StepPlan) -> StepPlan:
        """Take captured steps, and record their time if the trigger needs it."""
        first = self._backend.mark() if self._needs_times else None
        plan = self.captured.take(plan, self.step)
        if self._needs_times and self.captured.launched:
            last = self._backend.mark()
            self._system.timings.add_piece(self.step, plan.steps, lambda: self._backend.between(first, last))
        return plan

    def _timed(self, phases: bool, name: str, work: Callable[..., Any], *arguments: Any) -> None:
        if phases:
            with self._backend.phase(self._system.timings, name, self.step):
                work(*arguments)
        else:
            work(*arguments)

    def _take_back(self, halted: int) -> int:
        if halted:
            self.step -= halted
            self._stepper.set_clock(self.step)
        return halted


def _nothing() -> None:
    pass
