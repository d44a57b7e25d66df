"""Step loop: reorder, take steps in the way chosen for the run (`md.simulation.stepping`), poll the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from md.backend.base import Array
from md.boundaries.base import ActiveBoundaries
from md.domain.on_device.ahead import Look
from md.errors import HaloOutrun
from md.integrate.base import Stepper
from md.io.interrupt import defer_sigint
from md.particles.system import System
from md.reorder.reorder import ActiveReorder
from md.search.base import Search
from md.simulation.fault_monitor import FaultMonitor, FaultSample
from md.simulation.forces import Forces
from md.simulation.graph_capture import CapturedSteps
from md.simulation.stepping import (
    FusedSteps,
    LaunchedSteps,
    ManyFusedSteps,
    SeparateSteps,
    Stepping,
    StepsAhead,
    next_plan,
    run_phase,
)

MOST_INTERVALS = 10  # poll intervals between two polls, if planned steps are left
# Most steps between two polls on the CPU, for which ranks wait, and most particle-steps of a rank.
STEPS_OF_RANKS, PARTICLE_STEPS_OF_RANKS = 20, 2**24


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
        self._forces, self._reorder, self._monitor = forces, reorder, monitor
        self._backend, self._fused, self.step = system.backend, fused, 0
        search.prepare(fused)
        steps: LaunchedSteps = SeparateSteps(system, search, stepper, boundaries, forces)
        if fused:
            steps = self._fused_steps = FusedSteps(system, search, stepper, forces.law)
        self.captured = CapturedSteps(system, search, steps.launch, fused)
        self._one_by_one: Stepping = steps
        self._several: Stepping = steps
        parts = stepper, search, *boundaries
        self._ahead = system.domain if self._backend.runs_ahead else None
        if self._ahead is not None:
            self._ahead.require_travel(search.policy)
        self._packs = isinstance(steps, FusedSteps) and steps.packs
        if self._ahead is not None:
            if self._ahead.is_prepared:
                # Where the host lets particles migrate, it forgets all graphs each time.
                graphs = self.captured if self._ahead.looks_late else None
                self._several = StepsAhead(system, search, steps, graphs, None)
        elif self._backend.runs_ahead and (fused or all(part.capabilities.capturable for part in parts)):
            self._several = StepsAhead(system, search, steps, self.captured, reorder)
        elif fused and reorder is None and system.domain is None:
            self._several = ManyFusedSteps(system, search, stepper, forces.law, monitor)
        # Polls of a device are processed at the next.
        self._looks_late = self._backend.runs_ahead and (self._ahead is None or self._ahead.looks_late)
        self._choose()

    def _choose(self) -> None:
        """Choose the way of the steps after the first; a trigger may need times in some runs only."""
        reorder = self._reorder
        self._needs_times = reorder is not None and reorder.trigger.capabilities.needs_times
        self._chosen = self._one_by_one if self._needs_times and not self._fused else self._several

    @property
    def force(self) -> Array:
        """(n, dim) scratch array for forces, allocated at first use: fused steps need none."""
        return self._system.scratch("force")

    def start_at(self, step: int) -> None:
        """Resume after a number of steps that another loop has taken."""
        self.step = step
        self._stepper.set_clock(step)

    def run_to(self, last: int, phases: bool, bar: tqdm | None) -> float:
        """Take steps up to a given step.

        Args:
            last: number of steps since the start after which to stop.
            phases: whether to time the phases of each step.
            bar: progress bar, updated; None for none.

        Returns:
            The time of the steps, in ms.

        Raises:
            SimulationFault: a fault of the run.
        """
        shown = self.step
        self._choose()
        with self._backend.stopwatch() as elapsed:
            samples: deque[tuple[FaultSample, Look | None]] = deque()  # a device is ahead of the host
            while self.step < last:
                with defer_sigint() as pressed:  # setting a handler takes as long as a small step
                    while self.step < last and not self.is_ended(pressed):
                        self._take_interval(last, phases)
                        samples.append(self._sample())
                        while samples and (len(samples) > self._looks_late or self._must_look(last)):
                            if self._undo_halted_steps(*samples.popleft()):
                                samples.clear()
                        if bar is not None:
                            bar.update(self.step - shown)
                        shown = self.step
        return elapsed[0]

    def is_ended(self, pressed: Sequence) -> bool:
        """Return whether Ctrl-C was pressed, on any rank.

        Raises:
            KeyboardInterrupt: on another rank; this one gets none, or later.
        """
        if self._system.domain is None:
            return bool(pressed)
        own = len(pressed) > 0
        is_ended = bool(self._system.domain.communicator.reduce(np.array([own], np.int32), "max")[0])
        if is_ended and not own:
            raise KeyboardInterrupt
        return is_ended

    def _take_interval(self, last: int, phases: bool) -> None:
        """Take the steps up to the next look at the state, at most up to `last`."""
        if self._ahead is not None:
            self._take_periods(last, phases)
            return
        interval = self._backend.check_interval
        if self._system.domain is not None:
            self._system.domain.resume()
            interval = min(STEPS_OF_RANKS, PARTICLE_STEPS_OF_RANKS // max(1, self._system.n_usual))
            interval = max(1, min(interval, self._monitor.steps_to_next(self.step)))
        check = self.step + interval
        end = min(last, check + MOST_INTERVALS * interval)
        end = max(end, min(last, self.step + self._search.most_steps))
        while self.step < min(check, last) or (self.step < end and self._is_mid_plan()):
            with self._monitor.overflows(self.step):
                self.advance(phases, end - self.step)

    def _take_periods(self, last: int, phases: bool) -> None:
        """Take the steps of a device up to a migration after which it is time to look, or to `last`."""
        domain, policy, search = self._system.domain, self._search.policy, self._search
        last = min(last, self.step + MOST_INTERVALS * self._backend.check_interval)
        if domain.note_copy(self.step):
            self._fused_steps.take_part(f"copy {domain.copy.turn}", self.step, domain.keep_copy)
        for k in range(domain.periods):
            if domain.is_over(policy):
                if domain.migrates_ahead(self.step):
                    self._fused_steps.take_part("migration", self.step, domain.migrate_ahead)
                    domain.migrated(policy)
                elif k:
                    return  # to look at the state before it is copied
                else:
                    domain.migrate()
                    search.rows_changed()
            if domain.begin(self.step, policy, self._packs):
                search.rows_changed()
                policy.begin_period()
                self._stepper.set_clock(self.step)
            while self.step < last and not domain.is_over(policy):
                with self._monitor.overflows(self.step):
                    self.advance(phases, last - self.step)
            if self.step == last:
                return

    def _sample(self, now: bool = False) -> tuple[FaultSample, Look | None]:
        """Poll the run before the next step; with `now` sum the energy in any case."""
        return self._monitor.sample(self.step, now), None if self._ahead is None else self._ahead.look()

    def _must_look(self, last: int) -> bool:
        """Return whether the last poll is processed before more steps, of which `last` is the end."""
        domain, policy = self._ahead, self._search.policy
        by_host = domain is not None and domain.is_over(policy) and not domain.migrates_ahead(self.step)
        return by_host or self.step == last

    def poll(self) -> None:
        """Raise any pending fault; halted steps are not counted."""
        self._undo_halted_steps(*self._sample(now=True))

    def synchronise(self) -> None:
        """Do as `poll`, and make the rows of a rank those of its particles and ghosts."""
        self.poll()
        if self._ahead is not None and self._ahead.settle():
            self._ahead.migrate()
            self._search.rows_changed()

    def reorder(self) -> None:
        """Reorder before the next step without calling the trigger; timed as a reorder of that step."""
        assert self._reorder is not None
        self.synchronise()
        with defer_sigint():
            run_phase(self._system, True, "reorder", self.step, self._reorder.apply, self.step)

    def update_search(self) -> None:
        """Update the search to the present positions."""
        search = self._search
        with self._monitor.overflows(self.step):
            if self._ahead is None:
                search.update()
            elif self._ahead.any(search.policy.is_due):
                search.update(force=True)

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
        reorder, timed = self._reorder, phases or self._needs_times
        if reorder is not None and reorder.trigger(self.step):
            run_phase(self._system, timed, "reorder", self.step, reorder.apply, self.step)
        way = self._one_by_one if phases or self.step == 0 else self._chosen
        self.step += way.take(self.step, most, timed)
        if self._system.domain is not None and self._ahead is None:
            run_phase(self._system, timed, "exchange", self.step - 1, self._exchange)

    def _exchange(self) -> None:
        """Update the copies of particles of other ranks, or let particles migrate."""
        search, domain = self._search, self._system.domain
        domain.pause()
        own = search.last_stride
        if self._fused and domain.is_built:  # those that are not named are not updated in each step
            self._system.particles.carry_ghosts()
        policy = search.policy
        try:
            found = domain.after_step(own, policy.is_due_within, policy.limit, search.named_ghosts)
        except HaloOutrun:  # on all ranks in this step
            search.rows_changed()  # particles have migrated
            self._undo_halted_steps(*self._sample())  # raises a fault by which a particle moved too far
            raise
        domain.resume()
        if found.has_migrated:
            search.rows_changed()
            return
        if own is not None:
            policy.others_moved(found.stride - own)
        if found.builds:
            policy.begin_build()

    def _is_mid_plan(self) -> bool:
        """Return whether planned fused steps are left; the host polls between two plans."""
        with self._monitor.overflows(self.step):
            return self._fused and not next_plan(self._search).build

    def _undo_halted_steps(self, sample: FaultSample, look: Look | None) -> bool:
        """Process a poll, and subtract steps that are to be taken again; return whether there are any.

        Args:
            sample: of the poll.
            look: of a rank on a device.
        """
        domain = self._ahead
        had_room = domain is None or look is None or domain.had_room(look, self.step)
        halted = self._monitor.process(sample, self.step) if had_room else 0
        if had_room and not halted:
            return False
        if domain is not None and look is not None:
            policy = self._search.policy
            if not had_room:
                with self._monitor.overflows(self.step):
                    policy.retry()
            halted = self.step - domain.return_to_copy(look.copy, policy, had_room)
            if not domain.is_laid_out:
                self._search.rows_changed()
        self.step -= halted
        self._stepper.set_clock(self.step)
        return True
