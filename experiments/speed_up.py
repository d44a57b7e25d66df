"""How much faster is the thesis's shaken box with its memory in order: force, the rest, and in all?

Chapter 6 of the thesis: spheres between two walls 10 d apart that are shaken in phase, periodic sideways,
reordered every 500 steps, against the same without. The reading of what the thesis does not say: time in
seconds, d = m = 1, no gravity, amplitude 1.8 d at 50 Hz, contacts of 2e-4 s in 50 steps. The box is shaken
until it is steady. Two entries of the `ordering` axis reorder nothing: `shuffled` memory, and `lattice`, that
of the sites from which the spheres set out. A row is the time of the force calculation, of all the
rest, a reorder's share included, or of both in a window of steps; a fused step has one time. Phases are
those of the device alone: it is given 25 steps before it begins the first. Where windows are shorter than
the interval between reorders, as on a CPU, a fresh order is what is timed. Before that the forces are
compared with those of another search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import md
import sfc
from experiments.core import Settings, main, save_table, style
from experiments.measured.checked import check_forces
from experiments.measured.pace import BASELINES, FromStep, phases_of
from md.laws import ShakenWalls, SpringDashpot
from md.simulation import PRECISIONS

THESIS = pd.DataFrame(  # Table 6.1: time without reorder over time with
    {"filling_fraction": [0.05, 0.2, 0.4], "force": [1.47, 2.97, 3.14], "other": [1.02, 1.25, 1.19],
     "total": [1.38, 2.74, 3.01]}
)  # fmt: skip
PARTS = ("force", "other", "total")
STEPS_A_CONTACT = 50
PHASES = "force", "build", "integrate"
_KEYS = ["filling_fraction", "contact_time", "search", "precision", "fused"]
_SPREAD = {"estimator": "median", "errorbar": ("pi", 50)}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of shaken boxes."""

    length: float = 512.0
    """Of the box sideways, in d."""
    height: float = 10.0
    """Between the walls, in d."""
    filling_fraction: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    contact_time: tuple[float, ...] = (2e-4,)
    """Of two spheres, and of a sphere and a wall, in seconds."""
    search: tuple[str, ...] = ("linked",)
    """linked (the thesis's), scattered: searches that leave the memory as it is."""
    precision: tuple[str, ...] = ("float32",)
    """float32, float64."""
    fused: tuple[bool, ...] = (False, True)
    """Whether the step is fused into the force kernel; then there is one time, of the whole step."""
    ordering: tuple[str, ...] = ("shuffled", "lattice", "pancake")
    """Memory orders: the baselines `shuffled` and `lattice`, and any 3D ordering of `sfc`."""
    reorder_every: int = 500
    """Steps between reorders."""
    shakes_before: int = 4
    """Shakes that make the gas steady."""
    samples: int = 10
    """Windows timed."""
    steps: int = 500
    """Steps in a window; on a CPU take some 5."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "ordering": (*BASELINES, *sfc.orderings(3)),
            "search": ("linked", "scattered"),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        self.check_above_zero({"filling_fraction": 0.5, "contact_time": 1e-3})
        least = {"length": 3, "height": 3, "reorder_every": 1, "shakes_before": 0, "samples": 1, "steps": 1}
        self.check_least(least)
        self.check_box()


QUICK = {"length": 48.0, "filling_fraction": (0.05, 0.2), "contact_time": (8e-4,), "shakes_before": 0,
         "samples": 5, "steps": 5}  # fmt: skip


def measure(case: Config) -> Iterator[dict]:
    """A row for each part of the time in each window."""
    sim, other = (_simulation(case, _steady(_where(case)), search) for search in (None, "coherent"))
    sim.run(1)
    other.run(1)
    check_forces(sim, other.forces(), case.precision)
    del other
    sim.run(FromStep.WARM_UP)
    if case.fused:
        sim.run(2 * min(case.steps, case.reorder_every), phases=False)  # records on a device
    reorders = sim.timings.milliseconds.get("reorder", [])[1:]
    begun, windows = sim.step, [_window(sim, case) for _ in range(case.samples)]
    reorders = [ms for window in windows for ms in window.get("reorder", ())] or reorders or [0.0]
    cost, schedule = float(np.median(reorders)), FromStep(case.reorder_every)
    common = {"particles": len(sim), "length_d": case.length, "height_d": case.height, "reorder_ms": cost}
    for sample, window in enumerate(windows):
        if case.fused:
            steps = range(begun + sample * case.steps, begun + (sample + 1) * case.steps)
            held = 0 if case.ordering in BASELINES else sum(map(schedule, steps))
            times = {"total": (sum(window["step"]) - held * cost) / case.steps + cost / case.reorder_every}
        else:
            force, build, integrate = (float(np.mean(window[name])) for name in PHASES)
            rest = build + integrate + cost / case.reorder_every
            times = {"force": force, "other": rest, "total": force + rest}
        for part, time in times.items():
            yield common | {"part": part, "sample": sample, "time_ms": time}


def _window(sim: md.Simulation, case: Config) -> dict[str, list[float]]:
    """Times in ms of the phases of some steps, or of all of them together as `step`."""
    if not case.fused:
        return phases_of(sim, case.steps)
    sim.timings.clear()
    sim.run(case.steps, phases=False)
    return sim.timings.milliseconds | {"step": [ms for _, ms in sim.timings.total]}


def _simulation(case: Config, state: md.State, search: str | None = None) -> md.Simulation:
    reorder = None
    if search is None and case.ordering not in BASELINES:
        reorder = md.Reorder(case.ordering, FromStep(case.reorder_every))
    if case.ordering == "lattice":
        state = state.by_id()
    return md.Simulation(
        state,
        _law(case),
        search=search or case.search,
        dt=case.contact_time / STEPS_A_CONTACT,
        walls=_walls(),
        reorder=reorder,
        backend=case.backend,
        precision=case.precision,
        fused=case.fused and search is None,
    )


def _law(case: Config) -> SpringDashpot:
    return SpringDashpot.from_restitution(0.8, case.contact_time)


def _walls() -> ShakenWalls:
    return ShakenWalls(amplitude=1.8, frequency=50.0, restitution=0.9)


def _where(case: Config) -> Config:
    """The case with all that its steady gas does not depend on as it is by default."""
    axes = ("length", "height", "filling_fraction", "contact_time", "shakes_before", "seed", "backend")
    return Config(**{name: getattr(case, name) for name in axes})


@lru_cache(maxsize=1)
def _steady(where: Config) -> md.State:
    """The gas after some shakes, in shuffled memory; shakes are whole, so the walls begin as they ended."""
    walls, dt = _walls(), where.contact_time / STEPS_A_CONTACT
    state = md.scenes.shaken_box(
        where.filling_fraction,
        (where.length, where.length, where.height),
        temperature=(0.2 * walls.speed) ** 2,
        seed=where.seed,
        backend=where.backend,
    )
    sim = md.Simulation(
        state, _law(where), search="verlet", dt=dt, walls=walls, backend=where.backend, fused=True
    )
    sim.run(where.shakes_before * round(1 / (walls.frequency * dt)), phases=False)
    return md.scenes.in_memory_order(sim.state.by_id(), "shuffled", where.seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Figures 6.1 to 6.3 and Table 6.1: gains over each baseline, times of a step, the numbers as a table."""
    gains = speed_ups(table)
    for key, rows in gains.groupby(_KEYS[1:], sort=False):
        name = "_".join(["", *_told(table, _KEYS[1:], key)])
        if rows["filling_fraction"].nunique() > 1:
            style.save(_gains(rows), out, f"gain{name}")
    for key, rows in table.groupby(_KEYS[1:], sort=False):
        name = "_".join(["", *_told(table, _KEYS[1:], key)])
        style.save(_times(rows), out, f"time{name}")
    for key, rows in gains.groupby(_KEYS[2:], sort=False):
        if rows["contact_time"].nunique() > 1:
            name = "_".join(["contact_time", *_told(table, _KEYS[2:], key)])
            style.save(_contacts(rows), out, name)
    keys = [*_KEYS, "ordering", "baseline", "part"]
    summary = gains.groupby(keys, sort=False)["speed_up"].quantile([0.25, 0.5, 0.75]).unstack()
    summary.columns = ["speed_up_q25", "speed_up_median", "speed_up_q75"]
    thesis = THESIS.melt("filling_fraction", var_name="part", value_name="speed_up_thesis")
    summary = summary.reset_index().merge(thesis, on=["filling_fraction", "part"], how="left")
    times = table.groupby([*_KEYS, "ordering", "part"], sort=False)["time_ms"].quantile([0.25, 0.5, 0.75])
    times = times.unstack()
    times.columns = ["time_ms_q25", "time_ms_median", "time_ms_q75"]
    save_table(times.reset_index(), out, "times")
    save_table(summary, out, "summary")


def speed_ups(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each window and baseline: the baseline's median time over that of the window."""
    parts = []
    for baseline in BASELINES:
        if baseline in set(table["ordering"]):
            keys = [*_KEYS, "part"]
            own = table[table["ordering"] == baseline].groupby(keys)["time_ms"].median().rename("own")
            joined = table[table["ordering"] != baseline].join(own, on=keys)
            parts.append(joined.assign(baseline=baseline, speed_up=joined["own"] / joined["time_ms"]))
    if not parts:
        return table.iloc[:0].assign(baseline="", speed_up=np.nan)
    gains = pd.concat(parts, ignore_index=True)
    return gains[~gains["ordering"].isin(BASELINES)]


def _told(table: pd.DataFrame, names: list[str], key: tuple) -> list[str]:
    """What of a key there is more than one of, as words of a file's name."""
    several = (table[name].nunique() > 1 for name in names)
    words = {True: "fused", False: "phases"}
    return [
        words[value] if isinstance(value, (bool, np.bool_)) else f"{value}".replace(".", "_")
        for value, told in zip(key, several, strict=True)
        if told
    ]


def _gains(rows: pd.DataFrame) -> plt.Figure:
    baselines, parts = list(dict.fromkeys(rows["baseline"])), _parts(rows)
    size = (max(2.7 * len(parts) + 1.7, 4.8), 2.7 * len(baselines) + 0.5)
    figure, panels = plt.subplots(
        len(baselines), len(parts), figsize=size, squeeze=False, sharex=True, sharey="row"
    )
    look = style.lines(list(dict.fromkeys(rows["ordering"])))
    for (a, b), panel in np.ndenumerate(panels):
        part = rows[(rows["baseline"] == baselines[a]) & (rows["part"] == parts[b])]
        last = (a, b) == (0, len(parts) - 1)
        sns.lineplot(part, x="filling_fraction", y="speed_up", ax=panel, legend=last, **_SPREAD, **look)
        panel.plot(THESIS["filling_fraction"], THESIS[parts[b]], "rs", mfc="none", label="thesis, Table 6.1")
        panel.axhline(1, color="0.6", linewidth=0.8, zorder=0)
        panel.set(xlabel="filling fraction", ylabel=f"gain over {baselines[a]} memory", ylim=(0, None))
        panel.set_title(parts[b], fontsize=9)
        if last:
            panel.legend(title="memory order", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(f"{_box(rows)}\nmedian and quartiles over windows", fontsize=9)
    return figure


def _times(rows: pd.DataFrame) -> plt.Figure:
    parts = _parts(rows)
    size = (max(2.7 * len(parts) + 1.7, 4.8), 3.1)
    figure, panels = plt.subplots(1, len(parts), figsize=size, sharey=True, squeeze=False)
    look = style.lines(list(dict.fromkeys(rows["ordering"])))
    for panel, name in zip(panels[0], parts, strict=True):
        part, last = rows[rows["part"] == name], name == parts[-1]
        sns.lineplot(part, x="filling_fraction", y="time_ms", ax=panel, legend=last, **_SPREAD, **look)
        panel.set(xlabel="filling fraction", ylabel="time per step (ms)", yscale="log", title=name)
        if last:
            panel.legend(title="memory order", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(f"{_box(rows)}\nmedian and quartiles over windows", fontsize=9)
    return figure


def _parts(rows: pd.DataFrame) -> list[str]:
    return [part for part in PARTS if part in set(rows["part"])]


def _contacts(rows: pd.DataFrame) -> plt.Figure:
    several = rows.groupby("filling_fraction")["contact_time"].nunique()
    rows = rows[(rows["part"] == "total") & (rows["filling_fraction"] == several.idxmax())]
    figure, panel = plt.subplots(figsize=(4.6, 3.2))
    rows = rows.assign(line=rows["ordering"] + " over " + rows["baseline"])
    look = style.lines_in_turn(list(dict.fromkeys(rows["line"])), "line")
    sns.lineplot(rows, x="contact_time", y="speed_up", ax=panel, **_SPREAD, **look)
    panel.set(xscale="log", xlabel="contact time (s)", ylabel="gain in all", ylim=(0, None))
    panel.legend(title=None, fontsize=7)
    figure.suptitle(f"{_box(rows)}, {rows['filling_fraction'].iloc[0]:.0%} filled", fontsize=9)
    return figure


def _box(rows: pd.DataFrame) -> str:
    side, height = rows["length_d"].iloc[0], rows["height_d"].iloc[0]
    what = f"{rows['search'].iloc[0]}, {rows['precision'].iloc[0]}"
    what += ", fused" if rows["fused"].all() else ""
    return f"shaken box of {side:g} x {side:g} x {height:g} d, {what}"


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
