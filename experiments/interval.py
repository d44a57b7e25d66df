"""How many steps should lie between two reorders, can that be foreseen, and does `md.Decayed` find it?

An elastic gas in equilibrium is reordered every k steps, for many k in turns, and the time of a step is
measured with all that reorders cost. Beside it stands a model: the cost of a reorder, shared out over k
steps, and the mean of what a step takes 0, 1 .. k - 1 steps after one, as it was seen in the same gas left
alone after a reorder; its minimum is the k foreseen. The schedule `md.Decayed("auto")` runs in the same
turns. A step lasts one time unit, so speeds are in d per step; a contact lasts 25 steps. Before anything is
timed, the forces are compared with those of another search. Where collisions follow one another faster than
that, at high speeds and densities, spheres are soft.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import md
import sfc
from experiments.core import Settings, main, save_table, style
from experiments.measured.checked import check_forces
from md.laws import SpringDashpot
from md.simulation import PRECISIONS
from md.watching import Run, Watching

CONTACT = 25.0  # steps
FLAT = 1.01  # times within this of the least count as least
_CASE = ["n", "filling_fraction", "speed", "ordering", "search", "precision", "repeat"]
_SPREAD = {"estimator": "median", "errorbar": ("pi", 100)}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of intervals between reorders."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("interval",)

    n: tuple[int, ...] = (2**18, 2**21)
    """Particles."""
    filling_fraction: tuple[float, ...] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    speed: tuple[float, ...] = (0.0005, 0.002, 0.008)
    """Root mean square of a particle's speed, in d per step, up to 0.01."""
    ordering: tuple[str, ...] = ("hilbert",)
    """Any 3D ordering of `sfc`."""
    search: tuple[str, ...] = ("linked",)
    """linked, scattered: searches that leave the memory as it is."""
    precision: tuple[str, ...] = ("float32",)
    """float32, float64."""
    interval: tuple[int, ...] = (5, 10, 20, 40, 80, 100, 160, 320, 500, 640, 1280, 2560)
    """Steps between reorders."""
    samples: int = 3
    """Turns."""
    least_steps: int = 400
    """Steps of a sample; it has one interval at least, and whole ones."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "ordering": sfc.orderings(3),
            "search": ("linked", "scattered"),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        self.check_above_zero({"filling_fraction": 0.5, "speed": 0.01})
        self.check_least({"n": 64, "interval": 1, "samples": 1, "least_steps": 1})
        self.check_particles()


QUICK = {"n": (2**14,), "filling_fraction": (0.2,), "speed": (0.008,), "interval": (5, 20, 80, 320),
         "least_steps": 80}  # fmt: skip


def measure(case: Config) -> Iterator[dict]:
    """Rows of kinds: `interval`, at a fixed one; `auto`, at one found; `age`, after one; `reorder`."""
    chosen, intervals = _Chosen(), sorted(case.interval)
    fixed, other = _simulation(case, chosen), _simulation(case, None, search="coherent")
    fixed.run(1, phases=False)
    other.run(1, phases=False)
    check_forces(fixed, other.forces(), case.precision)
    del other
    auto = _simulation(case, md.Decayed("auto"))
    longest = max(intervals[-1], case.least_steps)
    for interval in (*intervals[:3], longest):  # makes all that is made once
        chosen.interval = interval
        fixed.run(min(2 * interval, longest), phases=False)
    auto.run(2 * longest, phases=False)
    common = {"particles": len(fixed)}
    for sample in range(case.samples):
        for interval in intervals:
            chosen.interval, chosen.begin = interval, fixed.step
            fixed.timings.clear()
            fixed.run(interval * -(-case.least_steps // interval), phases=False)
            yield common | {
                "what": "interval",
                "sample": sample,
                "interval": interval,
                "time_ms": _mean(fixed),
            }
        auto.timings.clear()
        auto.run(longest, phases=False)
        found = np.diff(auto.timings.steps.get("reorder", []))
        last = float(np.median(found)) if len(found) else None  # none or one in the whole turn
        yield common | {"what": "auto", "sample": sample, "interval": last, "time_ms": _mean(auto)}
        chosen.interval, chosen.begin, chosen.times = intervals[-1], fixed.step, True
        fixed.timings.clear()
        fixed.run(2 * intervals[-1], phases=False)
        chosen.times = False
        for ms in fixed.timings.milliseconds["reorder"]:
            yield common | {"what": "reorder", "sample": sample, "time_ms": ms}
        for age, steps, ms in _ages(fixed, chosen):
            yield common | {"what": "age", "sample": sample, "age": age, "steps": steps, "time_ms": ms}


class _Chosen(Watching):
    """Every so many steps from one on, both to be set from outside, and timed when told so."""

    times = False
    interval, begin = 1, 0

    def bind(self, run: Run) -> "_Chosen":
        self._run, self._last = run, None
        return self

    def _is_due(self, step: int) -> bool:
        return (step - self.begin) % self.interval == 0

    def steps_to_next(self, step: int, most: int) -> int:
        return min(most, self.interval - (step - self.begin) % self.interval)


def _mean(simulation: md.Simulation) -> float:
    """Time of a step of its last run, in ms."""
    ((steps, ms),) = simulation.timings.total
    return ms / steps


def _ages(simulation: md.Simulation, chosen: _Chosen) -> Iterator[tuple[float, int, float]]:
    """Mean age, number and time in ms each of the steps that were timed together, the younger ones finer."""
    timings = simulation.timings
    timings.resolve()
    pieces = timings.known_pieces or [(step, 1, ms) for step, ms in timings.known("force")]
    at, steps, ms = map(np.array, zip(*pieces, strict=True))
    age = (at - chosen.begin) % chosen.interval
    bins = np.unique(np.rint(np.geomspace(16, chosen.interval, 24)))
    for number in range(len(bins) + 1):
        those = np.searchsorted(bins, age, side="right") == number
        if those.any():
            taken = int(steps[those].sum())
            middle = ((age + (steps - 1) / 2) * steps)[those].sum() / taken
            yield float(middle), taken, float(ms[those].sum() / taken)


def _simulation(case: Config, schedule, search: str | None = None) -> md.Simulation:
    gas = _gas(case.n, case.filling_fraction, case.speed, case.seed, case.backend)
    return md.Simulation(
        gas,
        SpringDashpot.from_restitution(1.0, CONTACT),
        search=search or case.search,
        dt=1.0,
        reorder=md.Reorder(case.ordering, schedule) if search is None else None,
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
    """What a reorder takes: the median over turns of the last in each, for the first follows other work."""
    return rows[rows["what"] == "reorder"].groupby("sample")["time_ms"].last().median()


def foreseen(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What the model says: intervals 1 .. the oldest age seen, and the time of a step at each, in ms.

    Args:
        rows: of one case; columns what, age, steps, time_ms.
    """
    ages = rows[rows["what"] == "age"].groupby("age")[["time_ms"]].median().reset_index()
    cost = reorder_ms(rows)
    k = np.arange(1, max(2, int(ages["age"].max())) + 1)
    time = np.interp(k - 1, ages["age"], ages["time_ms"])
    return k, (cost + np.cumsum(time)) / k


def optima(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each case: the best interval measured, the one foreseen, and what `Decayed` does beside."""
    found = []
    for key, rows in table.groupby(_CASE, sort=False):
        fixed = rows[rows["what"] == "interval"].groupby("interval")["time_ms"].median()
        auto = rows[rows["what"] == "auto"]
        k, model = foreseen(rows)
        flat = fixed[fixed <= FLAT * fixed.min()].index
        chosen = int(k[model.argmin()])
        found.append(
            dict(zip(_CASE, key, strict=True))
            | {
                "reorder_ms": reorder_ms(rows),
                "interval_best": int(fixed.idxmin()),
                "interval_best_from": int(flat.min()),
                "interval_best_to": int(flat.max()),
                "is_best_at_an_end": bool(fixed.idxmin() in (fixed.index[0], fixed.index[-1])),
                "time_ms_best": fixed.min(),
                "interval_foreseen": chosen,
                "is_foreseen_at_the_end": chosen == k[-1],
                "time_ms_at_foreseen": np.interp(
                    np.log(chosen), np.log(fixed.index), fixed, left=np.nan, right=np.nan
                ),
                "interval_auto": auto["interval"].median(),
                "time_ms_auto": auto["time_ms"].median(),
                "auto_over_best": auto["time_ms"].median() / fixed.min(),
                "longest_over_best": fixed.iloc[-1] / fixed.min(),
            }
        )
    return pd.DataFrame(found)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Time of a step over the interval, with the model and `Decayed`; optima foreseen over those found."""
    best = optima(table)
    save_table(best, out, "summary")
    keys = ["n", "ordering", "search", "precision"]
    for key, rows in table.groupby(keys, sort=False):
        several = [table[name].nunique() > 1 for name in keys]
        name = "_".join(["interval", *(str(value) for value, told in zip(key, several, strict=True) if told)])
        style.save(_over_interval(rows), out, name)
    style.save(_foreseen(best), out, "foreseen")


def _over_interval(rows: pd.DataFrame) -> plt.Figure:
    fractions = sorted(rows["filling_fraction"].unique())
    figure, panels = plt.subplots(1, len(fractions), figsize=(2.9 * len(fractions) + 1.4, 3.3), squeeze=False)
    speeds = sorted(rows["speed"].unique())
    look = style.lines_in_turn([f"{speed:g}" for speed in speeds], "line")
    for panel, phi in zip(panels[0], fractions, strict=True):
        part = rows[rows["filling_fraction"] == phi]
        part = part.assign(line=[f"{speed:g}" for speed in part["speed"]])
        last = phi == fractions[-1]
        fixed = part[part["what"] == "interval"]
        sns.lineplot(fixed, x="interval", y="time_ms", ax=panel, legend=last, **_SPREAD, **look)
        for speed, those in part.groupby("line"):
            colour = look["palette"][speed]
            for _, one in those.groupby("repeat"):
                k, time = foreseen(one)
                panel.plot(k[4:], time[4:], "--", color=colour, linewidth=0.9, label=None)
            auto = those[those["what"] == "auto"][["interval", "time_ms"]].median()
            panel.plot(*auto, "*", color=colour, markersize=11, markeredgecolor="black")
        panel.plot([], [], "k--", linewidth=0.9, label="foreseen")
        panel.plot([], [], "k*", markersize=9, label='Decayed("auto")')
        panel.set(xscale="log", xlabel="steps between reorders", ylabel="time per step (ms)")
        panel.set_title(f"{phi:.0%} filled", fontsize=9)
        if last:
            panel.legend(title="speed (d per step)", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    first = rows.iloc[0]
    figure.suptitle(
        f"{first['n']:,} particles, {first['search']}, {first['ordering']}, {first['precision']}; median and "
        "range",
        fontsize=9,
    )
    return figure


def _foreseen(best: pd.DataFrame) -> plt.Figure:
    figure, panel = plt.subplots(figsize=(4.4, 3.6))
    best = best.assign(line=[f"{n:,}" for n in best["n"]])
    look = style.lines_in_turn(list(dict.fromkeys(best["line"])), "line")
    for name, rows in best.groupby("line", sort=False):
        x = rows["interval_best"]
        spread = np.array([x - rows["interval_best_from"], rows["interval_best_to"] - x])
        panel.errorbar(
            x, rows["interval_foreseen"], xerr=spread, fmt=look["markers"][name], color=look["palette"][name],
            linewidth=0.8, capsize=2, label=f"{name} particles",
        )  # fmt: skip
    ends = np.array([best["interval_best_from"].min(), best["interval_best_to"].max()], float)
    panel.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    panel.fill_between(ends, ends / 2, 2 * ends, color="0.9", zorder=0, label="within a factor of two")
    panel.set(
        xscale="log", yscale="log", xlabel="best interval measured (steps; bar: within 1 %)",
        ylabel="interval foreseen (steps)",
    )  # fmt: skip
    panel.legend(fontsize=7)
    return figure


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
