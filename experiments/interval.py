"""How many steps should lie between two reorders, can a model predict it, and does `md.Decayed` find it?

An elastic gas in equilibrium is reordered every k steps, for many k. The time of a step is measured with the
cost of all reorders. All k are sampled once a round, in random order. One k is sampled a second time in a
second gas (`reordered every 160 again`): the difference of the two is noise. The trigger `md.Decayed("auto")`
runs in the same rounds. A model is compared with them: the cost of a reorder, divided by k, plus the mean
time of the steps 0, 1 .. k - 1 after a reorder. These times are measured in the same rounds and the same gas,
left without reorders after one. The model's minimum is the predicted k. If the time of a step grew by s with
each step of age, it would be at sqrt(2 C / s), for a reorder of cost C. The table has this for s of the ages
up to the best interval, and for s of all ages. The same gas is timed in shuffled memory in the same rounds,
for the full loss of an order (`wear`). The best interval is chosen from the same rounds in which the others
are compared with it, so their distance from it is rather overestimated.

A step lasts one time unit, so speeds are in d per step; a contact lasts 25 steps. A sample starts with a step
that is not timed, then a reorder that is. Before anything is timed, the forces are compared with those of
another search. At high speeds and densities, where collisions follow one another faster than a contact,
spheres are soft.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, figures, main, style
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces
from experiments.measurement.energy import EnergySettings, Taken, Work
from experiments.measurement.energy_gains import by_resource, summary_of_energy
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import entry_of, sample_of_steps, steps_taken
from experiments.prediction import wear
from experiments.results import gains
from experiments.results.answers import Answer, estimate, one_run, percent, rows_of
from experiments.results.baselines import SHUFFLED, again, is_again, reordered_every
from experiments.results.charts import FILLED, FIRST, LINES, STAR, Chart, Layer, Points, Scale, Table
from md.laws import SpringDashpot
from md.reorder import Capabilities
from md.simulation import PRECISIONS

CONTACT = 25.0  # steps
FLAT = 1.01  # factor of the least time within which times count as equal to it
DECAYED = 'Decayed("auto")'
NEVER = 2**40  # steps
_COMPARED = ("interval", "auto")  # kinds of rows
_INVERSE = {"": "", "_low": "_high", "_high": "_low", "_median_of_rounds": "_median_of_rounds"}
_INVERSE |= {"_lowest_round": "_highest_round", "_highest_round": "_lowest_round"}  # ends of 1 / gain
_FEWEST_OPTIMA = 4  # that a figure compares with the prediction
_CASE = ["n", "filling_fraction", "speed", "ordering", "search", "precision"]


@dataclass(frozen=True)
class Config(EnergySettings):
    """Sweep of intervals between reorders."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("interval",)

    n: Axis[int] = (2**18, 2**21)
    """Number of particles. Four gases of this size are in memory at once."""
    filling_fraction: Axis[float] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    speed: Axis[float] = (0.0005, 0.002, 0.008)
    """Root mean square speed of a particle, in d per step, up to 0.01."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: 3D orderings of `sfc`."""
    search: Axis[str] = ("linked",)
    """Neighbour searches, of those that do not move the particles."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    interval: tuple[int, ...] = (5, 10, 20, 40, 80, 100, 160, 320, 500, 640, 1280, 2560)
    """Numbers of steps between two reorders."""
    least_steps: int = 400
    """Smallest number of steps of a sample, which holds one or more whole intervals."""

    def __post_init__(self):
        super().__post_init__()
        searches = ("linked", "scattered")
        self.check_known({"ordering": sfc.orderings(3), "search": searches, "precision": PRECISIONS})
        self.check_above_zero({"filling_fraction": 0.5, "speed": 0.01})
        self.check_least({"n": 64, "interval": 1, "least_steps": 1})
        self.check_particles(4)


QUICK = {"n": (2**14,), "filling_fraction": (0.2,), "speed": (0.008,), "interval": (5, 20, 80, 320),
         "least_steps": 80, "rounds": 3, "runs": 1, "energy_seconds": 0.0}  # fmt: skip
MINUTES = 13_000  # CPU time of one case of few particles, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on.

    Rows are `interval` (fixed), `auto` (self-tuned), `reorder`, `age` and `shuffled`. The column `schedule`
    names the compared cases, which are of the first two kinds.
    """
    intervals, right = sorted(case.interval), _simulation(case, None, "coherent").forces()
    fixed, second, auto, unordered = (
        _checked(case, trigger, right) for trigger in (_Chosen(), _Chosen(), md.Decayed("auto"), None)
    )
    twice, longest = intervals[len(intervals) // 2], max(intervals[-1], case.least_steps)
    compared = [(fixed, interval, reordered_every(interval)) for interval in intervals]
    compared.append((second, twice, again(reordered_every(twice))))
    entries = [
        _entry(
            sim,
            "interval",
            partial(_at_interval, case, sim, interval),
            name,
            partial(_steps_at_interval, sim, interval, case.least_steps),
        )
        for sim, interval, name in compared
    ]
    entries += [
        _entry(
            auto,
            "auto",
            partial(_self_tuned, auto, longest),
            DECAYED,
            partial(steps_taken, auto, case.least_steps),
        ),
        _entry(fixed, "age", partial(_without_reorders, fixed, intervals[-1])),
        _entry(
            unordered,
            SHUFFLED,
            partial(_self_tuned, unordered, case.least_steps),
            work=partial(steps_taken, unordered, case.least_steps),
        ),
    ]
    backend = md.backend.get(case.backend)
    # Decayed needs some reorders to find its interval: at least two rounds that are not timed.
    yield from take_rounds(
        entries,
        case.rounds,
        backend,
        seed=case.seed,
        begin=begin,
        settle=2,
        energy_seconds=case.energy_seconds,
    )


class _Chosen:
    """Trigger at an interval from a step on, both of which are set before a sample."""

    every, begin = NEVER, 0

    def __call__(self, step: int) -> bool:
        return (step - self.begin) % self.every == 0


def _checked(case: Config, trigger: Any, right: np.ndarray) -> md.Simulation:
    """Create a gas with a trigger of its reorders, and compare its forces with those of another search."""
    sim = _simulation(case, trigger)
    check_forces(sim, right, case.precision)
    return sim


def _entry(
    sim: md.Simulation, what: str, sample: Callable, schedule: str | None = None, work: Work | None = None
) -> Entry:
    """Return a gas as a case that is compared, ready to be sampled."""
    return entry_of(sim, {"particles": len(sim), "what": what, "schedule": schedule}, sample, work=work)


def _after_reorder(sim: md.Simulation, interval: int, steps: int) -> dict[str, float]:
    """Time steps at an interval between reorders, from a reorder on, after a step that is not timed."""
    reordering: Any = sim.reordering
    chosen = reordering.config.schedule
    chosen.begin, chosen.every = sim.step + 1, interval
    return sample_of_steps(sim, steps)


def _at_interval(case: Config, sim: md.Simulation, interval: int) -> Iterator[dict]:
    """Time whole intervals."""
    steps = interval * -(-case.least_steps // interval)
    yield {"interval": interval, "steps": steps} | _after_reorder(sim, interval, steps)


def _steps_at_interval(sim: md.Simulation, interval: int, steps: int) -> Taken:
    """Take steps with a reorder at an interval, without times; the next call goes on in it."""
    reordering: Any = sim.reordering
    chosen = reordering.config.schedule
    if chosen.every != interval:  # else this case has had its first call
        chosen.begin, chosen.every = sim.step, interval
    return steps_taken(sim, steps)


def _self_tuned(sim: md.Simulation, steps: int) -> Iterator[dict]:
    """Time steps between which the trigger itself chooses when to reorder, if there is one."""
    times = sample_of_steps(sim, steps)
    found = np.diff(sim.timings.steps.get("reorder", []))
    last = float(np.median(found)) if len(found) else None  # no reorder or one in the whole sample
    yield {"interval": last, "steps": steps} | times


def _without_reorders(sim: md.Simulation, interval: int) -> Iterator[dict]:
    """Time the reorders of two long intervals, and their steps grouped by age, the young ones finer."""
    reordering: Any = sim.reordering
    trigger, begin = reordering.trigger, sim.step + 1
    trigger.capabilities = Capabilities(needs_times=True)
    _after_reorder(sim, interval, 2 * interval)
    trigger.capabilities = Capabilities()
    for cost in sim.timings.milliseconds["reorder"]:
        yield {"what": "reorder", "time_ms": cost, "sample_ms": cost}
    pieces = sim.timings.known_pieces or [(step, 1, ms) for step, ms in sim.timings.known("force")]
    at, steps, ms = map(np.array, zip(*pieces, strict=True))
    age = (at - begin) % interval
    bins = np.searchsorted(np.unique(np.rint(np.geomspace(16, interval, 24))), age, side="right")
    taken, middle, sums = (np.bincount(bins, of) for of in (steps, (age + (steps - 1) / 2) * steps, ms))
    for k in np.flatnonzero(taken):
        mean = float(sums[k] / taken[k])
        number = int(taken[k])
        yield {"age": float(middle[k] / number), "steps": number, "time_ms": mean, "sample_ms": number * mean}


def _simulation(case: Config, trigger: Any, search: str = "") -> md.Simulation:
    """Make a gas, and run a step."""
    gas = _gas(case.n, case.filling_fraction, case.speed, case.seed, case.backend)
    law = SpringDashpot.from_restitution(1.0, CONTACT)
    common: dict[str, Any] = {"dt": 1.0, "backend": case.backend, "precision": case.precision}
    common |= {"reorder": None if trigger is None else md.Reorder(case.ordering, trigger)}
    simulation = md.Simulation(gas, law, search=search or case.search, fused=not search, **common)
    simulation.run(1, phases=False)
    return simulation


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, speed: float, seed: int, backend: str) -> md.State:
    box, temperature = md.scenes.box_for(n, filling_fraction), speed**2 / 3
    return md.preparation.granular_gas(filling_fraction, box, temperature, seed, "shuffled", backend=backend)


def reorder_ms(rows: pd.DataFrame) -> float:
    """Return the time of a reorder: the median over rounds of the last reorder in each.

    The first reorder of a round follows other work.
    """
    return rows[rows["what"] == "reorder"].groupby(["run", "round"])["time_ms"].last().median()


def predicted_times(rows: pd.DataFrame) -> pd.Series:
    """Apply the model: the time of a step in ms, by the interval from 1 to the largest age measured.

    Args:
        rows: of one case; columns run, round, what, age, steps, time_ms.
    """
    ages = rows[rows["what"] == "age"].groupby("age")["time_ms"].median()
    k = np.arange(1, max(2, int(ages.index.max())) + 1)
    times = reorder_ms(rows) + np.cumsum(np.interp(k - 1, ages.index, ages))
    return pd.Series(times / k, pd.Index(k, name="interval"), name="time_ms")


def over_best(rows: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    """Average the time at each fixed interval, and compute the gain of every trigger over the best of them.

    Args:
        rows: of one case; columns run, round, what, schedule, interval, time_ms.

    Returns:
        The times by the interval, and rows of `gains.gains`.
    """
    compared = rows[rows["what"].isin(_COMPARED)]
    fixed = compared[(compared["what"] == "interval") & ~compared["schedule"].map(is_again)]
    times = gains.over_runs(fixed.astype({"interval": int}), ["interval"], "time_ms").set_index("interval")
    centres = gains.bounds(times, "time_ms")["centre"].sort_index()
    best: Any = centres.idxmin()
    return centres, gains.gains(compared, [], "schedule", reordered_every(best))


def optima(table: pd.DataFrame) -> pd.DataFrame:
    """List for each case the best interval measured, the predicted one, and the result of `Decayed`.

    Times over that at the best interval come with their interval over runs, or the range of one run's rounds.

    Args:
        table: with columns `run`, `round` and `schedule`, which tables of before 2026-11-23 lack.
    """
    found = []
    for key, rows in _with_schedules(table).groupby(_CASE, sort=False):
        fixed, ratios = over_best(rows)
        best: Any = fixed.idxmin()
        flat = fixed.index[fixed <= FLAT * fixed.min()]
        auto = rows[rows["what"] == "auto"]
        time_auto = gains.bounds(gains.over_runs(auto, ["what"], "time_ms"), "time_ms")["centre"]
        model = predicted_times(rows)
        chosen: Any = model.idxmin()
        seen: list[Any] = [predicted_times(run).idxmin() for _, run in rows.groupby("run")]
        at_chosen = np.interp(np.log(chosen), np.log(fixed.index), fixed, left=np.nan, right=np.nan)
        found.append(
            dict(zip(_CASE, key, strict=True))
            | {
                "runs": rows["run"].nunique(),
                "reorder_ms": reorder_ms(rows),
                "interval_best": best,
                "interval_best_from": flat.min(),
                "interval_best_to": flat.max(),
                "is_best_at_an_end": best in (fixed.index[0], fixed.index[-1]),
                "time_ms_best": fixed.min(),
                "interval_foreseen": chosen,
                "interval_foreseen_from": min(seen),
                "interval_foreseen_to": max(seen),
                "is_foreseen_at_the_end": chosen == model.index[-1],
                **_linear_wear(rows, best),
                "time_ms_at_foreseen": at_chosen,
                "interval_auto": auto["interval"].median(),
                "time_ms_auto": time_auto.iloc[0],
            }
            | _time_over_best(ratios, DECAYED, "auto_over_best")
            | _time_over_best(ratios, reordered_every(fixed.index[-1]), "longest_over_best")
            | {"noise_floor": ratios["noise_floor"].max()}
        )
    return pd.DataFrame(found)


def _linear_wear(rows: pd.DataFrame, best: int) -> dict[str, float]:
    """Return the columns of s, the growth of a step's time with age, and of sqrt(2 C / s)."""
    of_age = rows[rows["what"] == "age"].groupby("age")
    ages, found = of_age.agg({"steps": "first", "time_ms": "median"}).reset_index(), {}
    for name, oldest in (("best", best), ("oldest", ages["age"].max())):
        s = wear.slope(ages, oldest)
        found[f"wear_us_per_step_to_{name}"] = 1000 * s
        found[f"interval_sqrt_2C_over_s_to_{name}"] = wear.interval_of_linear_loss(reorder_ms(rows), s)
    return found


def _time_over_best(ratios: pd.DataFrame, schedule: str, name: str) -> dict[str, float | str]:
    """Return the columns of a trigger: its time over that at the best interval; 1 for the best itself."""
    rows: list[Any] = ratios[ratios["schedule"] == schedule].to_dict("records")
    if not rows:
        return {name if "gain" in ratios else f"{name}_median_of_rounds": 1.0}
    found = {name + end: 1 / rows[0][f"gain{of}"] for end, of in _INVERSE.items() if f"gain{of}" in ratios}
    return found | ({f"{name}_difference": rows[0]["difference"]} if "difference" in ratios else {})


def _with_schedules(table: pd.DataFrame) -> pd.DataFrame:
    """Add the columns that tables of before 2026-11-23 lack: `run`, `round` and `schedule`."""
    if "schedule" in table:
        return table
    fixed = table["interval"].map(lambda steps: reordered_every(int(steps)), na_action="ignore")
    names = fixed.where(table["what"] == "interval").mask(table["what"] == "auto", DECAYED)
    rounds = table.groupby(["repeat", "sample"]).ngroup()  # one after the other, so one run
    return table.assign(schedule=names, run=0, round=rounds).drop(columns=["repeat", "sample"])


def _with_models(table: pd.DataFrame) -> pd.DataFrame:
    """Add rows of the times that the model predicts for each run, and name second measurements so."""
    table, by = _with_schedules(table), [*_CASE, "run"]
    parts = [table.assign(what=table["what"].mask(table["schedule"].map(is_again), "again"))]
    for key, rows in table.groupby(by, sort=False):
        model = predicted_times(rows).loc[rows["interval"].min() :].reset_index()  # nothing is measured below
        case: dict[str, Any] = dict(zip(by, key, strict=True))
        parts.append(model.assign(what="model", round=0, **case))
    return pd.concat(parts, ignore_index=True)


def _of_schedules(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `by_resource`, with shuffled memory as a schedule of its own."""
    names = table["schedule"].mask(table["what"] == SHUFFLED, SHUFFLED)
    return by_resource(table.assign(schedule=names))


def _draw_foreseen(table: pd.DataFrame, out: Path) -> None:
    """Draw predicted over measured optima, if there are a few."""
    best = optima(table)
    if len(best) < _FEWEST_OPTIMA:
        return
    figure, panel = plt.subplots(figsize=(4.4, 3.6))
    look = style.lines_in_turn([f"{n:,} particles" for n in best["n"].unique()], "line")
    for n, rows in best.groupby("n", sort=False):
        name, x, y = f"{n:,} particles", rows["interval_best"], rows["interval_foreseen"]
        within = [x - rows["interval_best_from"], rows["interval_best_to"] - x]
        runs = np.clip([y - rows["interval_foreseen_from"], rows["interval_foreseen_to"] - y], 0, None)
        marks: dict[str, Any] = {"fmt": look["markers"][name], "color": look["palette"][name]}
        panel.errorbar(x, y, yerr=runs, xerr=within, linewidth=0.8, capsize=2, label=name, **marks)
    ends = np.array([best["interval_best_from"].min(), best["interval_best_to"].max()], float)
    panel.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    panel.fill_between(ends, ends / 2, 2 * ends, color="0.9", zorder=0, label="within a factor of two")
    panel.set(xlabel="best interval measured (steps)", ylabel="interval predicted (steps)")
    panel.set(xscale="log", yscale="log")
    for horizontal in (False, True):
        figures.plain_log_ticks(panel, horizontal)
    panel.legend(fontsize=7)
    figures.titled(figure, "bars: within 1 % of the best time; range over runs", out, "foreseen")


_FIXED = "what == 'interval'"
VIEWS = (
    Chart(
        "interval",
        "At {filling_fraction} filled, a reorder every {interval} steps takes {value} times as long as the "
        "best interval (speed {best}), {of_worst} times (speed {worst})",
        LINES,
        (Points("time_ms", _FIXED, "over best", compared="interval", along="interval",
                values=Scale("time over the best", line=1)),
         Points("time_ms", _FIXED)),
        Scale("steps between reorders", "interval", log=10), Scale("time per step (ms)"), "speed",
        "speed (d per step)", panels="filling_fraction", heading=FILLED,
        files=("n", "ordering", "search", "precision"), prepare=_with_models,
        layers=(Layer(Points("time_ms", "what == 'model'", FIRST, each=("run",))),
                Layer(Points("time_ms", "what == 'auto'", across="interval"), STAR)),
        note="{n} particles, {search}, {ordering}, {precision}; dashed: predicted from the wear of one "
        f"interval; star: {DECAYED}",
    ),
    _draw_foreseen,
    Table("summary", optima),
    summary_of_energy(_CASE, "schedule", (SHUFFLED,), prepare=_of_schedules),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Name the best interval between reorders, the predicted one, and what `Decayed` took."""
    table, near = _with_schedules(table), f"within {percent(FLAT - 1)}"
    found = optima(table).sort_values("n", ascending=False, kind="stable")
    over = partial(estimate, value="auto_over_best", show="{:.3f}".format)
    cells: dict[str, Callable[[dict], object]] = {
        "best": "every {interval_best:,}".format_map,
        near: "{interval_best_from:,} to {interval_best_to:,}".format_map,
        "predicted": "every {interval_foreseen:,}".format_map,
        "Decayed": lambda row: f"every {steps:,.0f}" if (steps := row["interval_auto"]) > 0 else "seldom",
        "its time over best": over,
    }
    row = found.to_dict("records")[0]
    verdict = row.get("auto_over_best_difference", "")
    inside = found["interval_foreseen"].between(found["interval_best_from"], found["interval_best_to"]).sum()
    sentence = (
        f"At {row['n']:,} particles, {percent(row['filling_fraction'])} filled, {row['speed']:g} d a step, a "
        f"reorder {cells['best'](row)} steps is best ({cells[near](row)}: {near}); the model predicts "
        f"{row['interval_foreseen']:,}, and is in that range in {inside} of {len(found)} cases; "
        f"Decayed takes {over(row)} times the best time{verdict and ': '}{verdict}.{one_run(table)}"
    )
    return Answer(rows_of(found, _CASE, cells), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
