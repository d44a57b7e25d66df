"""What does each rung of the lift article's ladder gain: reordering, stacks, lists, atomics, ropes, a grid?

The article's own case, discs that fly at a wing, on its own search (`md.search.Reflexive`) as it was at each
step, then on what came after it here. The forces of each are compared with those of the grid in the same
positions before it is timed.

All rungs are sampled in turns, round by round, in random order: a step that is not timed, and `steps` that
are, so that in a round all of them take the same steps of the flow (`step`, `time`: where a sample ends). The
first rung is measured twice (`no reorder again`): what the two differ by is noise. Gains are over the first
rung, and over the one that each rung is compared with (`over`). In the last round each sample is followed by
as many steps that are timed phase by phase.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.analysis.baselines import again, is_again, original
from experiments.core import TimedSettings, figures, main, save_table, statistics, style
from experiments.measurement.correctness import check_forces_over_largest
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, whole_steps
from md.backend import Backend
from md.search import Coherent, Lbvh, Reflexive, Search
from md.simulation import PRECISIONS


class Rung(NamedTuple):
    """A step of the ladder.

    Attributes:
        search: makes it.
        over: the rung that it is compared with.
    """

    search: Callable[[], Search]
    over: str | None = None


RUNGS = {
    "no reorder": Rung(lambda: Reflexive(data="unsorted", stack="local")),
    "reorder": Rung(lambda: Reflexive(data="shadow", stack="local"), "no reorder"),
    "shared stack": Rung(lambda: Reflexive(data="shadow", stack="shared"), "reorder"),
    "contacts in lists": Rung(
        lambda: Reflexive(data="shadow", stack="shared", contacts="listed"), "shared stack"
    ),
    "aggregated atomics": Rung(
        lambda: Reflexive(data="shadow", stack="shared", atomics="aggregated"), "shared stack"
    ),
    "ropes": Rung(lambda: Reflexive(data="shadow", stack="none"), "shared stack"),
    "data moved": Rung(lambda: Reflexive(data="sorted", stack="none"), "ropes"),
    "data moved, in lists": Rung(
        lambda: Reflexive(data="sorted", stack="none", contacts="listed"), "data moved"
    ),
    "each pair twice": Rung(
        lambda: Reflexive(data="sorted", stack="none", met="twice", atomics="none"), "data moved"
    ),
    "kept 16 steps": Rung(lambda: Reflexive(data="sorted", stack="none", rebuild_every=16), "data moved"),
    "kept 64 steps, Hilbert": Rung(
        lambda: Reflexive("hilbert", data="sorted", stack="none", rebuild_every=64), "kept 16 steps"
    ),
    "twice, kept 16 steps": Rung(Lbvh, "each pair twice"),
    "twice, kept 64, Hilbert": Rung(lambda: Lbvh("hilbert", rebuild_every=64), "twice, kept 16 steps"),
    "grid": Rung(Coherent, "kept 64 steps, Hilbert"),
}
_CASE = ["n", "rung"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of rungs and sizes. The rungs of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("rung",)

    n: tuple[int, ...] = (2**14, 2**17)
    """Discs; on a GPU take 131072 to 4194304."""
    rung: tuple[str, ...] = tuple(RUNGS)
    """Steps of the ladder: any of the default; the first is measured twice."""
    precision: str = "float32"
    """float32, float64."""
    steps: int = 10
    """Steps in a sample; on a GPU take 32, and few rounds, for later the stream meets the wing."""
    warmup: int = 10
    """Steps before the checks. Then come untimed rounds, until nothing is compiled or recorded any more."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rung": tuple(RUNGS), "precision": PRECISIONS})
        self.check_least({"n": 100, "steps": 1, "warmup": 1})
        self.check_particles(len(self.rung) + 1)


QUICK = {"n": (2**11,), "rung": ("no reorder", "reorder", "ropes", "grid"), "runs": 1, "steps": 5,
         "warmup": 5}  # fmt: skip


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """The rounds from one on: the mean time of a sample's steps, and when in the flow it ended."""
    place = md.backend.get(case.backend)  # one for all, so that every record that is made is seen
    first, *others = case.rung
    entries = [_entry(case, place, name) for name in (first, again(first), *others)]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _entry(case: Config, place: Backend, name: str) -> Entry:
    """A rung, checked and ready to be sampled."""
    lift, times = _case(case.n, case.seed), []
    options = lift.options | {"backend": place, "precision": case.precision}
    sim = md.Simulation(lift.state, lift.law, search=RUNGS[original(name)].search(), **options)
    sim.run(case.warmup, phases=False)
    columns = {
        "rung": name,
        "force_off": _force_error(case, name, sim, lift),
        **working_set(case.n, 2, case.precision, place),
    }

    def sample() -> Iterator[dict]:
        sim.run(1, phases=False)  # brings back to the caches what others drove out
        times.append(whole_steps(sim, case.steps))
        yield {
            "time_ms": times[-1] / case.steps,
            "sample_ms": times[-1],
            "step": sim.step,
            "time": sim.time,
        }

    def at_end() -> dict:
        phases = {phase: sum(of) for phase, of in phases_of(sim, case.steps).items()}
        whole = float(np.median(times[-case.rounds :]))
        found = {f"{phase}_ms": ms / case.steps for phase, ms in phases.items()}
        found["phases_over_step"] = sum(phases.values()) / whole
        if isinstance(sim.search, Reflexive) and sim.search.contacts == "listed":
            found["crowded_share"] = sim.search.crowded / case.n
        return found

    return Entry(columns, sample, at_end)


def _force_error(case: Config, name: str, sim: md.Simulation, lift: md.scenes.LiftCase) -> float:
    """Compute how far forces differ from a grid's in the same positions, over the largest force."""
    options = lift.options | {"backend": sim.backend, "precision": case.precision}
    grid = md.Simulation(sim.state, lift.law, search="linked", **options)
    return check_forces_over_largest(name, sim, grid.forces(), case.precision)


@lru_cache(maxsize=1)
def _case(n: int, seed: int) -> md.scenes.LiftCase:
    return md.scenes.newtonian_lift(n, seed=seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Time per disc and step over the size for each rung, or rung by rung of one size; gains; a table."""
    table = statistics.with_rounds(table, _CASE)
    found = summary(table)
    if table["n"].nunique() == 1:
        _draw_rungs(found, out)
    else:
        _draw_sizes(found, out)
    compared = gains_over_compared(table)
    if not compared.empty:
        _draw_gains(compared, out)
    save_table(found, out, "summary")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each rung of each size: its time, its gains over the first and over its own rung; over runs.

    Args:
        table: with columns `run` and `round`.
    """
    found = statistics.over_runs(table, _CASE, "time_ms")
    if "crowded_share" in table:  # of particles with more contacts than lists have room for
        crowded = table.groupby(_CASE, sort=False)["crowded_share"].median().reset_index()
        found = found.merge(crowded, on=_CASE, how="left")
    first = table["rung"].iloc[0]
    gains = statistics.gains(table, ["n"], "rung", first)
    if not gains.empty:
        over_first = statistics.named(gains, first.replace(" ", "_"))
        found = found.merge(over_first, on=_CASE, how="left")
    compared = gains_over_compared(table)
    if not compared.empty:
        found = found.merge(compared.drop(columns=["runs", "rounds"]), on=_CASE, how="left")
    return found[~found["rung"].map(is_again)].reset_index(drop=True)


def gains_over_compared(table: pd.DataFrame) -> pd.DataFrame:
    """The gain of each rung over the one that it is compared with, which column `over` names.

    Args:
        table: with columns `run` and `round`.

    Returns:
        Rows of `statistics.gains`, those of a size in the order of the ladder.
    """
    names, found = set(table["rung"]), []
    for over in RUNGS:
        compared = [name for name in RUNGS if RUNGS[name].over == over and name in names]
        if compared and over in names:
            gains = statistics.gains(table, ["n"], "rung", over)
            found.append(gains[gains["rung"].isin(compared)])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _draw_rungs(found: pd.DataFrame, out: Path) -> None:
    ends = statistics.bounds(found, "time_ms")
    figure, panel = plt.subplots(figsize=(6.8, 1.2 + 0.23 * len(found)))
    reach = figures.error_bars(ends)
    panel.errorbar(ends["centre"], found["rung"], xerr=reach, fmt="o", markersize=5, capsize=2)
    panel.set(xlabel="time of a step (ms)", xlim=(0, None), ylim=(len(found) - 0.4, -0.6))
    panel.grid(axis="y", color="0.9")
    title = f"{found['n'].iloc[0]:,} discs before a wing; {statistics.caption(found)}"
    figures.titled(figure, title, out, "ladder")


def _draw_sizes(found: pd.DataFrame, out: Path) -> None:
    figure, panel = plt.subplots(figsize=(6.8, 3.8))
    look = style.lines_in_turn(list(found["rung"].unique()), "rung")
    figures.lines(panel, found, "n", "time_ms", look, scale=1e6 / found["n"], log=True)
    figures.size_axis(panel, "discs")
    figures.whole_centres_on_log(panel, found, "time_ms", 1e6 / found["n"])
    panel.set_ylabel("time per disc and step (ns)")
    figures.legend_outside(panel, "rung")
    figures.titled(figure, f"discs before a wing; {statistics.caption(found)}", out, "ladder")


def _draw_gains(compared: pd.DataFrame, out: Path) -> None:
    """A dot for each rung, hollow where it is no difference, a panel for each size."""
    rungs = [name for name in RUNGS if name in set(compared["rung"])]
    rows = {name: k for k, name in enumerate(rungs)}
    sizes = sorted(compared["n"].unique())
    titles, height = [f"{n:,} discs" for n in sizes], 1.6 + 0.25 * len(rungs)
    figure, panels = figures.panels_in_a_row(titles, 1.9, height, 3.2, sharex=True, sharey=True)
    ends = statistics.bounds(compared, "gain")
    same = compared.get("difference", pd.Series("", index=compared.index)) == statistics.NO_DIFFERENCE
    for panel, n in zip(panels, sizes, strict=True):
        for hollow in (False, True):
            part = compared[(compared["n"] == n) & (same == hollow)]
            at = ends.loc[part.index]
            look = {"fmt": "o", "color": "C0", "markersize": 5, "capsize": 2}
            look |= {"markerfacecolor": "white"} if hollow else {}
            panel.errorbar(at["centre"], part["rung"].map(rows), xerr=figures.error_bars(at), **look)
        figures.noise_band(panel, compared[compared["n"] == n], horizontal=True)
        panel.set(xlabel="gain of a step", ylim=(len(rungs) - 0.4, -0.6))
        panel.grid(axis="y", color="0.9")
    panels[0].set_yticks(range(len(rungs)), [f"{name} / {RUNGS[name].over}" for name in rungs])
    figures.gain_axis(panels[0], compared, horizontal=True)
    told = [statistics.caption(compared)]
    told += ["grey: noise"] if compared["noise_floor"].notna().any() else []
    told += ["hollow: no difference"] if same.any() else []
    title = f"each rung / the one that it is compared with\n{'; '.join(told)}"
    figures.titled(figure, title, out, "gains")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
