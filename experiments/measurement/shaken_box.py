"""The shaken box of [thesis], chapter 6: times of the parts of a step, with memory in orders and without.

Spheres between two walls 10 d apart that are shaken in phase, periodic sideways, are reordered every 500
steps, and compared with the same box without reorders. What [thesis] does not state is chosen as follows:
time in seconds, d = m = 1, no gravity, amplitude 1.8 d at 50 Hz, contacts of 2e-4 s in 50 steps. The box is
shaken before it is timed. `temperature`, m <v^2> / 3 in d^2 / s^2 after each sample, shows whether it was
steady: in a steady box it is the same shake after shake. `temperature_start` and `temperature_end` are those
at the ends of the timing.

Two orders reorder nothing: `shuffled` memory, and `aged` memory, which was in the order of the lattice sites
of the initial state `age_steps` steps ago. A sample starts with a reorder, if the order has one, and a step
that is not timed. Then steps are timed, with a reorder after every `reorder_every`. The largest age of an
order is `age_steps`: one step more than `reorder_every`, because of the step that is not timed. If a sample
has fewer steps, as on a CPU, the order is fresh and not reordered at that interval. `reorder_ms` is the mean
cost of a reorder in a sample. Several values of `reorder_every` are sampled in the same rounds, each in a box
of its own. The time changes in the course of half a shake, so that the samples should take whole halves, and
every interval should divide them: with the default contacts `--steps 5000` and intervals from 50 to 5000. A
sample is launched interval by interval; on a GPU the launches count below some 50 steps.

A row is the time of a step: of its part `force`, of `other` (the rest, with a reorder's share: its cost over
`reorder_every`), or `total`. The parts of `other` have rows too: `build`, which sorts the particles into
cells, `integrate`, and `reorder`. A fused step has only `total`. `phases_over_step` compares phases with
whole steps. Before a case is timed, its forces after one step are compared with those of another search.

`averaged` gives the rows that figures and answers show: a gain is mean time over mean time of a run, for each
sample is another phase of the shake.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import md
from experiments.measurement.correctness import check_forces
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import entry_of, phases_of, whole_steps
from experiments.results.baselines import AGED, SHUFFLED, again, memory_of, original
from experiments.results.gains import windows_averaged, with_rounds
from md.boundaries import ShakenWalls
from md.laws import SpringDashpot

BASELINES = (SHUFFLED, AGED)
KEYS = ["filling_fraction", "contact_time", "search", "precision", "fused"]  # of a box
TOTAL = "total"  # the part that is all of a step
FIGURE_6_1 = 0.2  # filling fraction
WALLS = ShakenWalls(amplitude=1.8, frequency=50.0, restitution=0.9)
STEPS_A_CONTACT = 50
WARM_UP = 2  # steps after the first, before the first round


def measure(case: Any, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each part of the time of a step.

    Args:
        case: settings of `experiments.timing` with one value on each axis.
        begin: first round.
    """
    before = case.shakes_before * steps_a_shake(case.contact_time)
    size = (case.length, case.length, case.height)
    state = _steady(size, case.filling_fraction, case.contact_time, before, case.seed, case.backend)
    other = _simulation(case, state, SHUFFLED, "coherent")
    other.run(1)
    right = other.forces()
    del other
    entries = [
        _entry(case, state, name, every, right)
        for name in (*case.ordering, again(case.ordering[0]))
        for every in (case.reorder_every[:1] if original(name) in BASELINES else case.reorder_every)
    ]
    yield from take_rounds(entries, case.rounds, md.backend.get(case.backend), seed=case.seed, begin=begin)


def _entry(case: Any, state: md.State, name: str, every: int, right: np.ndarray) -> Entry:
    """Create the box in a memory order, check it, and return it ready to be sampled.

    Args:
        case: the box.
        state: its gas.
        name: of the order.
        every: steps between reorders.
        right: forces after one step.
    """
    ordering = original(name)
    sim = _simulation(case, state, ordering)
    if ordering not in BASELINES:
        sim.reorder()
    sim.run(1)
    check_forces(sim, right, case.precision)
    sim.run(WARM_UP)
    columns = {"ordering": name, "particles": len(sim), "length_d": case.length, "height_d": case.height}
    sample = partial(_sample, case, sim, ordering, every)
    return entry_of(sim, columns | {"reorder_every": every}, sample)


def _sample(case: Any, sim: md.Simulation, ordering: str, every: int) -> Iterator[dict]:
    """Time steps as a whole and, unless they are fused, phase by phase; yield a row for each part."""
    phases, costs = ([], []) if case.fused else _timed(case.steps, sim, ordering, every, phases_of)
    whole, more = _timed(case.steps, sim, ordering, every, whole_steps)
    cost, lasted = float(np.mean(costs + more or [0.0])), sum(whole)
    common = {"reorder_ms": cost, "age_steps": _age(case, sim, ordering, every)}
    common |= {"temperature": md.observe.look(sim).temperature}
    sums = {"total": lasted}
    if not case.fused:
        sums = {name: sum(sum(one[name]) for one in phases) for name in ("force", "build", "integrate")}
        sums |= {"other": sums["build"] + sums["integrate"], "total": sum(sums.values())}
        sums |= {} if ordering in BASELINES else {"reorder": 0.0}
        common["phases_over_step"] = sums["total"] / lasted
    for part, ms in sums.items():
        share = cost / every if part in ("other", "total", "reorder") else 0.0
        yield common | {"part": part, "time_ms": ms / case.steps + share, "sample_ms": ms}


def _timed(
    steps: int, sim: md.Simulation, ordering: str, every: int, take: Callable
) -> tuple[list, list[float]]:
    """Time the steps between reorders by `take`, and each reorder in ms."""
    times, costs = [], []
    for taken in range(0, steps, every):
        if ordering not in BASELINES:
            sim.timings.clear()
            sim.reorder()
            costs += sim.timings.milliseconds["reorder"]
        if not taken:
            sim.run(1, phases=False)  # not timed: loads the caches again after other cases
        times.append(take(sim, min(every, steps - taken)))
    return times, costs


def _age(case: Any, sim: md.Simulation, ordering: str, every: int) -> int | None:
    """Return the largest age of the order in a sample, in steps; None without an order."""
    if ordering == AGED:
        return sim.step + case.shakes_before * steps_a_shake(case.contact_time)
    return None if ordering == SHUFFLED else min(case.steps, every) + 1


def _simulation(case: Any, state: md.State, ordering: str, search: str | None = None) -> md.Simulation:
    memory = state.by_id() if ordering == AGED else state
    reorder = None if ordering in BASELINES else md.Reorder(ordering, md.Never())
    options = {"search": search or case.search, "fused": case.fused and search is None, "reorder": reorder}
    return box_simulation(
        memory, case.contact_time, backend=case.backend, precision=case.precision, **options
    )


def box_simulation(state: md.State, contact_time: float, **options: Any) -> md.Simulation:
    """Make a simulation of a shaken box, from the start of a shake on.

    Args:
        state: its particles.
        contact_time: of two spheres, in s.
        options: others of `md.Simulation`.
    """
    law, dt = SpringDashpot.from_restitution(0.8, contact_time), contact_time / STEPS_A_CONTACT
    return md.Simulation(state, law, dt=dt, walls=WALLS, **options)


def steps_a_shake(contact_time: float) -> int:
    """Return the number of steps of a shake with contacts of so many s."""
    return round(STEPS_A_CONTACT / (WALLS.frequency * contact_time))


@lru_cache(maxsize=1)
def _steady(
    size: tuple[float, float, float], phi: float, contact_time: float, steps: int, seed: int, backend: str
) -> md.State:
    """Create the gas after some whole shakes, in shuffled memory; the walls then start in the same phase."""
    heat = (0.2 * WALLS.speed) ** 2
    state = md.preparation.shaken_box(phi, size, temperature=heat, seed=seed, backend=backend)
    sim = box_simulation(state, contact_time, search="verlet", backend=backend, fused=True)
    sim.run(steps, phases=False)
    return md.scenes.in_memory_order(sim.state.by_id(), "shuffled", seed)


def averaged(table: pd.DataFrame) -> pd.DataFrame:
    """Average the samples of shaken boxes, and add what their charts need.

    Rows of the baselines are repeated for each interval of the other orders, which they do not depend on.

    Args:
        table: of the scene box.

    Returns:
        A row for each run, case and part, of its mean time; `steps`, "fused" or "phases"; `over_filling`,
        whether its time is drawn over the filling.
    """
    table = with_rounds(table, [*KEYS, "ordering", "part"])
    table = table if "reorder_every" in table else table.assign(reorder_every=0)  # of an older run
    fixed = table["ordering"].map(original).isin(BASELINES)
    if (intervals := np.unique(table.loc[~fixed, "reorder_every"])).size:
        copies = [table[fixed].assign(reorder_every=every) for every in intervals]
        table = pd.concat([*copies, table[~fixed]], ignore_index=True) if len(copies) > 1 else table
    keys = [*KEYS, "reorder_every"]
    rows = windows_averaged(table, [*keys, "part", "ordering"])
    rows["steps"] = np.where(rows["fused"], "fused", "phases")
    groups = rows.groupby(keys[1:], sort=False)
    rows["over_filling"] = (groups["filling_fraction"].transform("nunique") > 1) | (groups.ngroups == 1)
    return rows


def by_part(table: pd.DataFrame) -> pd.DataFrame:
    """Return `averaged` in the order in which panels show the parts."""
    return averaged(table).sort_values("part", kind="stable")


def in_phases(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of figure 6.1: steps that are not fused, at the filling nearest that of [thesis]."""
    rows = averaged(table).query("steps == 'phases'")
    groups = [rows[name] for name in (*KEYS[1:], "reorder_every")]
    away = (rows["filling_fraction"] - FIGURE_6_1).abs()
    has_parts = (rows["part"] == "build").groupby(groups).transform("any")  # of `other`
    return rows[(away == away.groupby(groups).transform("min")) & ~(has_parts & (rows["part"] == "other"))]


def names(rows: pd.DataFrame) -> dict[Any, str]:
    """Return names of figures of the shaken box: ordering -> its name, with its age if the table has ages."""
    found: dict[Any, str] = {TOTAL: "whole step"}
    for ordering in rows["ordering"].map(original).unique():
        memory, own = "", rows[rows["ordering"] == ordering]
        if "age_steps" in rows:
            memory = memory_of(ordering, own["age_steps"].max(), own["reorder_every"].max())
        is_order = memory and ordering not in BASELINES
        found[ordering] = f"{ordering}, {memory}" if is_order else memory or ordering
    return found | {time: f"{1e3 * time:g} ms" for time in rows["contact_time"]}


def baselines(rows: pd.DataFrame) -> list[str]:
    """Return the baselines, if another order was measured too."""
    has_orders = not rows["ordering"].map(original).isin(BASELINES).all()
    return [*BASELINES] if has_orders else []
