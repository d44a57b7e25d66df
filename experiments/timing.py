"""What is a memory order worth in time, phase by phase, and was it predicted?

The gas is made of copies of a small randomised one (`--scene tiled`), with velocities drawn for all
particles; each run has a small gas of its own. It starts in shuffled memory, or in the order of the lattice
from which it was made. Two entries of the `ordering` axis, `shuffled` and `lattice`, reorder nothing: they
are the baselines. All orderings of a case are sampled once a round, in random order. The first of them is
sampled twice (`shuffled again`): the difference of the two is noise. A sample starts with a reorder, timed as
the phase `reorder`, and a step that is not timed. Then `steps` steps are timed as a whole, and `steps` steps
phase by phase. An order is therefore at most `age_steps` old; the age of lattice memory is the number of
steps since the gas was made.

A row `step` is a whole step without reorders. `step with reorder` adds a reorder's share: its cost over
`reorder_every`. `first_reorder_ms` is the cost of the first reorder, of particles in no order. On a device
the phases hold only the device's work: the host launches 25 steps before the device starts the first. A
search that sorts the particles itself (all but `linked` and `scattered`) applies an ordering to its
cells, and has no baselines; an ordering that it does not support gives no row. Before a case is timed, its
forces after one step and its temperature before the first round are compared with those of another search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

import md
import sfc
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement import main_job
from experiments.measurement.correctness import TOLERANCE, check_forces, check_temperature
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, whole_steps
from experiments.results.answers import Comparison, listed, percent
from experiments.results.baselines import (
    BASELINES,
    LATTICE,
    again,
    original,
)
from experiments.results.charts import (
    BARS,
    DOTS,
    FILLED,
    FIRST,
    GAINS,
    LINES,
    ORDERS,
    PARTICLES,
    Chart,
    Points,
    Scale,
    Summary,
)

PHASES, STEP = ("force", "build", "integrate"), "step"
SCENES = ("tiled", "granular", "shared")
WARM_UP = 2  # steps before the first round
HITS = Scale("predicted hit ratio (block model)", ends=(-0.03, 1.03))
TIMES = Scale("time per step (ms)", log=10)
_GROUP = ["n", "filling_fraction", "search", "precision", "fused"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of gases, searches and memory orders."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("ordering",)

    n: Axis[int] = (2**19,)
    """Number of particles. Fewer than about 2**18 fit the cache of a CPU and show little."""
    filling_fraction: Axis[float] = (0.05, 0.2)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: Axis[str] = ("linked",)
    """Neighbour searches; linked is that of [thesis]."""
    precision: Axis[str] = ("float64",)
    """Precision of positions, velocities and forces."""
    fused: Axis[bool] = (False,)
    """Whether the step is fused into the force kernel, which the search reflexive cannot be; its time is then
    part of the phase `force`."""
    ordering: tuple[str, ...] = ("shuffled", "lattice", "row", "morton", "hilbert")
    """Memory orders: the baselines `shuffled` and `lattice`, and 3D orderings of `sfc`."""
    scene: str = "tiled"
    """Start of the gas: granular (a randomised gas), tiled (copies of a randomised gas of 65,536 particles or
    more, with velocities drawn for all; for a number of particles that has no such copies it is granular), or
    shared (the jittered lattice used for the comparison with peers)."""
    rounds: int = 3
    """Number of rounds of a run. In each, every compared case is sampled once, in random order."""
    steps: int = 1
    """Number of steps in a sample, once with phases and once as a whole. Take about 100 on a GPU, so that
    launches overlap."""
    reorder_every: int = 500
    """Number of steps between reorders over which the cost of a reorder is divided; 500 in [thesis]."""
    cache: int = 320
    """Capacity in particles of the cache whose hits are predicted; 320 in [thesis]."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "ordering": (*BASELINES, *sfc.orderings(3)),
            "search": tuple(name for name in md.search.SEARCHES if name != "naive"),
            "precision": tuple(TOLERANCE),
            "scene": SCENES,
        }
        self.check_known(known)
        self.check_least({"n": 2, "steps": 1, "reorder_every": 1, "cache": 1})
        self.check("filling_fraction", above=0, high=0.5, remedy="more cannot be packed")
        self.check_particles(len(self.ordering) + 1)
        if self.steps > self.reorder_every:
            raise ValueError(
                f"--steps {self.steps} beside --reorder-every {self.reorder_every}; allowed: up to as many, "
                "because a sample holds no reorder"
            )


QUICK = {"n": (2**15,), "filling_fraction": (0.05, 0.2), "rounds": 7, "runs": 1}


def plan(config: Config) -> str:
    """Say what settings measure, how long that takes, and what its size cannot show."""
    sizes, fillings = tuple(values(config.n)), tuple(values(config.filling_fraction))
    others = [tuple(values(getattr(config, name))) for name in ("search", "precision", "fused")]
    job = main_job.Job(
        sizes, fillings, len(config.ordering) + 1, math.prod(map(len, others)), config.runs, config.rounds,
        config.steps, config.scene, others == [("linked",), ("float64",), (False,)],
    )  # fmt: skip
    backend = md.backend.get(config.backend)
    runs = "one run" if config.runs == 1 else f"{config.runs} runs"
    what = (
        f"{listed(f'{n:,}' for n in sizes)} particles, {listed(map(percent, fillings))} filled, "
        f"{len(config.ordering)} memory orders, {runs} of {config.rounds} rounds: "
    )
    limit = main_job.limit(job, others[1][0], backend)
    return f"{what}{main_job.time_in_words(job, backend)}. {limit}"


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean times of phases and of whole steps, and of reorders."""
    kind: Any = md.search.SEARCHES[case.search]
    if case.fused and not kind.capabilities.fusable:
        return
    orderings = [name for name in case.ordering if not _sorts(case) or name in kind.cell_orders(3)]
    if not orderings:
        return
    reference = _reference(case)
    predictions: dict[str, dict[str, float]] = {}
    names = (*orderings, again(orderings[0]))
    entries = [_entry(case, name, *reference, predictions) for name in names]
    backend = md.backend.get(case.backend)
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin)


def _entry(
    case: Config, ordering: str, forces: np.ndarray, temperature: float, predictions: dict[str, dict]
) -> Entry:
    """Create a gas in a memory order, check it, and return it ready to be sampled.

    `predictions` holds the columns of the memory orders that were predicted before; a second measurement of
    an order is of the same particles in the same memory.
    """
    sim = _simulation(case, case.search, original(ordering))
    sim.run(1)
    check_forces(sim, forces, case.precision)
    first = sim.timings.milliseconds.get("reorder", [])
    sim.run(WARM_UP)
    start = md.observe.temperature(sim.state)
    check_temperature(ordering, start, temperature, case.precision)
    stream = sim.accesses()  # of each: it builds, and the second one of an order is prepared as the first
    if original(ordering) not in predictions:
        predictions[original(ordering)] = _predicted(stream, len(sim), case.cache)
    del stream  # of as many bytes as the particles, or more
    common = {
        "ordering": ordering,
        "particles": len(sim),
        **predictions[original(ordering)],
        "temperature_start": start,
        **working_set(len(sim), 3, case.precision, sim.backend),
    }
    if first:
        common["first_reorder_ms"] = first[0]
    return Entry(
        common,
        partial(_sample, case, sim, original(ordering), bool(first)),
        lambda: {"temperature_end": md.observe.temperature(sim.state)},
    )


def _predicted(stream: sfc.cache.AccessStream, particles: int, capacity: int) -> dict[str, float]:
    """Predict the hit ratio of the force kernel in the block model."""
    return {
        "predicted_hit_ratio": sfc.cache.block(stream, capacity).ratio,
        "reads_per_particle": len(stream.reads) / particles,
    }


def _sample(case: Config, sim: md.Simulation, ordering: str, reorders: bool) -> Iterator[dict]:
    """Time a reorder, steps as a whole and steps phase by phase, after a step that is not timed."""
    costs = [_prepared(sim, reorders)]
    whole = whole_steps(sim, case.steps)
    age = _age(sim, ordering, case.steps + 1 if reorders else None)
    second_reorder = 2 * case.steps > case.reorder_every
    if second_reorder:  # else the order would be older than that in the phases
        costs.append(_prepared(sim, reorders))
    phases = phases_of(sim, case.steps)
    later = _age(sim, ordering, (case.steps if second_reorder else 2 * case.steps) + 1 if reorders else None)
    for phase in PHASES:
        if phase in phases:
            ms = sum(phases[phase])
            yield later | {"phase": phase, "time_ms": ms / case.steps, "sample_ms": ms}
    for cost in filter(None, costs):
        yield {"phase": "reorder", "time_ms": cost, "sample_ms": cost}
    bare = whole / case.steps
    common = age | {"phases_over_step": sum(map(sum, phases.values())) / whole, "sample_ms": whole}
    yield common | {"phase": "step", "time_ms": bare}
    yield common | {"phase": "step with reorder", "time_ms": bare + np.mean(costs) / case.reorder_every}


def _age(sim: md.Simulation, ordering: str, since: int | None) -> dict[str, int | None]:
    """Return the age of memory: steps since the reorder, all steps for the lattice, None for others."""
    return {"age_steps": sim.step if ordering == LATTICE else since}


def _prepared(sim: md.Simulation, reorders: bool) -> float:
    """Reorder if wanted, run a step that is not timed, and return the time of the reorder in ms, or 0."""
    cost = 0.0
    if reorders:
        sim.timings.clear()
        sim.reorder()
        (cost,) = sim.timings.milliseconds["reorder"]
    sim.run(1, phases=False)
    return cost


def _sorts(case: Config) -> bool:
    """Return whether the search sorts the particles itself, so that there is nothing to reorder."""
    kind: Any = md.search.SEARCHES[case.search]
    return kind.capabilities.moves_particles


def _simulation(case: Config, name: str, ordering: str) -> md.Simulation:
    kind: Any = md.search.SEARCHES[name]
    reorder: md.Reorder | None = None
    search: str | md.search.SearchConfig = name
    if kind.capabilities.moves_particles:
        search = kind(ordering) if ordering in kind.cell_orders(3) else kind()
    elif ordering not in BASELINES:
        reorder = md.Reorder(ordering, _AtFirst())
    memory_order = "lattice" if ordering == "lattice" else "shuffled"
    gas = _gas(case.scene, case.n, case.filling_fraction, case.seed, case.backend)
    return md.Simulation(
        md.scenes.in_memory_order(gas, memory_order, case.seed),
        md.scenes.SHARED_LAW,
        search=search,
        dt=md.scenes.SHARED_DT,
        reorder=reorder,
        backend=case.backend,
        precision=case.precision,
        fused=case.fused,
    )


class _AtFirst:
    """Trigger that reorders before the first step only; later reorders are explicit."""

    def __call__(self, step: int) -> bool:
        return step == 0


@lru_cache(maxsize=1)
def _gas(scene: str, n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    if scene == "shared":
        return md.scenes.shared_gas(n, filling_fraction, seed=seed, backend=backend)
    box = md.scenes.box_for(n, filling_fraction)
    if scene == "tiled":
        copies = md.scenes.copies_for(n)
        return md.scenes.tiled_gas(filling_fraction, box, copies, seed=seed, backend=backend)
    return md.scenes.granular_gas(filling_fraction, box, seed=seed, backend=backend)


def _reference(case: Config) -> tuple[np.ndarray, float]:
    """Compute forces by id after one step, and the temperature after the warm-up, by another search."""
    other = "linked" if _sorts(case) else "coherent"
    sim = _simulation(replace(case, fused=False), other, "lattice")
    sim.run(1)
    forces = sim.forces()
    sim.run(WARM_UP)
    return forces, md.observe.temperature(sim.state)


_CASE, _WHOLE = "{n} particles, {search}, {precision}, {fused}", "phase == 'step with reorder'"
VIEWS = (
    Chart(
        "gain_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, a step along {best} is {value} times as fast as in {over} memory",
        DOTS, (Points("time_ms", _WHOLE, over=BASELINES, compared="ordering"),
               Points("predicted_hit_ratio", statistic=FIRST, values=HITS)),
        ORDERS, GAINS, panels="filling_fraction", heading=FILLED, varying=("filling_fraction",),
        otherwise=Points("time_ms", _WHOLE, values=TIMES), note=f"whole step, {_CASE}",
    ),
    Chart(
        "phases_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, a step takes {value} ms ({best}), {of_worst} ms ({worst})",
        BARS, Points("time_ms", f"phase in {(*PHASES, STEP)}"), ORDERS, Scale("time per step (ms)"),
        "phase", "phase", panels="filling_fraction", heading=FILLED, order=PHASES, whole=STEP,
        note=f"phases of a step, {_CASE}",
    ),
    Chart(
        "sizes_{precision}{fused}",
        "At {n} particles, {filling_fraction} filled, a step takes {value} ns a particle ({best}), "
        "{of_worst} ns ({worst})",
        LINES, Points("time_ms", _WHOLE, scale="1e6 / n"), PARTICLES,
        Scale("time per particle and step (ns)", log=10), "ordering", "memory order",
        panels="filling_fraction", heading="{search}, {filling_fraction} filled", lines="search",
        varying=("n",), note="{precision}, {fused}",
    ),
    Summary((*_GROUP, "phase"), "ordering", BASELINES, ages=True),
)  # fmt: skip
answer = Comparison(
    "ordering", BASELINES, "filling_fraction", "At {filling_fraction} filled ({n} particles, {search})",
    _WHOLE, ("n", "search", "precision", "fused"), percent, "hilbert", " memory",
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, plan=plan)
