"""Ways of taking steps, of which `StepLoop` chooses one when a run starts.

| | one by one, with phases that can be timed | several in one call of `take` |
|---|---|---|
| steps of several kernels | `SeparateSteps` | `StepsAhead` |
| fused steps | `FusedSteps` | `ManyFusedSteps` on the CPU, `StepsAhead` on a device |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from md.backend.base import Array
from md.boundaries.base import ActiveBoundary
from md.integrate.base import Stepper
from md.laws.pair import PairLaw
from md.particles.system import System
from md.reorder.reorder import ActiveReorder
from md.search.base import Search
from md.search.policy import StepPlan
from md.simulation.fault_monitor import FaultMonitor
from md.simulation.forces import Forces
from md.simulation.graph_capture import CapturedSteps, PreparedParts


def run_phase(
    system: System, timed: bool, name: str, step: int, work: Callable[..., Any], *arguments: Any
) -> None:
    """Do the work of a phase of a step.

    Args:
        system: shared state of the simulation.
        timed: whether to time the phase.
        name: of the phase in `System.timings`.
        step: number of the step.
        work: called with `arguments`.
        *arguments: of `work`.
    """
    if timed:
        with system.backend.phase(system.timings, name, step):
            work(*arguments)
    else:
        work(*arguments)


def next_plan(search: Search) -> StepPlan:
    """Return the plan of the next steps, after a build that has to wait for the device, if one is due."""
    if search.policy.must_wait:
        search.update(force=True)
    return search.policy.plan()


class Stepping(ABC):
    """One way of taking steps."""

    @abstractmethod
    def take(self, step: int, most: int, timed: bool) -> int:
        """Take one step, or several at once.

        Args:
            step: number of the first step.
            most: largest number of steps, at least 1.
            timed: whether to time the phases, or the steps of a graph together.

        Returns:
            Number of steps that were taken.
        """


class LaunchedSteps(Stepping):
    """Steps taken one by one, or by kernel launches only, so that they can be captured."""

    @abstractmethod
    def plan(self) -> StepPlan:
        """Return the plan of the next steps; may wait for a build."""

    @abstractmethod
    def launch(self, plan: StepPlan, step: int) -> None:
        """Take the steps of a plan by kernel launches only, with its builds.

        Args:
            plan: the plan.
            step: number of the first step.
        """


class SeparateSteps(LaunchedSteps):
    """Steps of several kernels: build, force, integration, and boundaries.

    Args:
        system: shared state of the simulation.
        search, stepper, boundaries: parts of the simulation.
        forces: computes the force on each particle.
    """

    def __init__(
        self,
        system: System,
        search: Search,
        stepper: Stepper,
        boundaries: Sequence[ActiveBoundary],
        forces: Forces,
    ):
        self._system, self._search, self._stepper = system, search, stepper
        self._boundaries, self._forces = tuple(boundaries), forces
        self._moves_before_force = stepper.capabilities.moves_before_force
        self._updates_velocities = any(b.capabilities.changes_velocities for b in boundaries)

    def take(self, step: int, most: int, timed: bool) -> int:
        """Take one step; `Search.update` builds if that is due."""
        system = self._system
        run_phase(system, timed and self._moves_before_force, "integrate", step, self._prepare, step)
        run_phase(system, timed, "build", step, self._search.update)
        run_phase(system, timed, "force", step, self._compute_force, step)
        run_phase(system, timed, "integrate", step, self._move, step)
        self._search.policy.step_taken()
        return 1

    def plan(self) -> StepPlan:
        """Return the plan of the next steps; may wait for a build."""
        return next_plan(self._search)

    def launch(self, plan: StepPlan, step: int) -> None:
        """Take the steps of a plan by kernel launches only, with its builds."""
        for k in range(step, step + plan.steps):
            self._prepare(k)
            if plan.build_each or (plan.build and k == step):
                self._search.rebuild(plan.moves)
            self._compute_force(k)
            self._move(k)

    def _force(self) -> Array:
        return self._system.scratch("force")

    def _prepare(self, step: int) -> None:
        if self._moves_before_force:
            self._stepper.prepare(step, self._system.status.fault)

    def _compute_force(self, step: int) -> None:
        self._forces.compute_for_step(self._force(), step)

    def _move(self, step: int) -> None:
        self._stepper.advance(self._force(), step, self._system.status.fault)
        for boundary in self._boundaries:
            boundary.after_step(self._stepper.step_times(step))
        if self._updates_velocities:
            self._stepper.velocities_changed(step + 1)


class FusedSteps(LaunchedSteps):
    """Steps in which the force kernel moves the particles.

    Args:
        system: shared state of the simulation.
        search, stepper: parts of the simulation.
        law: pair law.

    Attributes:
        packs: whether steps read and write packed rows.
    """

    def __init__(self, system: System, search: Search, stepper: Stepper, law: PairLaw):
        self._system, self._search, self._stepper, self._law = system, search, stepper, law
        self.packs = search.capabilities.packs and system.backend.packs_rows_for(law)
        self._parts = PreparedParts(system, search)
        self._updates_ghosts = system.domain is not None and system.backend.runs_ahead

    def take(self, step: int, most: int, timed: bool) -> int:
        """Take one step, after the build of its plan."""
        plan = self.plan()._replace(steps=1)
        run_phase(self._system, timed, "build", step, self._build, plan)
        run_phase(self._system, timed, "force", step, self._step, step, plan.prune)
        self._search.policy.steps_taken(plan)
        return 1

    def plan(self) -> StepPlan:
        """Return the plan of the next steps; may wait for a build."""
        if self.packs:  # before lists are allocated: they take the memory of the separate arrays
            self._system.particles.pack()
        return next_plan(self._search)

    def launch(self, plan: StepPlan, step: int) -> None:
        """Take the steps of a plan in parts that are prepared once.

        After two steps the arrays have the same roles again, so that two more have the same launches. Where
        one launch takes several steps (`Search.take_steps`), it takes all that are left of the plan.
        """
        last, most = step + plan.steps, 1 if self._stepper.depends_on_time else self._search.most_steps
        while step < last:
            if plan.build_each or plan.build:
                part = "build that moves" if plan.moves else "build"
                self._parts.take(part, step, partial(self._search.rebuild, plan.moves))
            if plan.prune or plan.build_each or last - step == 1:
                part = "step that prunes" if plan.prune else "step"
                self._parts.take(part, step, partial(self._step, step, plan.prune))
                step += 1
            else:
                many = max(2, min(last - step, most))
                self._parts.take(f"{many} steps", step, partial(self._take_many, step, many))
                step += many
            plan = plan._replace(build=False, prune=False)

    def take_part(self, part: str, step: int, work: Callable[[], None]) -> None:
        """Do something between two steps of a rank on a device, by the launches of before if there are any.

        Args:
            part: name of it.
            step: number of the next step.
            work: does it by launches alone, if those of the rank are prepared.
        """
        if self._system.domain.is_prepared:
            self._parts.take(part, step, work)
        else:
            work()

    def _build(self, plan: StepPlan) -> None:
        if plan.build:
            self._search.rebuild(plan.moves)

    def _output(self, step: int, prunes: bool = False) -> Any:
        """Return the output of the force kernel that moves the particles in a step."""
        guard = self._search.policy.guard
        guard = guard._replace(prunes=1) if prunes else guard
        output = self._stepper.fused_output(step, self._system.status.fault, guard)
        peers = self._system.domain.peers if self._updates_ghosts else None
        return output if peers is None else output._replace(peers=peers.rows_for(output.pos))

    def _step(self, step: int, prunes: bool) -> None:
        self._search.force(self._law, self._output(step, prunes))
        self._system.particles.swap()
        if self._updates_ghosts:
            self._system.domain.update_ghosts()

    def _take_many(self, step: int, many: int) -> None:
        """Take two steps, or more in one launch."""
        if many == 2:
            self._step(step, prunes=False)
            self._step(step + 1, prunes=False)
            return
        taken = self._search.take_steps(self._law, [self._output(step)], step, many)
        assert taken == many, f"{type(self._search).__name__} took {taken} of {many} steps"
        if many % 2:
            self._system.particles.swap()


class ManyFusedSteps(FusedSteps):
    """Fused steps of which the CPU takes several in one call, as far as the search can.

    Args:
        system: shared state of the simulation.
        search, stepper: parts of the simulation.
        law: pair law.
        monitor: polls the energy, which ends a call.
    """

    def __init__(self, system: System, search: Search, stepper: Stepper, law: PairLaw, monitor: FaultMonitor):
        super().__init__(system, search, stepper, law)
        self._monitor = monitor

    def take(self, step: int, most: int, timed: bool) -> int:
        """Take the steps of the next plan, or the first of them, in one call."""
        plan, particles = self.plan(), self._system.particles
        most = min(most, self._search.most_steps, self._monitor.steps_to_next(step))
        self._build(plan)
        outputs = [self._output(step)]
        if most > 1 and not self._stepper.depends_on_time:
            particles.swap()
            outputs.append(self._output(step + 1))
            particles.swap()
        else:
            outputs, most = 2 * outputs, 1
        taken = self._search.take_steps(self._law, outputs, step, most)
        if taken % 2:
            particles.swap()
        self._search.policy.steps_taken(plan._replace(steps=taken))
        return taken


class StepsAhead(Stepping):
    """Steps that a device gets ahead, as captured graphs or as launches.

    Args:
        system: shared state of the simulation.
        search: of the simulation.
        steps: the steps that are captured.
        graphs: captured graphs of these steps; None for launches alone.
        reorder: the next one ends the steps; None for none.
    """

    def __init__(
        self,
        system: System,
        search: Search,
        steps: LaunchedSteps,
        graphs: CapturedSteps | None,
        reorder: ActiveReorder | None,
    ):
        self._system, self._backend, self._policy = system, system.backend, search.policy
        self._steps, self._graphs, self._reorder = steps, graphs, reorder

    def take(self, step: int, most: int, timed: bool) -> int:
        """Take the steps of the next plan, or the first of them; their time is known later."""
        plan = self._steps.plan()
        most = min(plan.steps, most, self._backend.piece_lengths[0])
        if self._reorder is not None:
            most = self._reorder.trigger.steps_to_next(step, most)
        first = self._backend.mark() if timed else None
        plan = plan._replace(steps=most)
        if self._graphs is None:
            self._steps.launch(plan, step)
        else:
            plan = self._graphs.take(plan, step)
        if timed and (self._graphs is None or self._graphs.launched):
            last = self._backend.mark()
            self._system.timings.add_piece(step, plan.steps, lambda: self._backend.between(first, last))
        self._policy.steps_taken(plan)
        return plan.steps
