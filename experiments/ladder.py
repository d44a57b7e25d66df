"""What does each rung of [lift]'s ladder gain: reordering, stacks, lists, atomics, ropes, a grid?

The case is that of [lift], discs that fly at a wing, on its own search (`md.search.Reflexive`) at each step
of its development, and then on later searches of this package. Before a rung is timed, its forces are
compared with those of the grid in the same positions.

All rungs are sampled in turns, round by round, in random order: a step that is not timed, and `steps` timed
steps, so that all rungs take the same steps of the flow in a round (`step` and `time` give the end of a
sample). The first rung is measured twice (`no reorder again`): the difference of the two is noise. Gains are
over the first rung, and over the rung named in `over`. In the last round each sample is followed by as many
steps that are timed phase by phase.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.analysis.baselines import again, is_again, original
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics, style
from experiments.measurement.correctness import check_forces_over_largest
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, whole_steps
from md.backend import Backend
from md.search import Coherent, Lbvh, Reflexive, SearchConfig
from md.simulation import PRECISIONS


class Rung(NamedTuple):
    """A step of the ladder.

    Attributes:
        search: creates the search.
        over: the rung that it is compared with.
    """

    search: Callable[[], SearchConfig]
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
    """Sweep of rungs and sizes. All rungs of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("rung",)

    n: Axis[int] = (2**14, 2**17)
    """Number of discs. Take 131072 to 4194304 on a GPU."""
    rung: tuple[str, ...] = tuple(RUNGS)
    """Rungs of the ladder: any of the defaults. The first is measured twice."""
    precision: str = "float32"
    """float32, float64."""
    steps: int = 10
    """Steps in a sample. Take 32 and few rounds on a GPU, because later the stream meets the wing."""
    warmup: int = 10
    """Steps before the checks. Untimed rounds follow, until nothing is compiled or recorded."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rung": tuple(RUNGS), "precision": PRECISIONS})
        self.check_least({"n": 100, "steps": 1, "warmup": 1})
        self.check_particles(len(self.rung) + 1)


QUICK = {"n": (2**11,), "rung": ("no reorder", "reorder", "ropes", "grid"), "runs": 1, "steps": 5,
         "warmup": 5}  # fmt: skip


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean time of a sample's steps, and its end in the flow."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    first, *others = case.rung
    entries = [_entry(case, place, name) for name in (first, again(first), *others)]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _entry(case: Config, place: Backend, name: str) -> Entry:
    """Create a rung, check it, and return it ready to be sampled."""
    lift, times = _case(case.n, case.seed), []
    options: dict[str, Any] = lift.options | {"backend": place, "precision": case.precision}
    sim = md.Simulation(lift.state, lift.law, search=RUNGS[original(name)].search(), **options)
    sim.run(case.warmup, phases=False)
    columns = {
        "rung": name,
        "force_off": _force_error(case, name, sim, lift),
        **working_set(case.n, 2, case.precision, place),
    }

    def sample() -> Iterator[dict]:
        sim.run(1, phases=False)  # loads the caches again after other cases
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
        search: Any = sim.search
        if isinstance(search.config, Reflexive) and search.config.contacts == "listed":
            found["crowded_share"] = search.crowded / case.n
        return found

    return Entry(columns, sample, at_end)


def _force_error(case: Config, name: str, sim: md.Simulation, lift: md.scenes.LiftCase) -> float:
    """Compute how far forces differ from a grid's in the same positions, over the largest force."""
    options: dict[str, Any] = lift.options | {"backend": sim.backend, "precision": case.precision}
    grid = md.Simulation(sim.state, lift.law, search="linked", **options)
    return check_forces_over_largest(name, sim, grid.forces(), case.precision)


@lru_cache(maxsize=1)
def _case(n: int, seed: int) -> md.scenes.LiftCase:
    return md.scenes.newtonian_lift(n, seed=seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw time per disc and step over sizes, or over rungs for one size, and gains; write the summary."""
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
    """Average over runs each rung of each size: its time, its gains over the first and over its own rung.

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
    """Compute the gain of each rung over the rung of column `over`.

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
    """Draw a dot for each rung, hollow for no difference, in a panel for each size."""
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
            look: dict[str, Any] = {"fmt": "o", "color": "C0", "markersize": 5, "capsize": 2}
            look |= {"markerfacecolor": "white"} if hollow else {}
            panel.errorbar(at["centre"], part["rung"].map(rows), xerr=figures.error_bars(at), **look)
        figures.noise_band(panel, compared[compared["n"] == n], horizontal=True)
        panel.set(xlabel="gain of a step", ylim=(len(rungs) - 0.4, -0.6))
        panel.grid(axis="y", color="0.9")
    panels[0].set_yticks(range(len(rungs)), [f"{name} / {RUNGS[name].over}" for name in rungs])
    figures.gain_axis(panels[0], compared, horizontal=True)
    notes = [statistics.caption(compared)]
    notes += ["grey: noise"] if compared["noise_floor"].notna().any() else []
    notes += ["hollow: no difference"] if same.any() else []
    title = f"each rung / the one that it is compared with\n{'; '.join(notes)}"
    figures.titled(figure, title, out, "gains")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
