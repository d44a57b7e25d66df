"""The loop: reorder, build, force, integrate."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
from tqdm import tqdm

from md import backend as backends
from md.backend import Backend, Timings
from md.faults import post_mortem_folder
from md.grid import Grid
from md.integrate import Integrator, integrator
from md.interrupt import held_back
from md.laws import PairLaw
from md.lookout import Lookout
from md.pieces import LENGTHS, Pieces
from md.reorder import Reorder
from md.search import Plan, Scattered, Search, search
from md.state import Particles, State
from md.watch import Watch
from sfc.cache import AccessStream

PRECISIONS = ("float32", "float64")
STEPS_PER_CONTACT = 50
MOST_INTERVALS = 10  # between two looks, where a plan goes on


class Simulation:
    """A state, a law, and how to compute with them.

    Args:
        state: the start; it is copied.
        law: pair law, such as `md.laws.SpringDashpot`.
        search: one of `md.search.SEARCHES`, or a configured search such as `md.search.Coherent("hilbert")`.
        integrator: one of `md.integrate.INTEGRATORS`.
        dt: time step in time units; None for a fiftieth of the law's contact time.
        reorder: when and along what to reorder the particles in memory, or the work on them; None for never.
        backend: "cpu", "cuda", or "auto" for CUDA where a device is; or a `md.backend.Backend`.
        precision: "float32" or "float64"; of positions, velocities and forces.
        layout: how particles lie in memory, one of `md.backend.LAYOUTS`; None for what suits the device.
        fused: kick and drift each particle in the force kernel, as soon as its force is known. Saves a
            pass over memory; the phase `force` then holds the integration too.
        allow_overlap: begin a run although centres are closer than the law's `closest_start`.
        post_mortem: folder, made at once, in which a fault saves what is left as `fault-<step>.npz`
            (`md.faults.Remains`); None keeps it in the error's `state` alone.

    Attributes:
        step: steps taken so far.
        timings: `md.backend.Timings` in ms of the phases reorder, build, force and integrate, and of whole
            runs.

    Raises:
        ValueError: an unknown name, a step that is not positive and finite, a box too small for the
            cutoff, a reorder for a search that sorts the data itself, mode "shadow" with `fused`, or a folder
            that cannot be made.
        BackendUnavailableError: CUDA asked for where there is none.
    """

    def __init__(
        self,
        state: State,
        law: PairLaw,
        search: str | Search = "linked",
        integrator: str | Integrator = "velocity_verlet",
        dt: float | None = None,
        reorder: Reorder | None = None,
        backend: str | Backend = "auto",
        precision: str = "float64",
        layout: str | None = None,
        fused: bool = False,
        allow_overlap: bool = False,
        post_mortem: str | Path | None = None,
    ):
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r}; allowed: {', '.join(PRECISIONS)}")
        self.law, self.dt, self.step, self.timings = law, _time_step(dt, law), 0, Timings()
        self._fused, self._allow_overlap = fused, allow_overlap
        chosen = _search(search)
        mover = _integrator(integrator)
        if fused and not mover.fuses:
            raise ValueError(
                f"integrator {mover.name!r} cannot be fused into the force kernel; take fused=False"
            )
        if reorder is not None and chosen.sorts_data:
            raise ValueError(
                f"search {chosen.name!r} sorts the data itself at every build, so a separate reorder "
                f"({reorder.ordering!r}) has no effect; give it cell_order={reorder.ordering!r} instead"
            )
        if fused and reorder is not None and reorder.mode == "shadow":
            raise ValueError(
                "mode 'shadow' with fused=True would move the copy, which the next step makes anew; allowed: "
                "fused=False, or mode 'data' or 'threads'"
            )
        self._backend = backends.get(backend, layout)
        self._grid = Grid(state.box, law.cutoff, np.dtype(precision), self._backend)
        self._particles = Particles(state, np.dtype(precision), self._backend)
        self._reorder = (
            None
            if reorder is None
            else reorder.bind(self._particles, self._grid, self._backend, self.timings)
        )
        self._search = (
            chosen.bind(self._particles, self._grid, self._backend)
            if reorder is None
            else self._reorder.bind_search(chosen)
        )
        self._integrator = mover.bind(self._particles, self._grid, self.dt, self._backend)
        self._force = self._backend.rows(len(state), state.box.dim, np.dtype(precision))
        self._pieces = Pieces(self._particles, self._search, self._backend, self._take)
        self._watch = Watch(self._particles, law, self.dt, self._backend)
        self._watch.on &= not mover.relaxes
        folder = post_mortem_folder(post_mortem)
        self._lookout = Lookout(self._search, self._watch, self.dt, self._backend, self.timings, folder)

    def __len__(self) -> int:
        return self._particles.n

    @property
    def builds(self) -> int:
        """How often the search made its structure: at every step, but for lists that outlive one."""
        return getattr(self._search, "builds", self.step)

    def run(self, steps: int, phases: bool = True, progress: bool = False) -> None:
        """Take some steps.

        Args:
            steps: how many, 0 or more.
            phases: time each phase of each step; the whole run is timed in any case, and the phases for a
                schedule that goes by them.
            progress: show a progress bar.

        Raises:
            ValueError: a negative number of steps.
            OverlappingStart: the start overlaps deeply; not with allow_overlap.
            SimulationFault: a particle left the box, its position is not finite, or the energy explodes; with
                step and particle. Whatever is asked of the simulation afterwards raises it again.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise ValueError(f"steps = {steps!r}; allowed: an integer of at least 0")
        self._see()
        if steps and self.step == 0 and self._watch.on:
            self._begin_watch()
        last = self.step + steps
        with (
            self._backend.stopwatch() as elapsed,
            tqdm(total=steps, unit="step", disable=not progress) as bar,
        ):
            looks = deque()  # a device has done the first when the host asks, and goes on meanwhile
            while self.step < last:
                check = self.step + self._backend.check_interval
                end = min(last, check + MOST_INTERVALS * self._backend.check_interval)
                with held_back():
                    while self.step < min(check, last) or (self.step < end and self._mid_plan()):
                        with self._lookout.overflows(self.step):
                            self._advance(phases, last - self.step)
                looks.append(self._lookout.look(self.step))
                while looks and (len(looks) > self._backend.runs_ahead or self.step == last):
                    if self._take_back(self._lookout.heed(looks.popleft(), self.step)):
                        looks.clear()
                bar.update(self.step - (last - steps) - bar.n)
        if steps:
            self.timings.total.append((steps, elapsed[0]))

    @property
    def state(self) -> State:
        """The particles now, in their memory order, on the host; velocities at the time of the positions.

        A copy: looking does not change the run; on a device `verlet` may make its lists at other steps then,
        so that sums round differently.
        """
        self._see()
        if self.step == 0:
            return self._particles.to_state()
        self._build()
        self._search.force(self.law, self._force)
        return self._particles.to_state(self._integrator.velocity_now(self._force, self.step))

    def forces(self) -> np.ndarray:
        """Force on each particle at the present positions and stored velocities, in order of id: (n, dim)."""
        self._see()
        self._build()
        self._search.force(self.law, self._force)
        order = np.argsort(self._backend.download(self._particles.id))
        return self._backend.download(self._force)[order]

    def pairs(self, distance: float | None = None) -> np.ndarray:
        """Ids of the pairs closer than a distance now: (p, 2) int32 with i < j, sorted.

        Args:
            distance: in d, positive and at most the law's cutoff, which is the default: the touching pairs.

        Raises:
            ValueError: a distance the search cannot see.
        """
        distance = self.law.cutoff if distance is None else distance
        if not 0 < distance <= self.law.cutoff:
            raise ValueError(
                f"distance = {distance}; allowed: 0 < distance <= {self.law.cutoff}, the law's cutoff"
            )
        self._see()
        self._build()
        return self._search.pairs(distance)

    def accesses(self) -> AccessStream:
        """What the force kernel reads now, reader by reader in the order it takes them; feeds `sfc.cache`.

        A slot is a row of the arrays that it reads: of the particles in their present memory order, or under
        a reorder of mode "shadow" of the sorted copy (what refreshing it and scattering the forces reads is
        not in the stream). The readers are the slots in turn, under mode "threads" in the work order.
        """
        self._see()
        self._build()
        return self._search.accesses()

    def _advance(self, phases: bool, most: int) -> None:
        """Take a step, or some that can be given to a device in one piece."""
        if self._reorder is not None:
            phases = phases or self._reorder.needs_times
            if self._reorder.schedule(self.step):
                self._timed(phases, "reorder", self._reorder.apply, self.step)
        if not self._fused:
            self._timed(phases, "build", self._search.build)
            self._timed(phases, "force", self._search.force, self.law, self._force)
            self._timed(
                phases, "integrate", self._integrator.advance, self._force, self.step, self._lookout.fault
            )
            self.step += 1
            return
        plan = self._search.plan()
        if self._backend.runs_ahead and not phases and self.step > 0:
            most = min(plan.steps, most, LENGTHS[0])
            if self._reorder is not None:
                most = self._reorder.steps_to_next(self.step, most)
            plan = self._pieces.take(plan._replace(steps=most), self.step)
        else:
            plan = plan._replace(steps=1)
            self._timed(phases, "build", self._search.renew if plan.build else _nothing)
            self._timed(phases, "force", self._fused_step, self.step)
        self._search.took(plan)
        self.step += plan.steps

    def _mid_plan(self) -> bool:
        """Whether fused steps go on as planned; the host looks between two plans, when it can change them."""
        with self._lookout.overflows(self.step):
            return self._fused and not self._search.plan().build

    def _fused_step(self, step: int) -> None:
        self._search.force(self.law, self._integrator.fused(step, self._lookout.fault, self._search.pace))
        self._particles.swap()

    def _take(self, plan: Plan, step: int) -> None:
        """Build where the plan says so, and take its steps."""
        for k in range(plan.steps):
            if plan.rebuild or (plan.build and k == 0):
                self._search.renew()
            self._fused_step(step + k)

    def _timed(self, phases: bool, name: str, work, *arguments) -> None:
        if phases:
            with self._backend.phase(self.timings, name, self.step):
                work(*arguments)
        else:
            work(*arguments)

    def _begin_watch(self) -> None:
        finder = Scattered().bind(self._particles, self._grid, self._backend)  # leaves the search as it is
        finder.build()
        overlap = self._watch.begin(finder.pairs(self.law.cutoff))
        if overlap is not None and not self._allow_overlap:
            raise self._lookout.keep(overlap, self.step)

    def _see(self) -> None:
        """Look and act on it at once, for somebody who wants to know how things stand."""
        self._take_back(self._lookout.heed(self._lookout.look(self.step, now=True), self.step))

    def _build(self) -> None:
        with self._lookout.overflows(self.step):
            self._search.build()

    def _take_back(self, halted: int) -> int:
        if halted:
            self.step -= halted
            self._integrator.set_clock(self.step)
        return halted


def _nothing() -> None:
    pass


def _time_step(dt: float | None, law: PairLaw) -> float:
    if dt is None:
        contact_time = getattr(law, "contact_time", np.inf)
        if not np.isfinite(contact_time):
            raise ValueError(
                f"dt = None, but {law} has no contact time to derive it from; give dt in time units"
            )
        return contact_time / STEPS_PER_CONTACT
    if not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"dt = {dt}; allowed: positive and finite, in time units")
    return float(dt)


# Under their own names the constructor's arguments would hide these functions.
_search, _integrator = search, integrator
