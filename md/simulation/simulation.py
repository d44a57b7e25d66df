"""Simulation: particles, a pair law, and the parts that compute their motion."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from md import checks
from md.backend import Backend, Timings
from md.backend import get as get_backend
from md.boundaries.base import ActiveBoundaries, ActiveBoundary, Boundary
from md.boundaries.external_field import ExternalField
from md.boundaries.walls import Walls
from md.domain.communicator import Communicator
from md.domain.division import Division, Domain
from md.domain.on_device.ahead import DomainAhead
from md.domain.together import of_all_ranks
from md.errors import NotYetReordered
from md.integrate import Integrator
from md.io.archive import MOST_STEPS
from md.io.checkpoint import PACKAGE, SavedRun, blamed_on
from md.io.trajectory import append_frame
from md.laws import PairLaw
from md.particles.state import State
from md.reorder import ActiveReorder, Every, Reorder
from md.search import Search, SearchConfig
from md.search.sorted_copy import build_search
from md.simulation.config import SimulationConfig, check_given, choices_of, holds, require_divisible
from md.simulation.device_view import DeviceView
from md.simulation.energy_monitor import EnergyMonitor
from md.simulation.fault_monitor import FaultMonitor, post_mortem_folder
from md.simulation.forces import Forces
from md.simulation.reporter import Reporter, Reports, checked, next_report, released
from md.simulation.step_loop import StepLoop
from sfc.cache import AccessStream

ENERGY_DEPENDS_ON = ("law", "walls", "gravity", "surroundings")  # choices that fix the energy of the start


class Simulation:
    """Simulation of particles that interact by a pair law.

    Args:
        state: the initial state; it is copied.
        law: pair law, such as `md.laws.SpringDashpot`, or one of your own (`md.laws.pair_function`).
        search: one of `md.search.SEARCHES`, or a configured search such as `md.search.Coherent("hilbert")`.
        integrator: one of `md.integrate.INTEGRATORS`.
        walls: `md.Walls` or `md.ShakenWalls`, at the ends of the axes that are neither periodic nor open, or
            of their `sides`; None for none: a particle that reaches such an end is a fault.
        gravity: (dim,) acceleration of every particle, in d / time^2; None for none.
        dt: time step in time units; None for a fiftieth of the shortest contact time, or less for strong
            damping (`md.simulation.time_step`).
        surroundings: other boundaries, in steps that are not fused: `md.Wing`, `md.Inflow`.
        reorder: ordering and trigger of the reorder of the particles in memory, or of the work on them; None
            for no reorder.
        backend: "cpu", "cuda", or "auto" for CUDA if there is a device; or a `md.backend.Backend`.
        precision: "float32" or "float64"; of positions, velocities and forces.
        layout: layout of particle arrays in memory, one of `md.backend.LAYOUTS`; None for the default of the
            device.
        fused: kick and drift each particle in the force kernel, as soon as its force is known. Saves a
            pass over memory; the phase `force` then contains the integration too.
        allow_overlap: start though centres are closer than the law's `closest_start`, half that to a wall.
        communicator: of the ranks among which the particles are divided, such as `md.Communicator.mpi()`;
            None for one process alone. All ranks make the same simulation and call the same methods.
        division: how; None for `md.Division()`. Without effect on one rank.
        deterministic: sum forces in order of id, so that a run is the same to the last bit on any number of
            threads and ranks; with search "verlet" on the CPU.
        post_mortem: folder, made at once, in which a fault saves the particles as `fault-<step>.npz`
            (`fault_monitor.FaultSnapshot`), each rank of several its own in a folder `rank-<number>`; None
            stores them in the error's `state` only.

    Attributes:
        config: `SimulationConfig`, all choices, with the derived `dt`.
        system: `md.particles.system.System`: particle arrays, cells, time step, timings, status.
        search: the search at work; with a reorder of mode "shadow" a `SortedCopySearch` of it.
        reordering: the reorder at work: `steps` at which it reordered, and `trigger.chosen`, the interval
            that a self-tuning trigger has chosen (`md.reorder.ChosenInterval`); None without a reorder.
        surroundings: boundaries at work, in the order in which they were given.
        backend: the `md.backend.Backend` on which the arrays are stored.
        timings: `md.backend.Timings` of the phases reorder, build, force and integrate, and of whole runs.

    Raises:
        TypeError: an argument of another class than described, or a law of a class without a pair function.
        ValueError: an unknown name, a step that is not positive and finite, a box too small for the cutoff,
            choices that do not go together (`config.INCOMPATIBLE`), more cells than fit in memory, or a
            folder that cannot be made.
        BackendUnavailableError: CUDA is not available, or the law has no `.cuh`.
    """

    def __init__(
        self,
        state: State,
        law: PairLaw,
        search: str | SearchConfig = "linked",
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
        deterministic: bool = False,
        post_mortem: str | Path | None = None,
        communicator: Communicator | None = None,
        division: Division | None = None,
    ):
        with nullcontext() if communicator is None else communicator.together():
            checks.instance(
                "state", state, State, "an md.State", "make one of your arrays: md.State(pos, vel, box)"
            )
            place = backend if layout is None else get_backend(backend, layout)
            choices: dict[str, Any] = {  # names and sequences, which the configuration replaces
                "law": law, "search": search, "integrator": integrator, "dt": dt, "reorder": reorder,
                "walls": walls, "gravity": gravity, "surroundings": surroundings, "backend": place,
                "precision": precision, "fused": fused, "allow_overlap": allow_overlap,
                "deterministic": deterministic,
            }  # fmt: skip
            config, folder = SimulationConfig(**choices), post_mortem_folder(post_mortem)
            self._assemble(state, config, folder, communicator, division or Division())

    def _assemble(
        self, state: State, config: SimulationConfig, post_mortem: Path | None,
        communicator: Communicator | None, division: Division,
    ) -> None:  # fmt: skip
        """Build the parts of the simulation; see the constructor."""
        system = self.system = config.build_system(state)
        gravity, law = config.gravity, config.law
        if communicator is not None and communicator.size > 1:
            require_divisible(config, system)
            communicator.require_equal("version of the package", PACKAGE)
            choices = config.with_step(system.dt, gravity).to_plain() | {"box": str(state.box)}
            communicator.require_equal("their choices", choices)
            communicator.require_equal("the division", division)
            if not system.backend.runs_ahead:
                Domain(division, communicator, system)
            else:
                packs = config.search.capabilities.packs and system.backend.packs_rows_for(law)
                DomainAhead(division, communicator, system, packs)
        reordering = None if config.reorder is None else config.reorder.build(system)
        built = build_search(config.search, system, None if reordering is None else reordering.order)
        self.search: Search = built
        self.reordering: ActiveReorder | None = reordering
        field = ExternalField(config.walls, gravity, law, system, others=bool(config.surroundings))
        stepper = config.integrator.build(system, field)
        energy = EnergyMonitor(system, law, stepper, field, config.search, config.allow_overlap)
        boundaries = ActiveBoundaries([boundary.build(system, built) for boundary in config.surroundings])
        monitor = FaultMonitor(system, built.policy, energy, post_mortem)
        forces = Forces(law, built, stepper, boundaries)
        self.config = config.with_step(system.dt, gravity)
        self._field, self._stepper, self._energy, self._monitor = field, stepper, energy, monitor
        self._boundaries = boundaries
        self._loop = StepLoop(system, built, stepper, boundaries, forces, reordering, monitor, config.fused)
        self._reports = Reports(self._loop.is_ended)

    def __len__(self) -> int:
        return self.system.n_total

    def __repr__(self) -> str:
        return (
            f"Simulation(n={len(self)}, step={self.step}, search={self.config.search.name}, "
            f"reorder={_reorder_shown(self.config.reorder)}, backend={self.backend.name} "
            f"{self.config.precision})"
        )

    @property
    def backend(self) -> Backend:
        """Backend on which the arrays are stored."""
        return self.system.backend

    @property
    def timings(self) -> Timings:
        """Times of the phases of steps, and of whole runs."""
        return self.system.timings

    @property
    def law(self) -> PairLaw:
        """Pair law."""
        return self.config.law

    @property
    def dt(self) -> float:
        """Time step in time units; the longest one if steps differ."""
        return self.system.dt

    @property
    def surroundings(self) -> tuple[ActiveBoundary, ...]:
        """Boundaries at work, in the order in which they were given."""
        return tuple(self._boundaries)

    @property
    def builds(self) -> int:
        """Number of builds of the search's structure for steps since the simulation was made or loaded."""
        return self.search.builds

    @of_all_ranks
    def run(
        self, steps: int, phases: bool = True, progress: bool = False, reporters: Sequence[Reporter] = ()
    ) -> None:
        """Take a number of steps.

        The loop, in short::

            at the first step: check the start for overlaps, compute its energy
            repeat:
                reorder the particles, if the trigger returns true
                build the search's structure, if its policy returns that it is due
                force = law over pairs + boundaries + walls and gravity
                integrate: kick and drift (in the force kernel, if fused)
                every `backend.check_interval` steps (ranks on the CPU: up to 20): poll, raise faults
                at steps that are multiples of its interval: call each reporter

        A device that runs ahead gets up to `backend.piece_lengths[0]` steps at once, as a captured graph. The
        CPU, and a device with few particles, takes several fused steps with neighbour lists in one call
        (`Search.most_steps`). With `phases` all steps are taken one by one.

        Args:
            steps: number of steps, 0 or more.
            phases: time each phase of each step. The whole run is always timed, and so are, for a trigger
                that needs them, the phases, or on a device captured steps together.
            progress: show a progress bar.
            reporters: called at steps that are multiples of their intervals (`md.simulation.reporter`),
                including step 0; their time is not in `timings`. A report that Ctrl-C or another exception
                prevented is made when the run continues with the same object among its reporters.

        Raises:
            TypeError: a number of steps or an interval that is no integer, or an object that is no reporter.
            ValueError: a negative number of steps, or one beyond the steps that a file can store; or a
                reporter's interval below 1.
            OverlappingStart: particles overlap deeply at the start; not with allow_overlap.
            SimulationFault: a particle left the box, its position is not finite, or the energy explodes; with
                step and particle. Every later call that reads the simulation raises it again.
            HaloOutrun: on several ranks, a particle moved farther than ghosts or lists reach.
            RankFailedError: another rank has ended with an error of its own, such as full memory.
        """
        steps = checks.integer("steps", steps, 0, MOST_STEPS - 1 - self.step, remedy="run in parts")
        reporters = checked(reporters)
        phases, progress = checks.flag("phases", phases), checks.flag("progress", progress)
        if self.system.domain is not None:
            made = [(type(reporter).__name__, reporter.interval) for reporter in reporters]
            self.system.domain.communicator.require_equal("the arguments of run", (steps, phases, made))
        if not self._monitor.was_polled(self.step):
            self._loop.poll()
        if steps and not self._energy.is_started:
            overlap = self._energy.check_start(self.step)
            if overlap is not None:
                raise self._monitor.keep(overlap, self.step)
        first, last, taken, ms = self.step, self.step + steps, 0, 0.0
        # A bar that is not shown takes a quarter of the time of a small step.
        with tqdm(total=steps, unit="step") if progress else nullcontext() as bar:
            try:
                self._reports.begin(reporters, self, steps)
                while self.step < last:
                    until = int(min(last, next_report(reporters, self.step)))
                    ms += self._loop.run_to(until, phases, bar)
                    taken = self.step - first
                    self._reports.make(reporters, self)
            finally:
                released(reporters)
                if taken > 0:  # ranks on devices may end at an earlier step, to which they have returned
                    self.timings.total.append((taken, ms))

    @of_all_ranks
    def reorder(self) -> None:
        """Reorder the particles, or the work on them, now, without calling the trigger.

        Positions are not changed, so the run differs only in the order in which forces are summed. The
        trigger counts it as a reorder before the next step, and so do `timings`.

        Raises:
            ValueError: the simulation has no reorder.
            SimulationFault: the run has ended with it.
        """
        if self.reordering is None:
            remedy = f"give search {self.config.search.name!r} its cell_order, by which it sorts"
            if not self.config.search.capabilities.moves_particles:
                remedy = 'make the simulation with, for example, reorder=md.Reorder("hilbert", md.Never())'
            raise ValueError(f"reorder = None; allowed: an md.Reorder, which has the order; {remedy}")
        self._loop.reorder()

    @property
    def step(self) -> int:
        """Number of steps taken so far."""
        return self._loop.step

    @property
    @of_all_ranks
    def time(self) -> float:
        """Time passed, in time units."""
        self._loop.poll()
        return self._stepper.time(self.step)

    @property
    @of_all_ranks
    def state(self) -> State:
        """Copy of the particles in memory order, on the host; velocities at the time of the positions.

        Reading it does not change the run, but for rounding: on a device neighbour lists may then be built at
        other steps; with `position_verlet`, which needs forces half a step ahead, a search whose structure is
        used for several steps may build it at other positions.
        """
        self._loop.synchronise()
        if self.step == 0:
            return self._gathered(self.system.particles.to_state())
        force = self._loop.compute_forces()
        return self._gathered(self.system.particles.to_state(self._stepper.velocity_now(force, self.step)))

    def _gathered(self, own: State) -> State:
        """Return the particles of all ranks, rank by rank."""
        if self.system.domain is None:
            return own
        radius = np.empty(0) if own.radius is None else own.radius
        found = self.system.domain.communicator.concatenated(own.pos, own.vel, own.id, radius)
        pos, vel, id, radius = found
        return State(pos, vel, own.box, id, None if own.radius is None else radius)

    @of_all_ranks
    def device_view(self) -> DeviceView:
        """Return a view of the particles on the backend, with an updated search; for `md.observe`."""
        self._loop.synchronise()
        force, vel = self._loop.compute_forces(), self.system.particles.vel
        if self.step:
            vel = self._stepper.velocity_now(force, self.step)
        drift = self._stepper.last_drift() if self.step else 0.0
        return DeviceView(
            self.system.particles, vel, self.search, self.law, self.step, self._stepper.time(self.step),
            drift, self.backend, self._field, self._stepper.name, self.system.n_total, self.system.domain,
        )  # fmt: skip

    def inside(self) -> DeviceView:
        """Return `device_view()`; the name of that method before version 0.2.0."""
        return self.device_view()

    @of_all_ranks
    def forces(self) -> np.ndarray:
        """Return the force on each particle at present positions and stored velocities, by id: (n, dim).

        Under a law of increments (`md.laws.Boids`) it is the increment of the velocity in the next step, with
        dt times the acceleration by gravity and walls.
        """
        self._loop.synchronise()
        force = self.backend.download(self._loop.compute_forces())
        id = self.backend.download(self.system.particles.id)
        if self.system.domain is not None:
            own = self.system.n_owned
            force, id = self.system.domain.communicator.concatenated(force[:own], id[:own])
        return force[np.argsort(id)]

    @of_all_ranks
    def pairs(self, distance: float | None = None) -> np.ndarray:
        """Return the ids of the pairs that touch, or are closer than a distance: (p, 2) int32, i < j, sorted.

        Args:
            distance: of centres in d, positive and at most the law's cutoff times the largest diameter. None
                for the touching pairs: closer than the cutoff times the sum of their radii.

        Raises:
            TypeError: a distance that is no number.
            ValueError: a distance that the search does not cover.
        """
        if distance is not None:
            remedy = "the most is the law's cutoff times the largest diameter"
            distance = checks.number(
                "distance", distance, high=self.system.grid.cutoff, above=0, unit="d", remedy=remedy
            )
        self._loop.synchronise()
        self._loop.update_search()
        found = self.search.touching(self.law.cutoff) if distance is None else self.search.pairs(distance)
        if self.system.domain is None:
            return found
        (found,) = self.system.domain.communicator.concatenated(found)
        return found[np.lexsort((found[:, 1], found[:, 0]))]

    @of_all_ranks
    def accesses(self) -> AccessStream:
        """Return the slots that the force kernel reads now, reader by reader in its order; for `sfc.cache`.

        A slot is a row of the arrays that the kernel reads: of the particles in their present memory order,
        or with a reorder of mode "shadow" of the sorted copy (the reads of updating it and scattering the
        forces are not in the stream). The readers are the slots in memory order, with mode "threads" in work
        order.

        Warns with `md.NotYetReordered` if a reorder was configured and has not taken place yet: it takes
        place in the steps for which its trigger returns true, or by `reorder`.

        On several ranks the stream is that of this rank.
        """
        self._prepare_reading()
        return self.search.accesses()

    @of_all_ranks
    def access_count(self) -> int:
        """Return the number of slots in `accesses`, without storing them; warns in the same cases."""
        self._prepare_reading()
        return self.search.access_count()

    def _prepare_reading(self) -> None:
        """Update the search to the present positions; warn if a reorder has not taken place yet."""
        self._loop.synchronise()
        if self.reordering is not None and not self.reordering.is_applied:
            along = self.reordering.config.ordering
            warnings.warn(
                f"step {self.step}: no reorder along {along!r} has taken place yet, and these are accesses "
                "in the memory order of the state; call sim.reorder() before, or run as many "
                "steps as the schedule waits for",
                NotYetReordered,
                stacklevel=3,
            )
        self._loop.update_search()

    @of_all_ranks
    def write(self, path: str | Path, precision: str = "single") -> None:
        """Append the present particles to a trajectory, which OVITO and freud can open (`md.io.trajectory`).

        Args:
            path: of the file, usually `.gsd`; made if there is none.
            precision: "single" (float32), which rounds coordinates by up to 6e-8 of their distance from the
                centre of the box, or "double" (float64), which needs gsd 5; it has to be that of a file that
                is there.

        Raises:
            ValueError: the file is not a trajectory of this system, with a last step before this one and in
                this precision, or holds what no frame of this package has (`append_frame`); the precision
                cannot hold a number, or gsd is too old for it.
            BlockingIOError: the file is the trajectory of a run in another process.
            OSError: the frame cannot be written; earlier frames are not changed.
        """
        state = self.state
        self._by_one_rank(lambda: append_frame(path, state, self.step, precision))

    def _by_one_rank(self, write: Callable[[], None]) -> None:
        """Write a file, by the first rank of several; an error is raised on all."""
        domain = self.system.domain
        if domain is None:
            write()
            return
        error: Exception | None = None
        if domain.communicator.rank == 0:
            try:
                write()
            except Exception as raised:
                error = raised
                try:
                    pickle.loads(pickle.dumps(raised))
                except Exception:  # of a class that cannot be sent
                    error = RuntimeError(f"{type(raised).__name__}: {raised}")
        error = domain.communicator.all_of(error)[0]
        if error is not None:
            raise error

    @of_all_ranks
    def save(self, path: str | Path) -> None:
        """Save all that a run needs to resume, to the last bit (`md.io.checkpoint`).

        The run that continues from here and the one that `load` makes are the same, if the search is bitwise
        on the backend (`md.search.Capabilities`) and nothing depends on the times of steps (`Decayed`, a
        skin "auto", `md.Division(weights="time")`). On the CPU `md.search.Reflexive` needs the same number
        of threads too, because each thread sums forces separately.

        Args:
            path: of the file, usually `.npz`. An existing file is replaced once the new one is complete.

        Raises:
            SimulationFault: the run has ended with it.
            ValueError: a velocity is not finite.
            OSError: the file cannot be written; an existing file is not changed.
        """
        self._loop.synchronise()
        if self.system.domain is not None:
            self.system.domain.migrate(cuts=True)  # as when it is loaded
            self.search.rows_changed()
        self.search.reset()
        states = {name: part.state_dict() for name, (part, _) in self._parts().items()}
        state = self._gathered(self.system.particles.to_state())
        saved = SavedRun(self.config.to_plain(), state, self.step, states)
        self._by_one_rank(lambda: saved.write(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        backend: str | Backend | None = None,
        post_mortem: str | Path | None = None,
        communicator: Communicator | None = None,
        division: Division | None = None,
        **instead: Any,
    ) -> Self:
        """Load a simulation from a checkpoint, at the step of its save; its timings are empty.

        It resumes to the last bit under the conditions of `save`; with the search `reflexive` on the same
        number of threads only.

        Args:
            path: of the file; reading it runs no code.
            backend: as in the constructor; None for that of the file.
            post_mortem: as in the constructor; it is not stored in the file.
            communicator: as in the constructor; any number of ranks may go on with a run.
            division: as in the constructor. To the last bit a run goes on with that of the saved run, on as
                many ranks.
            instead: other arguments of the constructor, in place of those of the file: `law`, `search`,
                `walls`, `gravity`, `surroundings`, `reorder`, `fused`. Needed for an object of an
                unregistered class, for which `integrator` may be given too: the stored velocities and time
                are those of that integrator.

        Raises:
            OSError: the file is missing or cannot be read.
            CheckpointError: the file holds no simulation, or none that can be made here.
            TypeError: an argument of another class than the constructor takes.
            ValueError: an argument that no simulation has, or that cannot differ from the file.
            BackendUnavailableError: CUDA is not available here; not with backend="cpu".
        """
        if backend is not None:
            instead["backend"] = backend
        with nullcontext() if communicator is None else communicator.together():
            return cls._loaded(path, post_mortem, communicator, division, instead)

    @classmethod
    def _loaded(
        cls, path: str | Path, post_mortem: str | Path | None, communicator: Communicator | None,
        division: Division | None, instead: dict[str, Any],
    ) -> Self:  # fmt: skip
        """Do what `load` says."""
        saved = SavedRun.read(path)
        check_given(instead, saved.state.box.dim)
        post_mortem = post_mortem_folder(post_mortem)
        choices = choices_of(saved, path, instead)
        with blamed_on(path):
            whole = division and replace(division, is_part=False)  # the file has all particles
            simulation = cls(
                saved.state, **choices, post_mortem=post_mortem, communicator=communicator, division=whole
            )
            for name, (part, needed) in simulation._parts().items():
                if all(holds(saved, slot, choices.get(slot, ())) for slot in needed):
                    part.load_state(saved.states[name])
        simulation._loop.start_at(saved.step)
        return simulation

    def _parts(self) -> dict[str, tuple[Any, tuple[str, ...]]]:
        """Return the parts that a run restores, by name, and the choices that must equal the saved ones."""
        parts: dict[str, tuple[Any, tuple[str, ...]]] = {
            "integrator": (self._stepper, ()),
            "surroundings": (self._boundaries, ("surroundings",)),
            "energy": (self._energy, ENERGY_DEPENDS_ON),
        }
        return parts if self.reordering is None else parts | {"reorder": (self.reordering, ("reorder",))}


def _reorder_shown(reorder: Reorder | None) -> str:
    """Return the order and schedule of a reorder as text for `repr`."""
    if reorder is None:
        return "none"
    schedule = getattr(reorder.schedule, "__qualname__", None) or repr(reorder.schedule)
    along = reorder.ordering if isinstance(reorder.ordering, str) else reorder.ordering.name
    when = f"every {reorder.schedule.interval}" if isinstance(reorder.schedule, Every) else schedule
    return f"{along} {when}"
