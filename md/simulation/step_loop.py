"""Taking steps: reorder, build, force, integrate. A device that runs ahead is given them in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tqdm import tqdm

from md.backend import Backend, Timings
from md.backend.base import Array
from md.boundaries.base import ActiveBoundary
from md.integrate import Integrator
from md.laws import PairLaw
from md.particles.arrays import ParticleArrays
from md.reorder import Reorder
from md.search import Search, StepPlan
from md.simulation.fault_monitor import FaultMonitor
from md.simulation.graph_capture import CapturedSteps
from md.simulation.interrupt import defer_sigint

MOST_INTERVALS = 10  # between two looks, where a plan goes on


class Loop:
    """The steps of a simulation, and what may go wrong on the way.

    Args:
        particles: what moves.
        law: between two of them.
        search, integrator, reorder: bound to them; `reorder` may be None.
        lookout: for faults.
        fused: whether the integrator's step is part of the force kernel.
        backend: where all this lives.
        timings: for the times of the phases.
        surroundings: that the particles meet besides, where steps are not fused.

    Attributes:
        step: steps taken so far.
        force: (n, dim) array for forces.
        pieces: recorded steps.
    """

    def __init__(
        self,
        particles: ParticleArrays,
        law: PairLaw,
        search: Search,
        integrator: Integrator,
        reorder: Reorder | None,
        lookout: FaultMonitor,
        fused: bool,
        backend: Backend,
        timings: Timings,
        surroundings: Sequence[ActiveBoundary] = (),
    ):
        self._particles, self._law, self._search, self._integrator = particles, law, search, integrator
        self._reorder, self._lookout, self._fused, self._backend = reorder, lookout, fused, backend
        self._timings, self.step, self._surroundings = timings, 0, surroundings
        self.force = backend.rows(particles.n, particles.box.dim, search.grid.precision)
        self.pieces = CapturedSteps(particles, search, backend, self._take)
        self._is_recorded = backend.runs_ahead and (fused or (integrator.counts and search.records))

    def begin_at(self, step: int) -> None:
        """Go on from a step that another loop came to."""
        self.step = step
        self._integrator.set_clock(step)

    def run_to(self, last: int, phases: bool, bar: tqdm) -> float:
        """Take steps until so many are taken.

        Args:
            last: how many, counted from the start.
            phases: whether to time the phases of each.
            bar: is told of them.

        Returns:
            What it took, in ms.

        Raises:
            SimulationFault: something went wrong.
        """
        begun = self.step
        with self._backend.stopwatch() as elapsed:
            looks = deque()  # a device has done the first when the host asks, and goes on meanwhile
            while self.step < last:
                check = self.step + self._backend.check_interval
                end = min(last, check + MOST_INTERVALS * self._backend.check_interval)
                with defer_sigint():
                    while self.step < min(check, last) or (self.step < end and self._mid_plan()):
                        with self._lookout.overflows(self.step):
                            self.advance(phases, last - self.step)
                looks.append(self._lookout.look(self.step))
                while looks and (len(looks) > self._backend.runs_ahead or self.step == last):
                    if self._take_back(self._lookout.process(looks.popleft(), self.step)):
                        looks.clear()
                bar.update(self.step - begun)
                begun = self.step
        return elapsed[0]

    def see(self) -> None:
        """Look for faults and act on them at once, before the state is read."""
        self._take_back(self._lookout.process(self._lookout.look(self.step, now=True), self.step))

    def reorder(self) -> None:
        """Reorder before the next step, whatever the schedule says; timed as a reorder of that step."""
        self.see()
        with defer_sigint():
            self._timed(True, "reorder", self._reorder.apply, self.step)

    def build(self) -> None:
        """Bring the search up to date with the positions as they are."""
        with self._lookout.overflows(self.step):
            self._search.build()

    def find_forces(self) -> Array:
        """The force on each particle as they are: `force`, filled."""
        self.build()
        self._push()
        self._integrator.push(self.force, self.step)
        return self.force

    def advance(self, phases: bool, most: int) -> None:
        """Take a step, or some that can be given to a device in one piece."""
        watched = self._reorder is not None and self._reorder.needs_times
        if self._reorder is not None and self._reorder.schedule(self.step):
            self._timed(phases or watched, "reorder", self._reorder.apply, self.step)
        one_by_one = phases or self.step == 0 or not self._is_recorded or (watched and not self._fused)
        if one_by_one and not self._fused:
            self._take_unfused(phases or watched)
            return
        plan = self._search.plan()
        if one_by_one:
            phases = phases or watched
            plan = plan._replace(steps=1)
            self._timed(phases, "build", self._search.rebuild if plan.build else _nothing)
            self._timed(phases, "force", self._fused_step, self.step)
        else:
            most = min(plan.steps, most, self._backend.piece_lengths[0])
            if self._reorder is not None:
                most = self._reorder.steps_to_next(self.step, most)
            plan = self._timed_piece(watched, plan._replace(steps=most))
        self._search.steps_taken(plan)
        self.step += plan.steps

    def _take_unfused(self, phases: bool) -> None:
        """Take a step, the search deciding for itself whether to build."""
        self._timed(phases and self._integrator.prepares, "integrate", self._prepare, self.step)
        self._timed(phases, "build", self._search.build)
        self._timed(phases, "force", self._find_force, self.step)
        self._timed(phases, "integrate", self._move, self.step)
        self._search.step_taken()
        self.step += 1

    def _mid_plan(self) -> bool:
        """Whether fused steps go on as planned; the host looks between two plans, when it can change them."""
        with self._lookout.overflows(self.step):
            return self._fused and not self._search.plan().build

    def _prepare(self, step: int) -> None:
        if self._integrator.prepares:
            self._integrator.prepare(step, self._lookout.fault)

    def _find_force(self, step: int) -> None:
        self._push()
        if not self._integrator.pushes:
            self._integrator.push(self.force, step, self._integrator.lead)

    def _push(self) -> None:
        self._search.force(self._law, self.force)
        for surrounding in self._surroundings:
            surrounding.push(self.force)

    def _move(self, step: int) -> None:
        self._integrator.advance(self.force, step, self._lookout.fault)
        for surrounding in self._surroundings:
            surrounding.after(self._integrator.step_times(step))
        if any(surrounding.changes_velocities for surrounding in self._surroundings):
            self._integrator.see_velocities(step + 1)

    def _fused_step(self, step: int) -> None:
        self._search.force(self._law, self._integrator.fused(step, self._lookout.fault, self._search.pace))
        self._particles.swap()

    def _take(self, plan: StepPlan, step: int) -> None:
        """Build where the plan says so, and take its steps."""
        for k in range(plan.steps):
            self._prepare(step + k)
            if plan.rebuild or (plan.build and k == 0):
                self._search.rebuild()
            for part in (self._fused_step,) if self._fused else (self._find_force, self._move):
                part(step + k)

    def _timed_piece(self, watched: bool, plan: StepPlan) -> StepPlan:
        """Take a piece, and its time if the schedule goes by times."""
        first = self._backend.mark() if watched else None
        plan = self.pieces.take(plan, self.step)
        if watched and self.pieces.launched:
            last = self._backend.mark()
            self._timings.add_piece(self.step, plan.steps, lambda: self._backend.between(first, last))
        return plan

    def _timed(self, phases: bool, name: str, work, *arguments) -> None:
        if phases:
            with self._backend.phase(self._timings, name, self.step):
                work(*arguments)
        else:
            work(*arguments)

    def _take_back(self, halted: int) -> int:
        if halted:
            self.step -= halted
            self._integrator.set_clock(self.step)
        return halted


def _nothing() -> None:
    pass
