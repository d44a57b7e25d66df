"""The loop: reorder, build, force, integrate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from md import backend as backends
from md import checks
from md.backend import Backend, Timings
from md.boundaries.base import Boundary, memories, remember
from md.boundaries.external_field import ExternalField
from md.boundaries.walls import Walls
from md.errors import NotYetReordered
from md.integrate import Integrator, integrator
from md.io.checkpoint import MOST_STEPS, Saved, blamed_on, described
from md.io.trajectory import append_frame
from md.laws import PairLaw
from md.laws.pair import kernel_law
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.state import State
from md.reorder import Reorder
from md.search import Search, search
from md.simulation.config import check_classes, check_compatible, check_given, time_step
from md.simulation.device_view import DeviceView
from md.simulation.energy_monitor import EnergyMonitor, begin
from md.simulation.fault_monitor import FaultMonitor, post_mortem_folder
from md.simulation.reporter import Reporter, Reports, checked, next_report, released
from md.simulation.step_loop import Loop
from sfc.cache import AccessStream

PRECISIONS = ("float32", "float64")
KEPT = ("law", "walls", "gravity", "surroundings")  # by which the energy of the start holds


class Simulation:
    """A state, a law, and how to compute with them.

    Args:
        state: the start; it is copied.
        law: pair law, such as `md.laws.SpringDashpot`, or one of your own (`md.laws.pair_function`).
        search: one of `md.search.SEARCHES`, or a configured search such as `md.search.Coherent("hilbert")`.
        integrator: one of `md.integrate.INTEGRATORS`.
        walls: `md.Walls` or `md.ShakenWalls`, at the ends of the axes that are neither periodic nor
            open if they do not say; None for none: a particle that comes to such an end is a fault.
        gravity: (dim,) acceleration of every particle, in d / time^2; None for none.
        dt: time step in time units; None for a fiftieth of the contact time, that of the smallest spheres.
        surroundings: what else particles meet in steps that are not fused: a `md.Wing`, a `md.Inflow`.
        reorder: when and along what to reorder the particles in memory, or the work on them; None for never.
        backend: "cpu", "cuda", or "auto" for CUDA where a device is; or a `md.backend.Backend`.
        precision: "float32" or "float64"; of positions, velocities and forces.
        layout: how particles lie in memory, one of `md.backend.LAYOUTS`; None for what suits the device.
        fused: kick and drift each particle in the force kernel, as soon as its force is known. Saves a
            pass over memory; the phase `force` then holds the integration too.
        allow_overlap: begin though centres are closer than the law's `closest_start`, half that to a wall.
        post_mortem: folder, made at once, in which a fault saves what is left as `fault-<step>.npz`
            (`fault_monitor.FaultSnapshot`); None keeps it in the error's `state` alone.

    Attributes:
        backend: the `md.backend.Backend` on which all this lives.
        search: at work; under a reorder of mode "shadow" a `md.search.sorted_copy.SortedCopySearch` of it.
        surroundings: those at work, in the order in which they were given.
        timings: `md.backend.Timings` of the phases reorder, build, force and integrate, and of whole runs.

    Raises:
        TypeError: an argument of another class than described, or a law whose class has no pair function.
        ValueError: an unknown name, a step that is not positive and finite, a box too small for the cutoff,
            choices that do not go together (`md.simulation.config`), more cells than there is memory for, or a folder
            that cannot be made.
        BackendUnavailableError: CUDA asked for where there is none, or for a law without a `.cuh`.
    """

    def __init__(
        self,
        state: State,
        law: PairLaw,
        search: str | Search = "linked",
        integrator: str | Integrator = "velocity_verlet",
        dt: float | None = None,
        walls: Walls | None = None,
        gravity: Sequence[float] | None = None,
        surroundings: Sequence[Boundary] = (),
        reorder: Reorder | None = None,
        backend: str | Backend = "auto",
        precision: str = "float64",
        layout: str | None = None,
        fused: bool = False,
        allow_overlap: bool = False,
        post_mortem: str | Path | None = None,
    ):
        state, walls, reorder, surroundings = check_classes(state, walls, reorder, surroundings)
        precision = checks.word("precision", precision, PRECISIONS)
        fused, allow_overlap = checks.flag("fused", fused), checks.flag("allow_overlap", allow_overlap)
        self._allow_overlap, chosen, mover = allow_overlap, _search(search), _integrator(integrator)
        check_compatible(law, chosen, mover, reorder, fused, surroundings)
        self.law, self.timings = law, Timings()
        self.backend = backends.get(backend, layout)
        self.backend.require_code_of(law)
        kernel_law(law, np.dtype(precision))  # its numbers are refused here, not at the first step
        p = self._particles = ParticleArrays(state, np.dtype(precision), self.backend)
        self._grid = CellGrid(state.box, law.cutoff * p.widest, np.dtype(precision), self.backend)
        self.dt = time_step(dt, law, walls, p.narrowest, surroundings)
        where = self._particles, self._grid, self.backend
        self._reorder = None if reorder is None else reorder.bind(*where, self.timings)
        self.search = chosen.bind(*where) if reorder is None else self._reorder.bind_search(chosen)
        gas = *where[:2], self.dt, self.backend
        outside = self._outside = ExternalField(walls, gravity, law, *gas, others=bool(surroundings))
        self._integrator = mover.bind(*gas, outside)
        self._watch = EnergyMonitor(self._particles, law, self._integrator, outside, self.dt, self.backend)
        self.surroundings = tuple(s.bind(*where[:2], self.search, self.backend) for s in surroundings)
        kept = self.dt, self.backend, self.timings, post_mortem_folder(post_mortem)
        self._lookout = FaultMonitor(self._particles, self.search, self._watch, *kept)
        chain = self.search, self._integrator, self._reorder, self._lookout, fused, self.backend
        self._loop = Loop(self._particles, law, *chain, self.timings, self.surroundings)
        self._begun, self._reports = 0, Reports()
        self._choices = {
            "law": law, "search": chosen, "integrator": mover, "dt": self.dt, "reorder": reorder,
            "walls": walls, "gravity": None if gravity is None else tuple(map(float, gravity)),
            "surroundings": surroundings, "backend": self.backend, "precision": precision,
            "fused": fused, "allow_overlap": allow_overlap,
        }  # fmt: skip

    def __len__(self) -> int:
        return self._particles.n

    @property
    def builds(self) -> int:
        """How often the search made its structure since the simulation was made or loaded."""
        return getattr(self.search, "builds", self.step - self._begun)

    def run(
        self, steps: int, phases: bool = True, progress: bool = False, reporters: Sequence[Reporter] = ()
    ) -> None:
        """Take some steps.

        Args:
            steps: how many, 0 or more.
            phases: time each phase of each step; the whole run is timed in any case, and so are, for a
                schedule that goes by them, the phases, or on a device pieces of fused steps.
            progress: show a progress bar.
            reporters: are called at steps that are multiples of their intervals (`md.simulation.reporter`), at step 0
                too; their time is not in `timings`. A report that Ctrl-C or another exception kept from being
                made is made when the run goes on with the same object among its reporters.

        Raises:
            TypeError: a number of steps or an interval that is no integer, or no reporter.
            ValueError: a negative number of steps, or one to a step that no file holds; or a reporter's
                interval below 1.
            OverlappingStart: the start overlaps deeply; not with allow_overlap.
            SimulationFault: a particle left the box, its position is not finite, or the energy explodes; with
                step and particle. Whatever is asked of the simulation afterwards raises it again.
        """
        steps = checks.integer("steps", steps, 0, MOST_STEPS - 1 - self.step, remedy="run in parts")
        reporters = checked(reporters)
        phases, progress = checks.flag("phases", phases), checks.flag("progress", progress)
        self._loop.see()
        if steps and not self._watch.begun:
            self._begin_watch()
        first, last, taken, ms = self.step, self.step + steps, 0, 0.0
        with tqdm(total=steps, unit="step", disable=not progress) as bar:
            try:
                self._reports.begin(reporters, self, steps)
                while self.step < last:
                    ms += self._loop.run_to(min(last, next_report(reporters, self.step)), phases, bar)
                    taken = self.step - first
                    self._reports.make(reporters, self)
            finally:
                released(reporters)
                if taken:
                    self.timings.total.append((taken, ms))

    def reorder(self) -> None:
        """Order the particles, or the work on them, now, whatever the schedule of the reorder says.

        The positions stay as they are, so the run goes on as without it but for the order in which forces are
        summed. The schedule takes note of it, and it is in `timings` as a reorder before the next step.

        Raises:
            ValueError: the simulation has no reorder.
            SimulationFault: the run has ended with it.
        """
        if self._reorder is None:
            remedy = f"give search {self.search.name!r} its cell_order, by which it sorts at each build"
            if not self.search.sorts_data:
                remedy = 'make the simulation with reorder=md.Reorder("hilbert", md.Never()), say'
            raise ValueError(f"reorder = None; allowed: an md.Reorder, which tells the order; {remedy}")
        self._loop.reorder()

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return self._loop.step

    @property
    def time(self) -> float:
        """Time passed, in time units."""
        self._loop.see()
        return self._integrator.time(self.step)

    @property
    def state(self) -> State:
        """A copy of the particles now, in memory order, on the host; velocities at the time of the positions.

        Looking changes no run, though on a device `verlet` may make its lists at other steps then.
        """
        self._loop.see()
        if self.step == 0:
            return self._particles.to_state()
        force = self._loop.find_forces()
        return self._particles.to_state(self._integrator.velocity_now(force, self.step))

    def inside(self) -> DeviceView:
        """The particles as they are now where they live, the search built; for `md.observe`."""
        self._loop.see()
        force, vel = self._loop.find_forces(), self._particles.vel
        if self.step:
            vel = self._integrator.velocity_now(force, self.step)
        drift = self._integrator.last_drift() if self.step else 0.0
        at, mover = (self.step, self._integrator.time(self.step), drift), self._integrator.name
        return DeviceView(
            self._particles, vel, self.search, self.law, *at, self.backend, self._outside, mover
        )

    def forces(self) -> np.ndarray:
        """Force on each particle at the present positions and stored velocities, in order of id: (n, dim)."""
        self._loop.see()
        force = self.backend.download(self._loop.find_forces())
        return force[np.argsort(self.backend.download(self._particles.id))]

    def pairs(self, distance: float | None = None) -> np.ndarray:
        """Ids of the touching pairs, or of those closer than a distance now: (p, 2) int32, i < j, sorted.

        Args:
            distance: of centres in d, positive and at most the law's cutoff times the largest diameter. None
                for the touching pairs: closer than the cutoff times the sum of their radii.

        Raises:
            TypeError: a distance that is no number.
            ValueError: a distance the search cannot see.
        """
        if distance is not None:
            remedy = "the most is the law's cutoff times the largest diameter"
            distance = checks.number(
                "distance", distance, high=self._grid.cutoff, above=0, unit="d", remedy=remedy
            )
        self._loop.see()
        self._loop.build()
        return self.search.touching(self.law.cutoff) if distance is None else self.search.pairs(distance)

    def accesses(self) -> AccessStream:
        """What the force kernel reads now, reader by reader in the order it takes them; feeds `sfc.cache`.

        A slot is a row of the arrays that it reads: of the particles in their present memory order, or under
        a reorder of mode "shadow" of the sorted copy (what refreshing it and scattering the forces reads is
        not in the stream). The readers are the slots in turn, under mode "threads" in the work order.

        Warns with `md.NotYetReordered` where a reorder was asked for and has not taken place yet: one takes
        place in a step that its schedule names, or by `reorder`.
        """
        self._loop.see()
        if self._reorder is not None and not self._reorder.is_applied:
            along = self._reorder.ordering
            warnings.warn(
                f"step {self.step}: no reorder along {along!r} has taken place yet, and these are accesses "
                "in the memory order of the state; call sim.reorder() before sim.accesses(), or run as many "
                "steps as the schedule waits for",
                NotYetReordered,
                stacklevel=2,
            )
        self._loop.build()
        return self.search.accesses()

    def write(self, path: str | Path) -> None:
        """Append the particles as they are to a trajectory, which OVITO and freud open (`md.io.trajectory`).

        Args:
            path: of the file, usually `.gsd`; begun if it is not there.

        Raises:
            ValueError: the file is of other particles or has got to a later step, or is no trajectory.
            OSError: the frame cannot be written; those before it are kept.
        """
        append_frame(path, self.state, self.step)

    def save(self, path: str | Path) -> None:
        """Save all that a run needs to go on, to the last bit (`md.io.checkpoint`).

        The run that goes on from here and the one that `load` makes are the same, where the search repeats on
        the backend (`Search.repeats_on`) and nothing goes by the times of steps (`Decayed`, a skin "auto").
        On the CPU `md.search.Reflexive` needs the same number of threads too: each sums forces of its own.

        Args:
            path: of the file, usually `.npz`. What is there stays until the new one is whole.

        Raises:
            SimulationFault: there is nothing to go on from.
            ValueError: a velocity is not finite.
            OSError: the file cannot be written; what was there is as it was.
        """
        self._loop.see()
        self.search.forget()
        memory = {
            "integrator": self._integrator.memory,
            "reorder": {} if self._reorder is None else self._reorder.memory,
            "surroundings": memories(self.surroundings),
        }
        state = self._particles.to_state()
        Saved(described(self._choices), state, self.step, self._watch.start, memory).write(path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        backend: str | Backend | None = None,
        post_mortem: str | Path | None = None,
        **instead: Any,
    ) -> Self:
        """The simulation that was saved, at the step at which it was; its timings begin anew.

        It goes on to the last bit as `save` says: with the search `reflexive` on as many threads alone.

        Args:
            path: of the file, which runs no code.
            backend: as of the constructor; None for that of the file.
            post_mortem: as of the constructor; the file says nothing of it.
            instead: other arguments of the constructor, in place of what the file says: `law`, `search`,
                `walls`, `gravity`, `surroundings`, `reorder`, `fused`. Needed for an object that no registry
                has, for which `integrator` may be given too: velocities and time are as it keeps them.

        Raises:
            OSError: no file, or one that cannot be read.
            CheckpointError: what is in it is no simulation, or none that can be made here.
            TypeError: an argument of another class than the constructor takes.
            ValueError: an argument that no simulation has, or that cannot be another than in the file.
            BackendUnavailableError: CUDA is not available here; not with backend="cpu".
        """
        if backend is not None:
            instead["backend"] = backend
        saved = Saved.read(path)
        check_given(instead, saved.state.box.dim)
        post_mortem = post_mortem_folder(post_mortem)
        choices = saved.choose(path, instead)
        with blamed_on(path):
            simulation = cls(saved.state, **choices, post_mortem=post_mortem)
            if choices.get("reorder") is not None and saved.holds("reorder", choices["reorder"]):
                simulation._reorder.remember(saved.memory["reorder"])
            simulation._integrator.remember(saved.memory["integrator"])
            if saved.holds("surroundings", choices.get("surroundings", ())):
                remember(simulation.surroundings, saved.memory["surroundings"])
        simulation._loop.begin_at(saved.step)
        simulation._begun = saved.step
        if all(saved.holds(slot, choices.get(slot)) for slot in KEPT):
            simulation._watch.restore(saved.step, saved.start_energy)
        return simulation

    def _begin_watch(self) -> None:
        reach = None if self._allow_overlap and self._outside.drives else self.law.cutoff
        where = self._particles, self._grid, self.backend, reach
        overlap = begin(self._watch, self._choices["search"], *where)
        if self.step == 0 and overlap is not None and not self._allow_overlap:
            self._watch.begun = False
            raise self._lookout.keep(overlap, self.step)


# Under their own names the constructor's arguments would hide these functions.
_search, _integrator = search, integrator
