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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, figures, main, save_table, style
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import sample_of_steps, whole_steps
from experiments.prediction import wear
from experiments.results import gains
from experiments.results.answers import Answer, estimate, one_run, percent, rows_of
from experiments.results.baselines import SHUFFLED, again, is_again, reordered_every
from experiments.results.charts import FILLED, FIRST, LINES, STAR, Chart, Layer, Points, Scale
from md.laws import SpringDashpot
from md.particles.capabilities import Capabilities
from md.particles.system import System
from md.reorder.base import ActiveTrigger, RunTrigger
from md.simulation import PRECISIONS

CONTACT = 25.0  # steps
FLAT = 1.01  # factor of the least time within which times count as equal to it
DECAYED = 'Decayed("auto")'
NEVER = 2**40  # steps
_FEWEST_OPTIMA = 4  # that a figure compares with the prediction
_CASE = ["n", "filling_fraction", "speed", "ordering", "search", "precision"]


@dataclass(frozen=True)
class Config(TimedSettings):
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
        known = {
            "ordering": sfc.orderings(3),
            "search": ("linked", "scattered"),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        self.check_above_zero({"filling_fraction": 0.5, "speed": 0.01})
        self.check_least({"n": 64, "interval": 1, "least_steps": 1})
        self.check_particles(4)


QUICK = {"n": (2**14,), "filling_fraction": (0.2,), "speed": (0.008,), "interval": (5, 20, 80, 320),
         "least_steps": 80, "rounds": 3, "runs": 1}  # fmt: skip
MINUTES = 13_000  # CPU time of one case of few particles, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on.

    Rows are `interval` (fixed), `auto` (self-tuned), `reorder`, `age` and `shuffled`. The column `schedule`
    names the compared cases, which are of the first two kinds.
    """
    intervals, other = sorted(case.interval), _simulation(case, None, search="coherent")
    other.run(1, phases=False)
    right = other.forces()
    del other
    fixed, second = (_Gas.checked(case, _Chosen(), right) for _ in range(2))
    auto = _Gas.checked(case, md.Decayed("auto"), right)
    twice, longest = intervals[len(intervals) // 2], max(intervals[-1], case.least_steps)
    found = [(fixed, interval, reordered_every(interval)) for interval in intervals]
    found.append((second, twice, again(reordered_every(twice))))
    entries = [
        gas.entry(case, "interval", partial(_at_interval, case, gas, interval), name)
        for gas, interval, name in found
    ]
    entries.append(auto.entry(case, "auto", partial(_self_tuned, auto, longest), DECAYED))
    entries.append(fixed.entry(case, "age", partial(_without_reorders, fixed, intervals[-1])))
    unordered = _Gas.checked(case, None, right)
    entries.append(unordered.entry(case, SHUFFLED, partial(_in_shuffled_memory, unordered, case.least_steps)))
    backend = md.backend.get(case.backend)
    # Decayed needs some reorders to find its interval: at least two rounds that are not timed.
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin, settle=2)


class _Gas(NamedTuple):
    """Simulation with the active trigger of its reorders."""

    simulation: md.Simulation
    trigger: Any  # an ActiveTrigger of the simulation; of fixed intervals a _ChosenTrigger; None for none

    @classmethod
    def checked(cls, case: Config, schedule: RunTrigger | None, right: np.ndarray) -> "_Gas":
        """Create a gas, run a step, and compare its forces with those of another search."""
        simulation = _simulation(case, schedule)
        simulation.run(1, phases=False)
        check_forces(simulation, right, case.precision)
        reordering = simulation.reordering
        return cls(simulation, None if reordering is None else reordering.trigger)

    def entry(self, case: Config, what: str, sample: partial, schedule: str | None = None) -> Entry:
        """Return the gas as a case that is compared, ready to be sampled."""
        sim = self.simulation
        common = {
            "particles": len(sim),
            "what": what,
            "schedule": schedule,
            "temperature_start": md.observe.temperature(sim.state),
            **working_set(len(sim), 3, case.precision, sim.backend),
        }
        return Entry(common, sample, lambda: {"temperature_end": md.observe.temperature(sim.state)})


def _at_interval(case: Config, gas: _Gas, interval: int) -> Iterator[dict]:
    """Time whole intervals, from a reorder on."""
    steps = interval * -(-case.least_steps // interval)
    gas.trigger.begin_at(gas.simulation, interval)
    ms = whole_steps(gas.simulation, steps)
    yield {"interval": interval, "steps": steps, "time_ms": ms / steps, "sample_ms": ms}


def _self_tuned(gas: _Gas, steps: int) -> Iterator[dict]:
    """Time steps between which the trigger itself chooses when to reorder."""
    gas.simulation.run(1, phases=False)
    ms = whole_steps(gas.simulation, steps)
    found = np.diff(gas.simulation.timings.steps.get("reorder", []))
    last = float(np.median(found)) if len(found) else None  # no reorder or one in the whole sample
    yield {"interval": last, "steps": steps, "time_ms": ms / steps, "sample_ms": ms}


def _without_reorders(gas: _Gas, interval: int) -> Iterator[dict]:
    """Time the reorders of two long intervals, and their steps by age."""
    sim, chosen = gas
    chosen.begin_at(sim, interval)
    chosen.times = True
    whole_steps(sim, 2 * interval)
    chosen.times = False
    for ms in sim.timings.milliseconds["reorder"]:
        yield {"what": "reorder", "time_ms": ms, "sample_ms": ms}
    for age, steps, ms in _ages(sim, chosen):
        yield {"age": age, "steps": steps, "time_ms": ms, "sample_ms": steps * ms}


def _in_shuffled_memory(gas: _Gas, steps: int) -> Iterator[dict]:
    """Time steps in memory that has never been in an order."""
    yield {"steps": steps, **sample_of_steps(gas.simulation, steps)}


class _Chosen(RunTrigger):
    """Choice of a trigger at an interval that the experiment sets."""

    def build(self, system: System) -> "_ChosenTrigger":
        return _ChosenTrigger(system)


class _ChosenTrigger(ActiveTrigger):
    """Trigger at a settable interval from a settable step on, which times steps if wanted."""

    times = False
    every, begin = NEVER, 0

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]  # it changes between two runs
        return Capabilities(needs_times=self.times)

    def begin_at(self, simulation: md.Simulation, interval: int) -> None:
        """Reorder at the step after the next one, and then at the interval; the next step is not timed."""
        self.every, self.begin = NEVER, simulation.step + 1
        simulation.run(1, phases=False)
        self.every = interval

    def is_due(self, step: int) -> bool:
        return (step - self.begin) % self.every == 0

    def steps_to_next(self, step: int, most: int) -> int:
        return min(most, self.every - (step - self.begin) % self.every)


def _ages(simulation: md.Simulation, chosen: _ChosenTrigger) -> Iterator[tuple[float, int, float]]:
    """Group timed steps by age, the young ones finer: mean age, number, and time in ms per step."""
    timings = simulation.timings
    timings.resolve()
    pieces = timings.known_pieces or [(step, 1, ms) for step, ms in timings.known("force")]
    at, steps, ms = map(np.array, zip(*pieces, strict=True))
    age = (at - chosen.begin) % chosen.every
    bins = np.unique(np.rint(np.geomspace(16, chosen.every, 24)))
    for number in range(len(bins) + 1):
        those = np.searchsorted(bins, age, side="right") == number
        if those.any():
            taken = int(steps[those].sum())
            middle = ((age + (steps - 1) / 2) * steps)[those].sum() / taken
            yield float(middle), taken, float(ms[those].sum() / taken)


def _simulation(case: Config, schedule: RunTrigger | None, search: str | None = None) -> md.Simulation:
    gas = _gas(case.n, case.filling_fraction, case.speed, case.seed, case.backend)
    return md.Simulation(
        gas,
        SpringDashpot.from_restitution(1.0, CONTACT),
        search=search or case.search,
        dt=1.0,
        reorder=None if schedule is None else md.Reorder(case.ordering, schedule),
        backend=case.backend,
        precision=case.precision,
        fused=search is None,
    )


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, speed: float, seed: int, backend: str) -> md.State:
    box = md.scenes.box_for(n, filling_fraction)
    return md.scenes.granular_gas(
        filling_fraction, box, speed**2 / 3, seed=seed, memory_order="shuffled", backend=backend
    )


def reorder_ms(rows: pd.DataFrame) -> float:
    """Return the time of a reorder: the median over rounds of the last reorder in each.

    The first reorder of a round follows other work.
    """
    return rows[rows["what"] == "reorder"].groupby(["run", "round"])["time_ms"].last().median()


def predicted_times(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Apply the model: intervals 1 .. the largest age measured, and the time of a step at each, in ms.

    Args:
        rows: of one case; columns run, round, what, age, steps, time_ms.
    """
    ages = rows[rows["what"] == "age"].groupby("age")[["time_ms"]].median().reset_index()
    cost = reorder_ms(rows)
    k = np.arange(1, max(2, int(ages["age"].max())) + 1)
    time = np.interp(k - 1, ages["age"], ages["time_ms"])
    return k, (cost + np.cumsum(time)) / k


def over_best(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Average the time at each fixed interval, and compute the gain of every trigger over the best of them.

    Args:
        rows: of one case; columns run, round, what, schedule, interval, time_ms.

    Returns:
        Rows of `gains.over_runs`, by the interval, and of `gains.gains`.
    """
    compared = rows[rows["what"].isin(["interval", "auto"])]
    fixed = compared[(compared["what"] == "interval") & ~compared["schedule"].map(is_again)]
    times = gains.over_runs(fixed, ["interval"], "time_ms")
    times = times.astype({"interval": int}).sort_values("interval", ignore_index=True)
    times["centre"] = gains.bounds(times, "time_ms")["centre"]
    best = reordered_every(int(times["interval"].to_numpy()[times["centre"].argmin()]))
    return times, gains.gains(compared, [], "schedule", best)


def optima(table: pd.DataFrame) -> pd.DataFrame:
    """List for each case the best interval measured, the predicted one, and the result of `Decayed`.

    Times over that at the best interval come with their interval over runs, or the range of one run's rounds.

    Args:
        table: with columns `run`, `round` and `schedule`.
    """
    found = []
    for key, rows in table.groupby(_CASE, sort=False):
        times, ratios = over_best(rows)
        fixed = times.set_index("interval")["centre"]
        auto = rows[rows["what"] == "auto"]
        time_auto = gains.bounds(gains.over_runs(auto, ["what"], "time_ms"), "time_ms")["centre"]
        flat = fixed[fixed <= FLAT * fixed.min()].index
        k, model = predicted_times(rows)
        chosen = int(k[model.argmin()])
        each = [predicted_times(run) for _, run in rows.groupby("run")]
        seen = [int(ages[time.argmin()]) for ages, time in each]
        found.append(
            dict(zip(_CASE, key, strict=True))
            | {
                "runs": rows["run"].nunique(),
                "reorder_ms": reorder_ms(rows),
                "interval_best": int(fixed.index.to_numpy()[fixed.argmin()]),
                "interval_best_from": int(flat.min()),
                "interval_best_to": int(flat.max()),
                "is_best_at_an_end": bool(fixed.idxmin() in (fixed.index[0], fixed.index[-1])),
                "time_ms_best": fixed.min(),
                "interval_foreseen": chosen,
                "interval_foreseen_from": min(seen),
                "interval_foreseen_to": max(seen),
                "is_foreseen_at_the_end": chosen == k[-1],
                **_linear_wear(rows, int(fixed.index.to_numpy()[fixed.argmin()])),
                "time_ms_at_foreseen": np.interp(
                    np.log(chosen), np.log(fixed.index), fixed, left=np.nan, right=np.nan
                ),
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
    ages = of_age.agg({"steps": "first", "time_ms": "median"}).reset_index()
    cost, found = reorder_ms(rows), {}
    for name, oldest in (("best", best), ("oldest", ages["age"].max())):
        s = wear.slope(ages, oldest)
        found[f"wear_us_per_step_to_{name}"] = 1000 * s
        found[f"interval_sqrt_2C_over_s_to_{name}"] = wear.interval_of_linear_loss(cost, s)
    return found


def _time_over_best(ratios: pd.DataFrame, schedule: str, name: str) -> dict[str, float | str]:
    """Return the columns of a trigger: its time over that at the best interval; 1 for the best itself."""
    (own,) = ratios[ratios["schedule"] == schedule].to_dict("records") or [{}]
    if not own:
        return {name if "gain" in ratios else f"{name}_median_of_rounds": 1.0}
    found, other = {}, {"_low": "_high", "_high": "_low", "_lowest_round": "_highest_round"}
    other["_highest_round"] = "_lowest_round"
    for column in (str(column) for column in own if str(column).startswith("gain")):
        end = column.removeprefix("gain")
        found[name + end] = 1 / own[f"gain{other.get(end, end)}"]
    return found | ({f"{name}_difference": own["difference"]} if "difference" in own else {})


def _with_schedules(table: pd.DataFrame) -> pd.DataFrame:
    """Add the columns that tables of before 2026-11-23 lack: `run`, `round` and `schedule`."""
    if "schedule" in table:
        return table
    names = np.array([reordered_every(int(k)) if np.isfinite(k) else None for k in table["interval"]], object)
    what = table["what"].to_numpy()
    none: Any = None
    names = np.where(what == "auto", DECAYED, np.where(what == "interval", names, none))
    rounds = table.groupby(["repeat", "sample"]).ngroup()  # one after the other, so one run
    return table.assign(schedule=names, run=0, round=rounds).drop(columns=["repeat", "sample"])


def _schedules(table: pd.DataFrame) -> pd.DataFrame:
    """List each trigger of each case: the time of a step, and the gain over the best interval."""
    compared = table[table["what"].isin(["interval", "auto"])]
    times = gains.over_runs(compared, [*_CASE, "schedule"], "time_ms")
    ratios = []
    for key, rows in table.groupby(_CASE, sort=False):
        case: dict[str, Any] = {name: value for name, value in zip(_CASE, key, strict=True)}
        one = over_best(rows)[1].drop(columns=["runs", "rounds"])
        ratios.append(one.assign(**case))
    found = times[~times["schedule"].map(is_again)]
    return found.merge(pd.concat(ratios, ignore_index=True), on=[*_CASE, "schedule"], how="left")


def _with_models(table: pd.DataFrame) -> pd.DataFrame:
    """Add rows of the times that the model predicts for each run, and name second measurements so."""
    table = _with_schedules(table)
    parts = [table.assign(what=table["what"].mask(table["schedule"].map(is_again), "again"))]
    for key, rows in table.groupby([*_CASE, "run"], sort=False):
        k, time = predicted_times(rows)
        case: dict[str, Any] = dict(zip([*_CASE, "run"], key, strict=True))
        model = {"what": "model", "interval": k[4:], "time_ms": time[4:], "round": 0}
        parts.append(pd.DataFrame(case | model))
    return pd.concat(parts, ignore_index=True)


def _write_optima(table: pd.DataFrame, out: Path) -> None:
    """Write the tables, and draw predicted over measured optima."""
    table = _with_schedules(table)
    best = optima(table)
    save_table(best, out, "summary")
    save_table(_schedules(table), out, "schedules")
    if len(best) < _FEWEST_OPTIMA:
        return
    figure, panel = plt.subplots(figsize=(4.4, 3.6))
    best = best.assign(line=[f"{n:,}" for n in best["n"]])
    look = style.lines_in_turn(list(dict.fromkeys(best["line"])), "line")
    for name, rows in best.groupby("line", sort=False):
        x, y = rows["interval_best"], rows["interval_foreseen"]
        within = np.array([x - rows["interval_best_from"], rows["interval_best_to"] - x])
        runs = np.clip([y - rows["interval_foreseen_from"], rows["interval_foreseen_to"] - y], 0, None)
        panel.errorbar(
            x, y, xerr=within, yerr=runs, fmt=look["markers"][name], color=look["palette"][name],
            linewidth=0.8, capsize=2, label=f"{name} particles",
        )  # fmt: skip
    ends = np.array([best["interval_best_from"].min(), best["interval_best_to"].max()], float)
    panel.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    panel.fill_between(ends, ends / 2, 2 * ends, color="0.9", zorder=0, label="within a factor of two")
    names = {"xlabel": "best interval measured (steps)", "ylabel": "interval predicted (steps)"}
    panel.set(xscale="log", yscale="log", **names)
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
    _write_optima,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Name the best interval between reorders, the predicted one, and what `Decayed` took."""
    table, near = _with_schedules(table), f"within {percent(FLAT - 1)}"
    found = optima(table).sort_values("n", ascending=False, kind="stable")
    cells = {
        "best": lambda row: f"every {row['interval_best']:,}",
        near: lambda row: f"{row['interval_best_from']:,} to {row['interval_best_to']:,}",
        "predicted": lambda row: f"every {row['interval_foreseen']:,}",
        "Decayed": lambda row: _interval_in_words(row["interval_auto"]),
        "its time over best": lambda row: estimate(row, "auto_over_best", _over_best),
    }
    row = found.to_dict("records")[0]
    inside = found["interval_foreseen"].between(found["interval_best_from"], found["interval_best_to"]).sum()
    sentence = (
        f"At {row['n']:,} particles, {percent(row['filling_fraction'])} filled, {row['speed']:g} d a step, a "
        f"reorder every {row['interval_best']:,} steps is best ({row['interval_best_from']:,} to "
        f"{row['interval_best_to']:,}: {near}); the model predicts {row['interval_foreseen']:,}, and is "
        f"in that range in {inside} of {len(found)} cases; {_decayed(row)}."
    )
    return Answer(rows_of(found, _CASE, cells), sentence + one_run(table))


def _over_best(factor: float) -> str:
    return f"{factor:.3f}" if np.isfinite(factor) else "-"


def _interval_in_words(steps: float) -> str:
    return f"every {steps:,.0f}" if np.isfinite(steps) else "seldom"  # once a sample, or less


def _decayed(row: dict) -> str:
    """Say how long a step of `Decayed` takes, over one at the best interval."""
    over, verdict = estimate(row, "auto_over_best", _over_best), row.get("auto_over_best_difference", "")
    if over == "-":
        return "Decayed was not measured"
    return f"Decayed takes {over} times the best time" + (f": {verdict}" if verdict else "")


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
