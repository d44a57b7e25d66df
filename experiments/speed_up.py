"""How much faster is the shaken box of [thesis] with its memory in order: force, the rest, and in all?

This is chapter 6 of [thesis]: spheres between two walls 10 d apart that are shaken in phase, periodic
sideways, reordered every 500 steps, compared with the same box without reorders. What [thesis] does not state
is chosen as follows: time in seconds, d = m = 1, no gravity, amplitude 1.8 d at 50 Hz, contacts of 2e-4 s in
50 steps. The box is shaken before it is timed. `temperature`, m <v^2> / 3 in d^2 / s^2 after each sample,
shows whether it was steady: in a steady box it is the same shake after shake. `temperature_start` and
`temperature_end` are those at the ends of the timing.

Two entries of the `ordering` axis reorder nothing: `shuffled` memory, and `aged` memory, which was in the
order of the lattice sites of the initial state `age_steps` steps ago. All orderings of a case are sampled in
turns, round by round, in random order. The first of them is sampled twice (`shuffled again`): the difference
of the two is noise. A sample starts with a reorder, if the ordering has one, and a step that is not timed.
Then steps are timed, with a reorder after every `reorder_every`. The largest age of an order is `age_steps`:
one step more than `reorder_every`, because of the step that is not timed. If a sample has fewer steps, as on
a CPU, the order is fresh and not reordered at that interval; legends and the column `memory` of summary.csv
name which it is. `reorder_ms` is the mean cost of a reorder in a sample. Several values of `reorder_every`
are sampled in the same rounds, each in a box of its own, and the figure `interval` shows the time of a step
over them. The time changes in the course of half a shake, so that the samples should take whole halves, and
every interval should divide them: with the default contacts `--steps 5000` and intervals from 50 to 5000. A
sample is launched interval by interval; on a GPU the launches count below some 50 steps.

A gain is mean time over mean time of a run, for each sample is another phase. A row is the time of a step: of
its part `force`, of `other` (the rest, with a reorder's share: its cost over `reorder_every`), or `total`.
The parts of `other` have rows too: `build`, which sorts the particles into cells, `integrate`, and `reorder`.
A fused step has only `total`. Phases hold only the device's work: the host launches 25 steps before the
device starts the first. `phases_over_step` compares them with whole steps. Before a case is timed, its forces
after one step are compared with those of another search.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics, style
from experiments.core.settings import UsageError
from experiments.core.terminal import FITS_CACHE
from experiments.drawing.charts import draw_chart
from experiments.measurement.correctness import check_forces
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, whole_steps
from experiments.results.answers import Answer, compared, headline, percent
from experiments.results.baselines import AGED, SHUFFLED, again, is_again, memory_of, original, with_ages
from experiments.results.charts import BARS, ORDERS, Chart, Points, Scale, Summary
from experiments.results.published_gains import TABLE_6_1 as THESIS
from md.boundaries import ShakenWalls
from md.laws import SpringDashpot
from md.simulation import PRECISIONS

FIGURE_6_1 = 0.2  # filling fraction
BASELINES = (SHUFFLED, AGED)
TOTAL = "total"  # the part that is all of a step
PARTS = ("force", "other", TOTAL)
WALLS = ShakenWalls(amplitude=1.8, frequency=50.0, restitution=0.9)
STEPS_A_CONTACT = 50
WARM_UP = 2  # steps after the first, before the first round
_MOST_CURVES = 3  # drawn over filling fractions; more of them tangle
_THESIS_MARK: dict[str, Any] = {
    "color": "#D00000", "marker": "s", "linestyle": "", "markerfacecolor": "none",
    "label": "[thesis], not fused",
}  # fmt: skip
_KEYS = ["filling_fraction", "contact_time", "search", "precision", "fused"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of shaken boxes."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("ordering", "reorder_every")

    length: float = 512.0
    """Side of the box along the walls, in d."""
    height: float = 10.0
    """Distance of the walls, in d."""
    filling_fraction: Axis[float] = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    contact_time: Axis[float] = (2e-4,)
    """Contact time of two spheres, and of a sphere and a wall, in seconds."""
    search: Axis[str] = ("linked",)
    """Neighbour searches, of those that do not move the particles; linked is that of [thesis]."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    fused: Axis[bool] = (False, True)
    """Whether the step is fused into the force kernel; only the whole step then has a time."""
    ordering: tuple[str, ...] = (SHUFFLED, AGED, "pancake")
    """Memory orders: the baselines `shuffled` and `aged`, and 3D orderings of `sfc`. A box for each, for an
    ordering one at each interval, and a second one for the first, are in memory at once."""
    reorder_every: tuple[int, ...] = (500,)
    """Numbers of steps between two reorders."""
    shakes_before: int = 4
    """Number of shakes before the timing, until the gas is steady."""
    rounds: int = 10
    """Number of rounds of a run. In each, every ordering is sampled once, in random order. Ten rounds of 500
    steps are one shake."""
    steps: int = 500
    """Number of steps in a sample; if not fused, once with phases and once as a whole. Take about 5 on a
    CPU."""

    def __post_init__(self):
        if isinstance(self.reorder_every, int):  # as older runs recorded it
            object.__setattr__(self, "reorder_every", (self.reorder_every,))
        super().__post_init__()
        if AGED in sfc.orderings():
            raise UsageError(
                f"a curve named {AGED!r}: the baseline of that name would be measured "
                f"instead; allowed: any name but {', '.join(BASELINES)}; choose another name in its file"
            )
        known = {
            "ordering": (*BASELINES, *sfc.orderings(3)),
            "search": ("linked", "scattered"),
            "precision": PRECISIONS,
        }
        self.check_known(known)
        self.check_above_zero({"filling_fraction": 0.5, "contact_time": 1e-3})
        least = {"length": 3, "height": 3, "reorder_every": 1, "shakes_before": 0, "steps": 1}
        self.check_least(least)
        self.check_box(len(self.ordering) * len(self.reorder_every) + 1)


QUICK = {"length": 48.0, "filling_fraction": (0.05, 0.2), "contact_time": (8e-4,), "shakes_before": 0,
         "rounds": 5, "runs": 1, "steps": 5}  # fmt: skip
MINUTES = 2000  # CPU time of 7 of 12 cases of one run in a smaller box, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each part of the time of a step."""
    state = _steady(_gas_settings(case))
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


def _entry(case: Config, state: md.State, name: str, every: int, right: np.ndarray) -> Entry:
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
    common = {
        "ordering": name,
        "particles": len(sim),
        "length_d": case.length,
        "height_d": case.height,
        "reorder_every": every,
        "temperature_start": md.observe.temperature(sim.state),
        **working_set(len(sim), 3, case.precision, sim.backend),
    }
    return Entry(
        common,
        partial(_sample, case, sim, ordering, every),
        lambda: {"temperature_end": md.observe.temperature(sim.state)},
    )


def _sample(case: Config, sim: md.Simulation, ordering: str, every: int) -> Iterator[dict]:
    """Time steps as a whole and, unless they are fused, phase by phase; yield a row for each part."""
    phases, costs = ([], []) if case.fused else _timed(case, sim, ordering, every, phases_of)
    whole, more = _timed(case, sim, ordering, every, whole_steps)
    cost, lasted = float(np.mean(costs + more or [0.0])), sum(whole)
    if case.fused:
        sums = {"total": lasted}
    else:
        sums = {name: sum(sum(one[name]) for one in phases) for name in ("force", "build", "integrate")}
        sums |= {"other": sums["build"] + sums["integrate"], "total": sum(sums.values())}
        sums |= {} if ordering in BASELINES else {"reorder": 0.0}
    common = {"reorder_ms": cost, "age_steps": _age(case, sim, ordering, every)}
    common |= {"temperature": md.observe.look(sim).temperature}
    if not case.fused:
        common["phases_over_step"] = sums["total"] / lasted
    for part, ms in sums.items():
        share = cost / every if part in ("other", "total", "reorder") else 0.0
        yield common | {"part": part, "time_ms": ms / case.steps + share, "sample_ms": ms}


def _timed(
    case: Config, sim: md.Simulation, ordering: str, every: int, take: Callable
) -> tuple[list, list[float]]:
    """Time the steps between reorders by `take`, and each reorder in ms."""
    found, costs = [], []
    for taken in range(0, case.steps, every):
        if ordering not in BASELINES:
            sim.timings.clear()
            sim.reorder()
            costs += sim.timings.milliseconds["reorder"]
        if not taken:
            sim.run(1, phases=False)  # not timed: loads the caches again after other cases
        found.append(take(sim, min(every, case.steps - taken)))
    return found, costs


def _age(case: Config, sim: md.Simulation, ordering: str, every: int) -> int | None:
    """Return the largest age of the order in a sample, in steps; None without an order."""
    if ordering == AGED:
        return sim.step + case.shakes_before * _steps_a_shake(case)
    return None if ordering == SHUFFLED else min(case.steps, every) + 1


def _simulation(case: Config, state: md.State, ordering: str, search: str | None = None) -> md.Simulation:
    return md.Simulation(
        state.by_id() if ordering == AGED else state,
        _law(case),
        search=search or case.search,
        dt=case.contact_time / STEPS_A_CONTACT,
        walls=WALLS,
        reorder=None if ordering in BASELINES else md.Reorder(ordering, md.Never()),
        backend=case.backend,
        precision=case.precision,
        fused=case.fused and search is None,
    )


def _law(case: Config) -> SpringDashpot:
    return SpringDashpot.from_restitution(0.8, case.contact_time)


def _steps_a_shake(case: Config) -> int:
    return round(STEPS_A_CONTACT / (WALLS.frequency * case.contact_time))


def _gas_settings(case: Config) -> Config:
    """Reset all settings of a case on which its steady gas does not depend."""
    axes = ("length", "height", "filling_fraction", "contact_time", "shakes_before", "seed", "backend")
    return Config(**{name: getattr(case, name) for name in axes})


@lru_cache(maxsize=1)
def _steady(settings: Config) -> md.State:
    """Create the gas after some whole shakes, in shuffled memory; the walls then start in the same phase."""
    dt = settings.contact_time / STEPS_A_CONTACT
    state = md.scenes.shaken_box(
        settings.filling_fraction,
        (settings.length, settings.length, settings.height),
        temperature=(0.2 * WALLS.speed) ** 2,
        seed=settings.seed,
        backend=settings.backend,
    )
    sim = md.Simulation(
        state, _law(settings), search="verlet", dt=dt, walls=WALLS, backend=settings.backend, fused=True
    )
    sim.run(settings.shakes_before * _steps_a_shake(settings), phases=False)
    return md.scenes.in_memory_order(sim.state.by_id(), "shuffled", settings.seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw figures 6.1 to 6.3 and write Table 6.1 of [thesis]: gains over each baseline, times of a step."""
    table = with_baselines_at_each_interval(statistics.with_rounds(table, [*_KEYS, "ordering", "part"]))
    keys = _keys(table)
    table = statistics.windows_averaged(table, [*keys, "part", "ordering"])
    alone = table.groupby(keys[1:]).ngroups == 1
    for key, rows in table.groupby(keys[1:], sort=False):
        if rows["filling_fraction"].nunique() > 1 and _baselines(rows):
            style.save(_gains(rows), out, _file_name("gain", table, keys[1:], key), rows)
        if rows["filling_fraction"].nunique() > 1 or alone:
            style.save(_times(rows), out, _file_name("time", table, keys[1:], key), rows)
    for key, rows in table.groupby(keys[2:], sort=False):
        if rows["contact_time"].nunique() > 1 and _baselines(rows):
            _contacts(rows, out, _file_name("contact_time", table, keys[2:], key))
    in_phases = table[~table["fused"]]
    for key, rows in in_phases.groupby(keys[1:], sort=False):
        _phases(rows, out, _file_name("phases", in_phases, keys[1:], key))
    if len(keys) > len(_KEYS):
        for key, rows in table.groupby(_KEYS[1:], sort=False):
            style.save(_intervals(rows), out, _file_name("interval", table, _KEYS[1:], key), rows)
    save_table(summary(table), out, "summary")


def with_baselines_at_each_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Repeat the rows of the baselines for each interval of the other orders, which they do not depend on.

    Args:
        table: with `ordering`, and with `reorder_every` if it is not of an older run.
    """
    if "reorder_every" not in table:
        return table
    is_baseline = table["ordering"].map(original).isin(BASELINES)
    reordered = table[~is_baseline]
    intervals = sorted(reordered["reorder_every"].unique())
    if len(intervals) < 2:
        return table
    copies = [table[is_baseline].assign(reorder_every=every) for every in intervals]
    return pd.concat([*copies, reordered], ignore_index=True)


def _keys(table: pd.DataFrame) -> list[str]:
    """Return the columns that identify a box, and the interval if there are several."""
    several = "reorder_every" in table and table["reorder_every"].nunique() > 1
    return [*_KEYS, "reorder_every"] if several else _KEYS


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each part of each case: its time, its gain over each baseline, that of [thesis].

    Args:
        table: of `statistics.windows_averaged`.
    """
    by = (*_keys(table), "part")
    found = Summary(by, "ordering", tuple(_baselines(table))).table(table)
    thesis = THESIS.melt("filling_fraction", var_name="part", value_name="gain_thesis")
    found = with_ages(found.merge(thesis, how="left"), table, [*by, "ordering"])
    return found.assign(gain_thesis=found["gain_thesis"].mask(found["ordering"].isin(BASELINES)))


def _baselines(rows: pd.DataFrame) -> list[str]:
    """Return the baselines measured, if another order was measured too."""
    found = set(rows["ordering"].map(original))
    return [name for name in BASELINES if name in found] if found - set(BASELINES) else []


def _file_name(stem: str, table: pd.DataFrame, names: list[str], key: tuple) -> str:
    """Name a figure by the values of its key that vary in the table."""
    words = {True: "fused", False: "phases"}
    shown = [words[bool(value)] if isinstance(value, (bool, np.bool_)) else value for value in key]
    return figures.file_name(stem, table, names, shown)


PHASES = Chart(
    "phases", "At {filling_fraction} filled, a step takes {value} ms ({best}), {of_worst} ms ({worst})",
    BARS, Points("time_ms"), ORDERS, Scale("time per step (ms)"), "part", "phase",
    order=("force", "build", "integrate", "reorder", "other"), whole=TOTAL,
)  # fmt: skip


def _phases(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw figure 6.1 of [thesis]: the phases of a step that is not fused, and their shares."""
    phi = min(rows["filling_fraction"].unique(), key=lambda share: abs(share - FIGURE_6_1))
    rows = rows[rows["filling_fraction"] == phi]
    if (rows["part"] == "build").any():
        rows = rows[rows["part"] != "other"]
    draw_chart(replace(PHASES, name=name, words=_names(rows), note=f"{_box(rows)}: phases"), rows, out)


def _names(rows: pd.DataFrame) -> dict[str, str]:
    """Return ordering -> its name in legends, with its age if the table has ages."""
    found, orderings = {}, {original(name) for name in rows["ordering"]}
    for ordering in (*filter(orderings.__contains__, BASELINES), *sorted(orderings - set(BASELINES))):
        own, memory = rows[rows["ordering"] == ordering], ""
        if "age_steps" in rows:
            memory = memory_of(ordering, own["age_steps"].max(), own["reorder_every"].max())
        found[ordering] = memory or ordering
        if memory and ordering not in BASELINES:
            found[ordering] = f"{ordering}, {memory}"
    return found


def _look(names: dict[str, str]) -> dict:
    """Return the look of the lines by their names in legends."""
    look = style.lines(list(names))
    keys = ("palette", "markers", "dashes")
    both = {key: {label: look[key][name] for name, label in names.items()} for key in keys}
    return look | both | {"hue_order": list(names.values())}


def _gains(rows: pd.DataFrame) -> plt.Figure:
    """Draw gains over each baseline: over filling fractions, or by order if there are many orders."""
    baselines, parts, names = _baselines(rows), _parts(rows), _names(rows)
    curves = {name: label for name, label in names.items() if name not in BASELINES}
    gains = {
        name: statistics.gains(rows, ["filling_fraction", "part"], "ordering", name) for name in baselines
    }
    caption = statistics.caption(gains[baselines[0]])
    if gains[baselines[0]]["noise_floor"].notna().any():
        caption += "; grey: noise (the same case measured twice)"
    if len(curves) > _MOST_CURVES:
        shown = {f"gain of a step over\n{names[name]}": found for name, found in gains.items()}
        figure = _by_order(shown, "gain", list(curves))
    else:
        figure = _gains_over_filling(gains, curves, parts, names)
    figure.suptitle(f"{_box(rows)}\n{caption}")
    return figure


def _gains_over_filling(
    gains: dict[str, pd.DataFrame], curves: dict[str, str], parts: list[str], names: dict[str, str]
) -> plt.Figure:
    """Draw a panel for each baseline and part; the panels of a single part stand side by side."""
    shape = (len(gains), len(parts)) if len(parts) > 1 else (1, len(gains))
    size = (2.5 * shape[1] + 2.0, 2.3 * shape[0] + 0.6)
    figure, panels = plt.subplots(*shape, figsize=size, squeeze=False, sharex=True, sharey=True)
    every = pd.concat([found[found["ordering"].isin(curves)] for found in gains.values()])
    places = [(baseline, part) for baseline in gains for part in parts]
    for panel, (baseline, part) in zip(panels.flat, places, strict=True):
        found = gains[baseline][gains[baseline]["part"] == part]
        found = found[found["ordering"].isin(curves)]
        found = found.assign(ordering=found["ordering"].map(names))
        figures.lines(panel, found, "filling_fraction", "gain", _look(curves))
        figures.noise_band(panel, found)
        if len(curves) == 1 and part != "other":
            figures.values_at_points(panel, found, "filling_fraction", "gain")
        panel.plot(THESIS["filling_fraction"], THESIS[part], **_THESIS_MARK)
        several, what = len(parts) > 1, "whole step" if part == TOTAL else part
        label = f"gain over\n{names[baseline]}" if several else "gain of a step"
        panel.set(xlabel="filling fraction", ylabel=label)
        panel.set_title(what if several else f"over {names[baseline]} memory")
    published = THESIS[parts].to_numpy()
    figures.gain_axis(panels[0][0], every, others=[published.min(), published.max()])
    for line in panels[:-1]:
        for panel in line:
            panel.set_xlabel("")
    if len(parts) > 1:
        for panel in panels[:, 1:].flat:
            panel.set_ylabel("")
    figures.name_lines(panels[0][-1], None)
    return figure


def _by_order(shown: dict[str, pd.DataFrame], value: str, names: list[str]) -> plt.Figure:
    """Draw whole steps: a row of dots for each order, with a panel for each filling fraction.

    Args:
        shown: label of the horizontal axis -> rows of gains or times, for a line of panels.
        value: the averaged column.
        names: of the orders.
    """
    fractions = sorted(next(iter(shown.values()))["filling_fraction"].unique())
    size = (2.5 * len(fractions) + 1.0, (0.22 * len(names) + 0.6) * len(shown) + 0.6)
    figure, panels = plt.subplots(len(shown), len(fractions), figsize=size, squeeze=False, sharey=True)
    for line, (label, every) in zip(panels, shown.items(), strict=True):
        every = every[(every["part"] == TOTAL) & every["ordering"].isin(names)]
        for panel, phi in zip(line, fractions, strict=True):
            found = every[every["filling_fraction"] == phi]
            figures.dots_by_order(panel, found, names, value)
            figures.whole_centres_on_log(panel, found, value, horizontal=True)
            panel.set_xlabel(label, fontsize=8)
    for panel, phi in zip(panels[0], fractions, strict=True):
        panel.set_title(f"{phi:.0%} filled")
    return figure


def _times(rows: pd.DataFrame) -> plt.Figure:
    """Draw times over filling fractions, or by order if there are many orders."""
    parts, names = _parts(rows), _names(rows)
    found = statistics.over_runs(rows, ["filling_fraction", "ordering", "part"], "time_ms")
    title = f"{_box(rows)}\n{statistics.caption(found)}"
    if len(set(names) - set(BASELINES)) > _MOST_CURVES:
        figure = _by_order({"time per step (ms)": found}, "time_ms", list(names))
        figure.suptitle(title)
        return figure
    titles = ["whole step" if part == TOTAL else part for part in parts]
    figure, panels = figures.panels_in_a_row(titles, 2.6, 2.8, 2.4, sharey=True)
    found = found[found["part"].isin(parts)].assign(ordering=found["ordering"].map(names))
    for panel, part in zip(panels, parts, strict=True):
        figures.lines(panel, found[found["part"] == part], "filling_fraction", "time_ms", _look(names))
        panel.set(xlabel="filling fraction")
    panels[0].set_ylabel("time per step (ms)")
    figures.whole_centres_on_log(panels[0], found, "time_ms")
    figures.name_lines(panels[-1], "memory")
    figure.suptitle(title)
    return figure


def _parts(rows: pd.DataFrame) -> list[str]:
    return [part for part in PARTS if part in set(rows["part"])]


def _contacts(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw a row of dots for each contact time: the gain of a step over each baseline."""
    phi = rows.groupby("filling_fraction")["contact_time"].nunique().idxmax()
    rows = rows[(rows["part"] == TOTAL) & (rows["filling_fraction"] == phi)]
    parts = [statistics.gains(rows, ["contact_time"], "ordering", name) for name in _baselines(rows)]
    found = pd.concat(parts, ignore_index=True)
    found = found[~found["ordering"].isin(BASELINES)]
    labels = _names(rows)
    found["state"] = found["ordering"].map(labels) + " over " + found["over"].map(labels)
    found["name"] = [f"{1e3 * time:g} ms" for time in found["contact_time"]]
    names = list(dict.fromkeys(found.sort_values("contact_time")["name"]))
    figure, panel = plt.subplots(figsize=(6.8, 1.1 + 0.35 * len(names)))
    look = style.lines_in_turn(list(dict.fromkeys(found["state"])), "state")
    figures.dots_by_name(panel, found, names, look, "gain")
    figures.plain_log_axis(panel, found, "gain", 1.0, "gain of a step")
    panel.set_ylabel("contact time")
    figures.legend_outside(panel, None)
    title = f"{_box(rows)}, {phi:.0%} filled\n{statistics.caption(found)}"
    figures.titled(figure, title, out, name, rows)


def _intervals(rows: pd.DataFrame) -> plt.Figure:
    """Draw the time of a step over the steps between reorders, and that of the baselines as lines."""
    rows = rows[(rows["part"] == "total") & ~rows["ordering"].map(is_again)]
    fractions = sorted(rows["filling_fraction"].unique())
    titles = [f"{phi:.0%} filled" for phi in fractions]
    figure, panels = figures.panels_in_a_row(titles, 2.9, 3.3, 2.2)
    own = rows[~rows["ordering"].isin(BASELINES)]
    keys = ["filling_fraction", "ordering", "reorder_every"]
    found = statistics.over_runs(own, keys, "time_ms")
    look = style.lines(list(dict.fromkeys(own["ordering"])))
    for panel, phi in zip(panels, fractions, strict=True):
        figures.lines(
            panel, found[found["filling_fraction"] == phi], "reorder_every", "time_ms", look, log=True
        )
        fixed = rows[rows["ordering"].isin(BASELINES) & (rows["filling_fraction"] == phi)]
        fixed = fixed.drop_duplicates(["run", "round", "ordering"])  # one of the copies for each interval
        over = statistics.over_runs(fixed, ["ordering"], "time_ms")
        times = statistics.bounds(over, "time_ms")["centre"]
        for name, ms in zip(over["ordering"], times, strict=True):
            line: dict[str, Any] = {"color": style.colour(name), "linestyle": (0, style.look(name).dash)}
            ends = [found["reorder_every"].min(), found["reorder_every"].max()]
            panel.plot(ends, [ms, ms], linewidth=1, label=f"{name}, never reordered", **line)
        panel.set(xscale="log", xlabel="steps between reorders", ylabel="time per step (ms)", ylim=(0, None))
        figures.plain_log_ticks(panel, horizontal=True)
    figures.name_lines(panels[-1], None)
    figure.suptitle(f"{_box(rows)}\n{statistics.caption(found)}")
    return figure


def _box(rows: pd.DataFrame) -> str:
    side, height = rows["length_d"].iloc[0], rows["height_d"].iloc[0]
    what = f"{rows['search'].iloc[0]}, {rows['precision'].iloc[0]}"
    what += ", fused" if rows["fused"].all() else ""
    return f"shaken box of {side:g} x {side:g} x {height:g} d, {what}"


def answer(table: pd.DataFrame) -> Answer:
    """Compare the pancake, or the fastest order, with shuffled and aged memory, and with [thesis]."""
    rows = statistics.with_rounds(table, [*_KEYS, "ordering", "part"])
    rows = statistics.windows_averaged(rows, [*_keys(rows), "ordering", "part"])
    rows = headline(rows[rows["part"] == "total"], "contact_time", "search", "precision", "fused")
    if "reorder_every" in rows:  # of several intervals the one that was given first
        is_baseline = rows["ordering"].map(original).isin(BASELINES)
        rows = rows[is_baseline | (rows["reorder_every"] == rows.loc[~is_baseline, "reorder_every"].min())]
    in_thesis = rows["filling_fraction"].isin(THESIS["filling_fraction"])
    rows = rows[in_thesis] if in_thesis.any() else rows
    spheres, fused = f"{rows['particles'].iloc[0]:,.0f} spheres", "" if rows["fused"].iloc[0] else "not "
    where = f"At {percent(rows['filling_fraction'].iloc[0])} filled ({spheres}, {fused}fused)"
    found = compared(rows, "ordering", BASELINES, "filling_fraction", where, percent, "pancake", " memory")
    gains = {percent(row["filling_fraction"]): row["total"] for row in THESIS.to_dict("records")}
    if not set(gains) & set(found.table):
        return found
    thesis = pd.DataFrame(gains, ["[thesis], over no reorders"], found.table.columns)
    return replace(found, table=pd.concat([found.table.iloc[:2], thesis]))


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
