"""How long does a memory order last: in gases by predicted hits, beside measured times, and in a flock?

The particles are sorted once, and then move without another sort. What is left of the order at a step is its
gain over the same particles in shuffled memory, as a part of the gain at first; half of it is left after the
half-life. `--scene` chooses what moves.

gas: Particles move freely, or in elastic or inelastic collisions. At growing intervals the hit ratio of the
search's reads is predicted in both memories. The half-life is the step at which what is left crosses one
half, in each gas; a gas that keeps more has none. A stretched exponential is fitted to the median over gases
as well, and is drawn and listed only if it is within 0.02 of the gain of every observation.

A step lasts one time unit, so speeds are in d per step. Spheres are nearly hard: a contact lasts at most a
tenth of Enskog's time between two collisions of a particle, so that the spheres of a faster gas are stiffer.
With `--contact-steps` they are the same at every speed. A step is divided into as many integrator steps as
contacts need. Positions are float64 unless `--precision` is given, so that no freezing is numerical.

flock: Boids, and beside them the particles of `md.scenes.benchmark_gas`. In every round they start from the
same state, and the time of a step is measured at growing ages of the order, in sorted and in shuffled memory:
particles that gather take more time a step in any memory order. The same is predicted for smaller systems of
the same density: hits of the reads of the first search, after as many steps. Their particles also give the
root mean square displacement since the sort, over which all is drawn a second time: what moves away from its
neighbours in memory loses its order, however fast it moves to and fro.

With `--measured` nothing is simulated. Kept runs of `interval` have the time of a step by the age of the
order; those of `decay` predict the hits of the same elastic gas at the same ages (made with
`--contact-steps 25 --interaction elastic`). The loss of the gain is the growth of a step's time, or of the
misses, since the reorder; `wear`, in the names of columns, is the measured loss. The full loss is the one to
shuffled memory, if the run of `interval` has rows of it; if not, both half-lives are those of the loss up to
the oldest age that was timed. A prediction of another speed is scaled to the same path flown.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, main, values
from experiments.core.old_names import experiment_now
from experiments.core.plan import plan_lines
from experiments.core.record import read_provenance
from experiments.core.rerun import read_table_now
from experiments.core.settings import Scene, UsageError, flag_of
from experiments.core.terminal import FEW_PARTICLES
from experiments.measurement.correctness import check_flight, check_pairs
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import benchmark_simulation, whole_steps
from experiments.prediction import order_in_flock, order_in_gas, wear
from experiments.prediction.cache_models import check_models, predicted
from experiments.prediction.flocks import RULES, Aging, Flock, places, structure
from experiments.prediction.systems import GEOMETRIES, check_systems, own_side
from experiments.results.answers import Answer
from experiments.results.charts import View
from md.backend import Backend
from md.laws import SpringDashpot
from md.laws.spring_dashpot import LEAST_RESTITUTION, resolving_steps
from md.observe import kinetic_theory
from md.simulation import PRECISIONS

GAS, FLOCK = "gas", "flock"  # scenes; systems of the scene flock
INTERACTIONS = ("ideal", "elastic", "inelastic")
HARD = 0.1  # contact time over the time between two collisions of a particle, at most
DEEPEST = 0.15  # d: largest overlap of two particles of typical speed, head on
LEAST_STEPS = 20  # integrator steps in a contact
FILLING = 0.2  # of the gas beside a flock
SEARCHES: dict[str, str | md.search.SearchConfig] = {
    "linked": "linked",
    "scattered": "scattered",
    "tree": md.search.Reflexive(data="unsorted"),
}
CHECKED_STEPS = {FLOCK: 1, GAS: 50}  # after which a search is compared with another
_OF_FLOCK = ("n", "system", "rules", "search", "age", "predicted_n", "sample", "runs", "rounds")
_OF_GAS = (
    "geometry", "size", "filling_fraction", "interaction", "speed", "path", "contact_steps", "restitution",
    "repeats",
)  # fmt: skip
_FLOCK = {"scene": FLOCK, "precision": ("float32",), "cache": (320, 1024, 4096), "steps": 640,
          "observations": 9}  # fmt: skip
_SMALL_FLOCK = {"n": (4000,), "predicted_n": 2000, "search": ("linked",), "steps": 80, "observations": 5,
                "cache": (64, 1024), "rounds": 3, "runs": 1}  # fmt: skip
_OF_RUNS = ("backend", "seed", "repeats", "measured", "predicted")
QUICK = {
    "size": (16,),
    "filling_fraction": (0.25,),
    "speed": (0.01,),
    "cache": (64, order_in_gas.SHOWN),
    "steps": 400,
    "observations": 12,
}
MINUTES = {
    GAS: 3.5,  # CPU time of 3 of 18 gases, times the particles of the others
    FLOCK: 75,  # CPU time of one run of an eighth of the particles, extrapolated
}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of systems with an aging memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache", "model", "system", "search")
    SCENES: ClassVar[dict[str, Scene]] = {GAS: Scene(_OF_FLOCK), FLOCK: Scene(_OF_GAS, _FLOCK, _SMALL_FLOCK)}

    scene: str = GAS
    """Particles: gas (predicted hits of gases of many kinds), or flock (times and predicted hits of boids,
    and of a gas beside them)."""
    geometry: Axis[str] = ("cubes",)
    """Of gases: squares (discs in a plane) or cubes."""
    size: Axis[int] = (32,)
    """Of gases: side of the system in boxes."""
    filling_fraction: Axis[float] = (0.1, 0.25, 0.5)
    """Of gases: volume of the spheres over that of the box."""
    interaction: Axis[str] = INTERACTIONS
    """Of gases: ideal (particles fly through each other), elastic, inelastic."""
    speed: Axis[float] = (0.003, 0.01)
    """Of gases: root mean square speed of a particle at the start, in d per step."""
    n: Axis[int] = (2**16,)
    """Of flocks: number of particles. Take 1000000 on a GPU."""
    system: tuple[str, ...] = (FLOCK, GAS)
    """Of flocks: a flock (at density 1/8), a gas (20 % filled)."""
    rules: Axis[str] = ("source",)
    """Of flocks: source (rules of [flock]), weak_separation (separation 0.02 up to a distance of 1.5 instead
    of 0.1 up to 3: flocks form)."""
    search: tuple[str, ...] = ("linked", "scattered")
    """Of flocks: neighbour searches that do not move the particles; tree is rebuilt at every step."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: orderings of `sfc`, of flocks in 3D."""
    precision: Axis[str] = ("float64",)
    """Precision of positions, velocities and forces; of gases one."""
    cache: tuple[int, ...] = (64, order_in_gas.SHOWN, 1024, 4096, 33125)
    """Capacities of the cache in particles. The figure of a flock shows the model and capacity at which the
    system that gains least has the largest predicted gain."""
    model: tuple[str, ...] = ("block", "lru")
    """Models of the cache; block is that of [thesis]."""
    steps: int = 2000
    """Number of steps after the reorder: largest age of the order."""
    path: float = 0.0
    """Of gases: distance in d that a particle flies at the speed of the start after the reorder, instead of
    `--steps`: gases of any speed are observed at the same distances. 0 for `--steps`."""
    contact_steps: float = 0.0
    """Of gases: duration of a contact in steps at every speed: one kind of spheres at several temperatures. 0
    for a tenth of the time between two collisions of a particle, which becomes shorter with speed."""
    observations: int = 30
    """Number of observations after the first, at equal distances in the logarithm of the steps; of a flock
    fewer if they would be less than `--sample` apart."""
    restitution: float = 0.8
    """Of gases: coefficient of restitution of inelastic collisions."""
    age: int = 100
    """Of flocks: number of steps before the sort, in which the flock leaves its random start."""
    sample: int = 5
    """Of flocks: number of timed steps at each observation. Take 20 on a GPU."""
    predicted_n: int = 2**14
    """Of flocks: number of particles of the predictions, more than any capacity of a cache."""
    measured: list[str] = field(default_factory=list)
    """Folders of kept runs of `interval`, which are compared with `predicted`, without any gas."""
    predicted: list[str] = field(default_factory=lambda: ["results/reference/decay/cpu_interval"])
    """Folders of kept runs of `decay`, of elastic gases in cubes, beside `measured`."""
    repeats: int = 1
    """Of gases: number of measurements of every case, each with another seed."""
    runs: int = 3
    """Of flocks: number of runs, each in a new process with particles of its own. Take five for a result to
    publish. One run gives no interval and no verdict."""
    rounds: int = 5
    """Of flocks: number of rounds of a run. In each, every compared case is sampled once, in random order."""

    def __post_init__(self):
        is_flock = self.scene == FLOCK
        if not is_flock and isinstance(self.precision, str):  # as older runs recorded it
            object.__setattr__(self, "precision", (self.precision,))
        changed = {"CHANCE": "run"} if is_flock else {"TOGETHER": (*self.TOGETHER, "precision")}
        if self.measured:  # no gas, so no axis
            changed = {"TOGETHER": ("cache", "model", "precision", *order_in_gas.CASE)}
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        super().__post_init__()
        self.check_known({
            "scene": (GAS, FLOCK),
            "geometry": ("squares", "cubes"),
            "interaction": INTERACTIONS,
            "system": (FLOCK, GAS),
            "rules": tuple(RULES),
            "search": tuple(SEARCHES),
            "ordering": sorted({*sfc.orderings(3), *(() if is_flock else sfc.orderings(2))}),
            "precision": PRECISIONS,
        })  # fmt: skip
        check_models(self.model, self.cache)
        self.check_least({
            "size": 2, "n": 1000, "age": 0, "steps": 1, "observations": 1 if is_flock else 3, "sample": 1,
            "predicted_n": 1000, "runs": 1, "rounds": 1,
        })  # fmt: skip
        if self.measured:
            self._check_runs()
        elif is_flock:
            self._check_flock()
        else:
            self._check_gas()

    def _check_gas(self) -> None:
        self.check("speed", above=0, high=1, unit="d per step")
        self.check("restitution", low=LEAST_RESTITUTION, below=1)
        self.check("path", low=0, unit="d")
        self.check("contact_steps", low=0, high=1e6, unit="steps")
        self.check_memory(f"--observations {self.observations}", self.observations, "observations")
        check_systems(self, 1, is_packed=True)
        if len(self.precision) > 1:
            raise UsageError(f"--precision {' '.join(self.precision)} beside --scene gas; allowed: one")

    def _check_runs(self) -> None:
        for one in fields(self):  # settings of gases, of which none are made
            given = getattr(self, one.name)
            if one.name not in _OF_RUNS and given not in (one.default, QUICK.get(one.name)):
                raise UsageError(
                    f"{flag_of(one.name)} {' '.join(map(str, values(given)))} beside --measured, which makes "
                    "no gas; allowed: one of the two"
                )

    def _check_flock(self) -> None:
        if self.cache and max(self.cache) >= self.predicted_n:
            raise ValueError(
                f"--cache {max(self.cache)} beside --predicted-n {self.predicted_n}: all fit in that cache; "
                "allowed: capacities below --predicted-n"
            )
        self.check_particles(2 * len(self.system) * len(self.search) + 2)


def plan(config: Config) -> str:
    """Say what settings measure, and how long the defaults of their scene take."""
    return " ".join(plan_lines(config, MINUTES[config.scene]))


def measure(case: Config, begin: int = 0) -> Iterator[Any]:
    """Yield the rows of gases, of curves of kept runs, or the rounds of a flock from `begin` on."""
    if case.scene == FLOCK:
        yield from _flock(case, begin)
    else:
        yield from _curves_of_runs(case) if case.measured else _gas(case)


def _gas(case: Config) -> Iterator[dict]:
    """Yield a row for each observation, model and capacity."""
    geometry = GEOMETRIES[case.geometry]
    if case.ordering not in sfc.orderings(geometry.ordered):
        return
    side = own_side(case.ordering, case.size, geometry.ordered)
    kind = "ideal" if case.interaction == "ideal" else "granular"  # with the positions of its equilibrium
    warmth = case.speed**2 / geometry.dim
    gas = geometry.gas(side, 1, case.filling_fraction, kind, warmth, case.seed, case.backend)
    fraction = geometry.own_fraction(case.filling_fraction)
    free = 1 / kinetic_theory.collision_rate(fraction, warmth, geometry.dim)
    law, contact, parts = _law(case, free)
    common: dict[str, Any] = {"nx": side, "ny": side, "nz": side if geometry.dim == 3 else 1}
    common |= {"particles": len(gas), "contact_steps": contact, "free_steps": free}
    common |= {"integrator_steps_per_step": parts}

    def simulation(state: md.State) -> md.Simulation:
        options: dict[str, Any] = {"backend": case.backend, "precision": case.precision[0], "fused": True}
        return md.Simulation(state, law, search="linked", dt=1 / parts, **options)

    sim = simulation(geometry.in_order(gas, case.ordering, case.seed))
    last = max(1, math.ceil(case.path / case.speed)) if case.path else case.steps
    later = np.unique(np.rint(np.geomspace(1, last, case.observations)).astype(int))
    generator = np.random.default_rng([case.seed, 3])
    for step in (0, *later.tolist()):
        sim.run(step * parts - sim.step, phases=False)
        state = sim.state
        at = {"step": step, "speed_d_per_step": math.sqrt(2 * md.observe.kinetic_energy(state))}
        shuffled = simulation(state.take(generator.permutation(len(state))))
        yield from ({**common, **at, **row} for row in _beside_shuffled(case, sim, shuffled))


def _law(case: Config, free: float) -> tuple[SpringDashpot, float, int]:
    """Return the law, the duration of a contact in steps, and the integrator steps per step."""
    if case.interaction == "ideal":
        return SpringDashpot(0.0, 0.0), 0.0, 1
    contact = case.contact_steps or min(HARD * free, DEEPEST * math.pi / case.speed)
    e = 1.0 if case.interaction == "elastic" else case.restitution
    law = SpringDashpot.from_restitution(e, contact_time=contact)
    return law, contact, max(1, math.ceil(max(LEAST_STEPS, resolving_steps(e)) / contact))


def _beside_shuffled(case: Config, sim: md.Simulation, shuffled: md.Simulation) -> Iterator[dict]:
    """Yield a row of predicted hits for each model and capacity, beside those of shuffled memory."""
    hits = (predicted(one.accesses(), case.model, case.cache) for one in (shuffled, sim))
    for other, row in zip(*hits, strict=True):
        yield {"hit_ratio_shuffled": other["hit_ratio"]} | row


def _curves_of_runs(case: Config) -> Iterator[dict]:
    """Yield a row for each age of each curve, with the run that it is from."""
    measured, guessed = (case.measured, "interval"), (case.predicted, "decay")
    for (runs, name), curves in ((measured, wear.measured_curves), (guessed, wear.predicted_curves)):
        for run in runs:
            found = curves(_kept(run, name)).rename(columns={"repeat": "sample"})
            yield from ({"source": run, **row} for row in found.to_dict("records"))


def _kept(run: str, experiment: str) -> pd.DataFrame:
    """Read the table of a kept run, under the present names.

    Args:
        run: its folder.
        experiment: name of the experiment of which it has to be a run.

    Raises:
        UsageError: no run, or one of another experiment, or one of the other scene or of curves.
    """
    table, found = read_table_now(Path(run)), read_provenance(Path(run)).get("experiment")
    if experiment_now(str(found)) != experiment or {"source", "system"} & {*table}:
        raise UsageError(f"{run} is a run of {found}; allowed: the folder of a run of {experiment}")
    return table


def _flock(case: Config, begin: int) -> Iterator[list[dict] | dict]:
    """Yield the rounds from `begin` on (rows `sorted` and `shuffled`), and then the predictions."""
    place, entries = md.backend.get(case.backend), []
    for system in case.system:
        state = _start(case, system, case.n)
        memories = {
            "sorted": places(state, case.ordering, _cutoff(case, system), case.seed),
            "shuffled": np.random.default_rng([case.seed, 7]).permutation(len(state)),
        }
        other = _simulation(case, system, state, "coherent", place)
        other.run(CHECKED_STEPS[system], phases=False)
        right = other.state
        del other
        for search in case.search:
            for what, rows in memories.items():
                aged = _simulation(case, system, state.take(rows), search, place)
                entries.append(_entry(case, aged, right, system, search, what))
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)
    for system in case.system:
        yield from _predictions(case, system, place)


def _start(case: Config, system: str, n: int) -> md.State:
    if system == GAS:
        return md.scenes.benchmark_gas(n, FILLING, seed=case.seed, backend=case.backend)
    return Aging(Flock(n, rules=case.rules, seed=case.seed), case.backend, case.precision).at(case.age)


def _cutoff(case: Config, system: str) -> float:
    return 1.0 if system == GAS else RULES[case.rules].cutoff


def _simulation(case: Config, system: str, state: md.State, search: str, place: Backend) -> md.Simulation:
    chosen = md.search.search(SEARCHES.get(search, search))
    if system == FLOCK:
        return Flock(len(state), rules=case.rules).simulation(state, chosen, place, case.precision)
    return benchmark_simulation(state, case, chosen, backend=place, fused=chosen.capabilities.fusable)


def _ages(case: Config) -> list[int]:
    """Return the numbers of steps before each sample, in growing distances of at least a sample."""
    ages, each = [0], case.sample
    for age in np.rint(np.geomspace(each, max(case.steps, each), case.observations)).astype(int).tolist():
        if age >= ages[-1] + each:
            ages.append(age)
    return ages


def _age_of_middle_step(case: Config, age: int) -> int:
    """Return the age of the order in the middle step of a sample, which follows a step that is not timed."""
    return 1 + age + (case.sample - 1) // 2


def _entry(
    case: Config, simulation: md.Simulation, right: md.State, system: str, search: str, what: str
) -> Entry:
    """Check a simulation, and return it ready to be sampled from its first state on.

    Args:
        case: settings.
        simulation: at its start.
        right: state after the checked steps by another search.
        system: "flock" or "gas".
        search: its name in the table.
        what: memory of the simulation, as in the table: "sorted" or "shuffled".
    """
    particles = simulation.system.particles
    start = [array.copy() for array in (particles.pos, particles.vel, particles.id)]
    simulation.run(CHECKED_STEPS[system], phases=False)
    if system == FLOCK:
        crowd = structure(right, _cutoff(case, system)).neighbours_mean
        check_flight(f"search {search!r}", simulation.state, right, case.precision, crowd)
    else:
        check_pairs(simulation, search, "coherent", case.precision)
    columns: dict[str, Any] = {"system": system, "search": search, "what": what}
    columns |= working_set(len(simulation), 3, case.precision, simulation.backend)

    def sample() -> Iterator[dict]:
        for array, first in zip((particles.pos, particles.vel, particles.id), start, strict=True):
            array[...] = first
        simulation.search.reset()
        simulation.run(1, phases=False)  # loads the caches again after other cases
        taken = 0  # timed steps and those between them
        for age in _ages(case):
            simulation.run(age - taken, phases=False)
            ms = whole_steps(simulation, case.sample)
            taken = age + case.sample
            yield {"age": _age_of_middle_step(case, age), "time_ms": ms / case.sample, "sample_ms": ms}

    return Entry(columns, sample)


def _predictions(case: Config, system: str, place: Backend) -> Iterator[dict]:
    """Yield rows `predicted`: hits of the first search at each age of the order, and in shuffled memory."""
    state, cutoff = _start(case, system, case.predicted_n), _cutoff(case, system)
    state = state.take(places(state, case.ordering, cutoff, case.seed))
    generator, search = np.random.default_rng([case.seed, 3]), case.search[0]
    simulation, start = _simulation(case, system, state, search, place), state.by_id()
    for age in [_age_of_middle_step(case, age) for age in _ages(case)]:
        simulation.run(age - simulation.step, phases=False)
        now = simulation.state
        moved = now.box.nearest(now.by_id().pos - start.pos)
        other = _simulation(case, system, now.take(generator.permutation(len(now))), search, place)
        common = {"system": system, "search": search, "what": "predicted", "particles": len(now), "age": age}
        common |= {"displacement_cutoffs": float(np.sqrt((moved**2).sum(axis=1).mean())) / cutoff}
        yield from (common | row for row in _beside_shuffled(case, simulation, other))


VIEWS: tuple[View, ...] = (*order_in_gas.VIEWS, *wear.VIEWS, *order_in_flock.VIEWS)


def answer(table: pd.DataFrame) -> Answer:
    """Say after how many steps half of an order's gain is lost; of runs, compare measured and predicted."""
    of_scene = {"source": wear.answer, "system": order_in_flock.answer, "geometry": order_in_gas.answer}
    return next(of for column, of in of_scene.items() if column in table)(table)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, plan=plan)
