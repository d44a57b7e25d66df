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
After the last round each case takes more steps, with a reorder every `reorder_every`, while their energy is
read (`experiments/measurement/energy.py`). `energy.csv` and a chart have the gains in energy and in time of
these steps. Lattice memory is older there than in the timed steps.

`--scene box` is the shaken box of [thesis], with defaults of its own and the baselines `shuffled` and `aged`;
`experiments/measurement/shaken_box.py` says what it is and how it is timed. There a gain is mean time over
mean time of a run, for each sample is another phase of the shake. Its figures are 6.1 to 6.3 of [thesis],
with the gains of its Table 6.1 beside those measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, main, values
from experiments.core.plan import BASIS
from experiments.core.settings import Scene, UsageError, cases
from experiments.core.terminal import FITS_CACHE, duration
from experiments.measurement import energy_gains, shaken_box
from experiments.measurement.correctness import TOLERANCE, check_forces, check_temperature
from experiments.measurement.energy import EnergySettings
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.shaken_box import TOTAL
from experiments.measurement.step_times import (
    KeptYoung,
    benchmark_simulation,
    entry_of,
    phases_of,
    whole_steps,
)
from experiments.prediction import main_job
from experiments.results.answers import Answer, Comparison, listed, percent
from experiments.results.baselines import (
    AGED,
    BASELINES,
    LATTICE,
    SHUFFLED,
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
    Marks,
    Points,
    Scale,
    Summary,
)
from experiments.results.published_gains import TABLE_6_1

PHASES, STEP = ("force", "build", "integrate"), "step"
SCENES, BOX = ("tiled", "granular", "shared"), "box"
WARM_UP = 2  # steps before the first round
HITS = Scale("predicted hit ratio (block model)", ends=(-0.03, 1.03))
TIMES = Scale("time per step (ms)", log=10)
OVER_FASTEST = Scale("time of a step over\nthat of the fastest order", line=1)
FORCES = Scale("gain of the force over\n{over}", log=10, line=1)
FORESEEN_GAINS = Scale("foreseen gain of the force\n(a hit takes 1 % of a miss)", log=10, line=1)
_GROUP = ["n", "filling_fraction", "search", "precision", "fused"]
_OF_BOX = ("length", "height", "contact_time", "shakes_before")
_BOX: dict[str, Any] = {
    "scene": BOX, "filling_fraction": (0.01, 0.05, 0.1, 0.2, 0.3, 0.4), "precision": ("float32",),
    "fused": (False, True), "ordering": (SHUFFLED, AGED, "pancake"), "rounds": 10, "steps": 500,
}  # fmt: skip
_SMALL_BOX = {"length": 48.0, "filling_fraction": (0.05, 0.2), "contact_time": (8e-4,), "shakes_before": 0,
              "rounds": 5, "runs": 1, "steps": 5}  # fmt: skip
PARTS = ("force", "other", TOTAL)
_TABLE_6_1 = TABLE_6_1.melt("filling_fraction", var_name="part", value_name="gain").assign(over=AGED)
_CLAIM = pd.DataFrame({"filling_fraction": [0.05, 0.4], "gain": [2.0, 3.0], "over": AGED})
MINUTES_OF_BOX = 2000  # CPU time of 7 of 12 cases of one run in a smaller box, extrapolated


@dataclass(frozen=True)
class Config(EnergySettings):
    """Sweep of gases, searches and memory orders."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("ordering", "reorder_every")
    SCENES: ClassVar[dict[str, Scene]] = {name: Scene(_OF_BOX) for name in SCENES} | {
        BOX: Scene(("n", "cache", "energy_seconds"), _BOX, _SMALL_BOX)
    }

    n: Axis[int] = (2**19,)
    """Number of particles. Fewer than about 2**18 fit the cache of a CPU and show little."""
    filling_fraction: Axis[float] = (0.05, 0.2)
    """Volume of the spheres over that of the box, up to 0.5."""
    contact_time: Axis[float] = (2e-4,)
    """Of the scene box: contact time of two spheres, and of a sphere and a wall, in seconds."""
    search: Axis[str] = ("linked",)
    """Neighbour searches; linked is that of [thesis]. In the box those that do not move the particles."""
    precision: Axis[str] = ("float64",)
    """Precision of positions, velocities and forces."""
    fused: Axis[bool] = (False,)
    """Whether the step is fused into the force kernel, which the search reflexive cannot be; its time is then
    part of the phase `force`."""
    ordering: tuple[str, ...] = ("shuffled", "lattice", "row", "morton", "hilbert")
    """Memory orders: the baselines `shuffled` and `lattice`, in the box `shuffled` and `aged`, and 3D
    orderings of `sfc`. All of them are in memory at once, in the box also each interval between reorders."""
    scene: str = "tiled"
    """Start of the gas: granular (a randomised gas), tiled (copies of a randomised gas of 65,536 particles or
    more, with velocities drawn for all; for a number of particles that has no such copies it is granular),
    shared (the jittered lattice used for the comparison with peers), or box (the shaken box of [thesis])."""
    length: float = 512.0
    """Side of the shaken box along its walls, in d."""
    height: float = 10.0
    """Distance of the walls of the shaken box, in d."""
    shakes_before: int = 4
    """Number of shakes of the box before the timing, until the gas is steady."""
    rounds: int = 3
    """Number of rounds of a run. In each, every compared case is sampled once, in random order. Ten rounds of
    500 steps are one shake of the box."""
    steps: int = 1
    """Number of steps in a sample, once with phases and once as a whole. Take about 100 on a GPU, so that
    launches overlap, and about 5 of the box on a CPU."""
    reorder_every: tuple[int, ...] = (500,)
    """Number of steps between reorders over which the cost of a reorder is divided; 500 in [thesis]. In the
    box, which reorders at this interval, also several."""
    cache: int = 320
    """Capacity in particles of the cache whose hits are predicted; 320 in [thesis]."""

    def __post_init__(self):
        if isinstance(self.reorder_every, int):  # as older runs recorded it
            object.__setattr__(self, "reorder_every", (self.reorder_every,))
        super().__post_init__()
        is_box = self.scene == BOX
        searches = tuple(name for name in md.search.SEARCHES if name != "naive")
        known = {
            "ordering": (*(shaken_box.BASELINES if is_box else BASELINES), *sfc.orderings(3)),
            "search": ("linked", "scattered") if is_box else searches,
            "precision": tuple(TOLERANCE),
            "scene": (*SCENES, BOX),
        }
        self.check_known(known)
        self.check_least({"n": 2, "steps": 1, "reorder_every": 1, "cache": 1})
        self.check("filling_fraction", above=0, high=0.5, remedy="more cannot be packed")
        if is_box:
            self.check_above_zero({"contact_time": 1e-3})
            self.check_least({"length": 3, "height": 3, "shakes_before": 0})
            self.check_box(len(self.ordering) * len(self.reorder_every) + 1)
            return
        self.check_particles(len(self.ordering) + 1)
        every = " ".join(map(str, self.reorder_every))
        if len(self.reorder_every) > 1:
            raise UsageError(f"--reorder-every {every} beside --scene {self.scene}; allowed: one number")
        if self.steps > self.reorder_every[0]:
            raise ValueError(
                f"--steps {self.steps} beside --reorder-every {every}; allowed: up to as many, because a "
                "sample holds no reorder"
            )


QUICK = {"n": (2**15,), "filling_fraction": (0.05, 0.2), "rounds": 7, "runs": 1, "energy_seconds": 0.0}


def plan(config: Config) -> str:
    """Say what settings measure, how long that takes, and what its size cannot show."""
    if config.scene == BOX:
        takes = duration(60 * MINUTES_OF_BOX)
        return f"{len(cases(config)):,} cases of the shaken box; its defaults are 36: {takes} on {BASIS}"
    sizes, fillings = [*values(config.n)], [*values(config.filling_fraction)]
    precision = next(iter(values(config.precision)))
    memory = working_set(min(sizes), 3, precision, md.backend.get(config.backend))
    runs = "one run" if config.runs == 1 else f"{config.runs} runs"
    return (
        f"{listed(f'{n:,}' for n in sizes)} particles, {listed(map(percent, fillings))} filled, "
        f"{len(config.ordering)} memory orders, {runs} of {config.rounds} rounds: "
        f"{main_job.time_in_words(config)}. {main_job.limit(config, memory)}"
    )


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean times of phases and of whole steps, and of reorders."""
    if case.scene == BOX:
        yield from shaken_box.measure(case, begin)
        return
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
    yield from take_rounds(
        entries, case.rounds, backend, seed=case.seed, begin=begin, energy_seconds=case.energy_seconds
    )


def _entry(
    case: Config, name: str, forces: np.ndarray, temperature: float, predictions: dict[str, dict]
) -> Entry:
    """Create a gas in a memory order, check it, and return it ready to be sampled.

    `predictions` holds the columns of the memory orders that were predicted before, in the block model; a
    second measurement of an order is of the same particles in the same memory.
    """
    ordering = original(name)
    sim = _simulation(case, case.search, ordering)
    sim.run(1)
    check_forces(sim, forces, case.precision)
    first = sim.timings.milliseconds.get("reorder", [])
    sim.run(WARM_UP)
    check_temperature(name, md.observe.temperature(sim.state), temperature, case.precision)
    stream = sim.accesses()  # of each: it builds, and the second one of an order is prepared as the first
    if ordering not in predictions:
        predictions[ordering] = {
            "predicted_hit_ratio": sfc.cache.block(stream, case.cache).ratio,
            "reads_per_particle": len(stream.reads) / len(sim),
        }
    del stream  # of as many bytes as the particles, or more
    columns = {"ordering": name, "particles": len(sim), **predictions[ordering]}
    columns |= {"first_reorder_ms": first[0]} if first else {}
    sample = partial(_sample, case, sim, ordering, bool(first))
    every = case.reorder_every[0] if first else 0
    return entry_of(sim, columns, sample, work=KeptYoung(sim, case.steps, every, ordering == LATTICE))


def _sample(case: Config, sim: md.Simulation, ordering: str, reorders: bool) -> Iterator[dict]:
    """Time a reorder, steps as a whole and steps phase by phase, after a step that is not timed."""
    costs = [_prepared(sim, reorders)]
    whole = whole_steps(sim, case.steps)
    age = _age(sim, ordering, case.steps + 1 if reorders else None)
    second_reorder = 2 * case.steps > case.reorder_every[0]
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
    yield common | {"phase": "step with reorder", "time_ms": bare + np.mean(costs) / case.reorder_every[0]}


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
        reorder = md.Reorder(ordering, lambda step: step == 0)  # later reorders are explicit
    gas = _gas(case.scene, case.n, case.filling_fraction, case.seed, case.backend)
    start = md.scenes.in_memory_order(gas, LATTICE if ordering == LATTICE else SHUFFLED, case.seed)
    return benchmark_simulation(start, case, search, reorder=reorder, fused=case.fused)


@lru_cache(maxsize=1)
def _gas(scene: str, n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    if scene == "shared":
        return md.scenes.benchmark_gas(n, filling_fraction, seed=seed, backend=backend)
    box = md.scenes.box_for(n, filling_fraction)
    if scene == "tiled":
        copies = md.preparation.copies_for(n)
        return md.preparation.tiled_gas(filling_fraction, box, copies, seed=seed, backend=backend)
    return md.preparation.granular_gas(filling_fraction, box, seed=seed, backend=backend)


def _reference(case: Config) -> tuple[np.ndarray, float]:
    """Compute forces by id after one step, and the temperature after the warm-up, by another search."""
    other = "linked" if _sorts(case) else "coherent"
    sim = _simulation(replace(case, fused=False), other, "lattice")
    sim.run(1)
    forces = sim.forces()
    sim.run(WARM_UP)
    return forces, md.observe.temperature(sim.state)


def _of_answer(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of an answer: of several intervals the shortest, of the fillings those of [thesis]."""
    rows = shaken_box.averaged(table)
    rows = rows[rows["reorder_every"] == rows["reorder_every"].min()]
    in_thesis = rows["filling_fraction"].isin(TABLE_6_1["filling_fraction"])
    return rows[in_thesis] if in_thesis.any() else rows


def _of_whole_steps(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `energy_gains.by_resource` of one phase: all phases of a case have its energy."""
    return energy_gains.by_resource(table[table["phase"] == "step with reorder"])


_CASE, _WHOLE = "{n} particles, {search}, {precision}, {fused}", "phase == 'step with reorder'"
_ORDERED = f"{_WHOLE} and ordering not in {BASELINES}"
FORESEEN = "1 / (predicted_hit_ratio / 100 + 1 - predicted_hit_ratio)"  # a hit takes a hundredth of a miss
_GAS = partial(
    Chart, names=ORDERS, panels="filling_fraction", heading=FILLED, note=f"whole step, {_CASE}", needs="phase"
)
GAS_VIEWS = (
    _GAS(
        "gain_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, a step along {best} is {value} times as fast as in {over} memory",
        DOTS, (Points("time_ms", _WHOLE, over=BASELINES, compared="ordering"),
               Points("time_ms", _ORDERED, "over best", compared="ordering", along="ordering",
                      values=OVER_FASTEST)),
        values=GAINS, varying=("filling_fraction",), otherwise=Points("time_ms", _WHOLE, values=TIMES),
    ),
    _GAS(
        "foreseen_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, the force along {best} is {value} times as fast as in {over} memory",
        DOTS, (Points("time_ms", "phase == 'force'", over=(SHUFFLED,), compared="ordering", values=FORCES),
               Points(FORESEEN, statistic=FIRST, values=FORESEEN_GAINS),
               Points("predicted_hit_ratio", statistic=FIRST, values=HITS)),
        values=GAINS, varying=("filling_fraction",), note=f"force, {_CASE}",
    ),
    _GAS(
        "phases_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, a step takes {value} ms ({best}), {of_worst} ms ({worst})",
        BARS, Points("time_ms", f"phase in {(*PHASES, STEP)}"), values=Scale("time per step (ms)"),
        series="phase", title_of_series="phase", order=PHASES, whole=STEP, note=f"phases of a step, {_CASE}",
    ),
    _GAS(
        "sizes_{precision}{fused}",
        "At {n} particles, {filling_fraction} filled, a step takes {value} ns a particle ({best}), "
        "{of_worst} ns ({worst})",
        LINES, Points("time_ms", _WHOLE, scale="1e6 / n"), names=PARTICLES,
        values=Scale("time per particle and step (ns)", log=10), series="ordering",
        title_of_series="memory order", heading="{search}, {filling_fraction} filled", lines="search",
        varying=("n",), note="{precision}, {fused}",
    ),
    _GAS(
        "energy_n{n}_{search}_{precision}{fused}",
        "At {filling_fraction} filled, the energy of a step along {best} is lower than in {over} memory by a "
        "factor of {value}",
        DOTS, Points("used", _WHOLE, over=BASELINES, compared="ordering"),
        values=Scale("gain of a step over\n{over}", log=10, line=1), series="resource",
        order=tuple(energy_gains.RESOURCES), words=energy_gains.WITHOUT_UNITS,
        prepare=energy_gains.by_resource, needs="energy_J",
        otherwise=Points("energy_J", f"{_WHOLE} and resource == '{energy_gains.ENERGY}'",
                         values=Scale("energy of a step (J)")),
    ),
    Summary((*_GROUP, "phase"), "ordering", BASELINES, ages=True, needs="phase"),
    energy_gains.summary_of_energy(_GROUP, "ordering", BASELINES, prepare=_of_whole_steps),
)  # fmt: skip
_PLACE = "shaken box of {length_d} x {length_d} x {height_d} d, {search}, {precision}, {fused}"
_IN_PARTS, _WHOLE_BOX = f"part in {PARTS}", f"part == '{TOTAL}'"
_IN_THESIS = "length_d == 512 and height_d == 10"
_ORDERS_OF_BOX = f"{_WHOLE_BOX} and ordering not in {shaken_box.BASELINES}"
_FILES = ("contact_time", "search", "precision", "steps")
_FILLINGS = Scale("filling fraction", "filling_fraction")
_PER_STEP = Scale("time per step (ms)")
_GAINS: dict[str, Any] = {"over": shaken_box.baselines, "compared": "ordering"}
_SHAKEN = partial(
    Chart, names=ORDERS, panels="filling_fraction", heading=FILLED, note=_PLACE, words=shaken_box.names,
    prepare=shaken_box.by_part, needs="part", files=(*_FILES, "reorder_every"),
)  # fmt: skip
_OVER_FILLING: dict[str, Any] = {
    "names": _FILLINGS, "series": "ordering", "panels": "part", "heading": "{part}", "most": 3,
}  # fmt: skip
BOX_VIEWS = (
    _SHAKEN(
        "gain", "At {filling_fraction} filled, the {part} of a step along {best} is {value} times as fast as "
        "in {over} memory",
        LINES, Points("time_ms", _IN_PARTS, **_GAINS), values=Scale("gain over\n{over}", log=10, line=1),
        varying=("filling_fraction",), numbers=True, without=shaken_box.BASELINES, **_OVER_FILLING,
        marks=(Marks("Table 6.1 of [thesis]", _TABLE_6_1, "gain", f"not fused and {_IN_THESIS}"),
               Marks("[thesis]: 2 at 5 %, above 3 if denser", _CLAIM, "gain", f"fused and {_IN_THESIS}")),
    ),
    _SHAKEN(
        "time", "At {filling_fraction} filled, the {part} of a step takes {value} ms ({best}), {of_worst} ms "
        "({worst})",
        LINES, Points("time_ms", f"{_IN_PARTS} and over_filling"), values=TIMES, title_of_series="memory",
        **_OVER_FILLING,
    ),
    _SHAKEN(
        "contact_time",
        "With contacts of {best} s, a step along {ordering} is {value} times as fast as in {over} memory",
        DOTS, Points("time_ms", _WHOLE_BOX, **_GAINS), names=Scale("", "contact_time"), values=GAINS,
        series="ordering", varying=("contact_time",), without=shaken_box.BASELINES,
        files=(*_FILES[1:], "reorder_every"),
    ),
    _SHAKEN(
        "phases", "At {filling_fraction} filled, a step takes {value} ms ({best}), {of_worst} ms ({worst})",
        BARS, Points("time_ms"), values=_PER_STEP, series="part", title_of_series="phase", panels="",
        order=("force", "build", "integrate", "reorder", "other"), whole=TOTAL, note=f"{_PLACE}: phases",
        prepare=shaken_box.in_phases, files=("contact_time", "search", "precision", "reorder_every"),
    ),
    _SHAKEN(
        "interval", "At {filling_fraction} filled, a step with a reorder every {reorder_every} steps takes "
        "{value} times as long as with the best interval",
        LINES, (Points("time_ms", _ORDERS_OF_BOX, "sums over best", compared="reorder_every",
                       along="reorder_every", values=Scale("time over the best", line=1)),
                Points("time_ms", _ORDERS_OF_BOX)),
        names=Scale("steps between reorders", "reorder_every", log=10),
        values=Scale("time per step (ms)", ends=(0, None)), series="ordering", varying=("reorder_every",),
        bounds=tuple(Points("time_ms", f"{_WHOLE_BOX} and ordering == '{name}'",
                            label=f"{name}, never reordered") for name in shaken_box.BASELINES),
        files=_FILES, words={},
    ),
    Summary(
        (*shaken_box.KEYS, "reorder_every", "part"), "ordering", shaken_box.baselines, ages=True,
        prepare=shaken_box.averaged, needs="part",
    ),
)  # fmt: skip
VIEWS = (*GAS_VIEWS, *BOX_VIEWS)
_of_gas = Comparison(
    "ordering", BASELINES, "filling_fraction", "At {filling_fraction} filled ({n} particles, {search})",
    _WHOLE, ("n", "search", "precision", "fused"), percent, "hilbert", " memory",
    more=partial(energy_gains.in_words, label="ordering", baselines=BASELINES, kind=" memory"),
)  # fmt: skip
_of_box = Comparison(
    "ordering", shaken_box.BASELINES, "filling_fraction",
    "At {filling_fraction} filled ({particles} spheres, {fused})",
    _WHOLE_BOX, ("contact_time", "search", "precision", "fused"), percent, "pancake", " memory",
    _of_answer,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare orders with the baselines; in the shaken box also with Table 6.1 of [thesis]."""
    if "part" not in table:
        return _of_gas(table)
    found = _of_box(table)
    gains = {percent(row["filling_fraction"]): row[TOTAL] for row in TABLE_6_1.to_dict("records")}
    if not set(gains) & set(found.table):
        return found
    thesis = pd.DataFrame(gains, ["[thesis], over no reorders"], found.table.columns)
    return replace(found, table=pd.concat([found.table.iloc[:2], thesis]))


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, plan=plan)
