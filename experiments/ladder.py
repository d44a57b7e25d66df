"""What does each rung of the lift article's ladder gain: reordering, stacks, lists, atomics, ropes, a grid?

The article's own case, discs that fly at a wing, on its own search (`md.search.Reflexive`) as it was at each
step, then on what came after it here. The forces of each are compared with those of the grid in the same
positions before it is timed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import md
from experiments.core import Settings, main, save_table, style
from md.search import Coherent, Lbvh, Reflexive, Search
from md.simulation import PRECISIONS

OFF = {"float32": 2e-4, "float64": 1e-10}  # that forces may be off the grid's, of the largest


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
_GROUP = ["n", "rung"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of rungs and sizes."""

    n: tuple[int, ...] = (2**14, 2**17)
    """Discs; on a GPU take 131072 to 4194304."""
    rung: tuple[str, ...] = tuple(RUNGS)
    """Steps of the ladder: any of the default."""
    precision: str = "float32"
    """float32, float64."""
    samples: int = 5
    """Timed samples of each case."""
    steps: int = 10
    """Steps in a sample; on a GPU take 32, and few samples, for later the stream meets the wing."""
    warmup: int = 10
    """Steps before; on a GPU take 300 or more, for it records steps in pieces first."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rung": tuple(RUNGS), "precision": PRECISIONS})
        self.check_least({"n": 100, "samples": 1, "steps": 1, "warmup": 1})


QUICK = {"n": (2**11,), "rung": ("no reorder", "reorder", "ropes", "grid"), "samples": 3, "steps": 5,
         "warmup": 5}  # fmt: skip


def measure(case: Config) -> Iterator[dict]:
    """A row for each sample: the mean time of its steps, and when in the flow it ended."""
    lift = _case(case.n, case.seed)
    sim = md.Simulation(
        lift.state,
        lift.law,
        search=RUNGS[case.rung].search(),
        backend=case.backend,
        precision=case.precision,
        **lift.options,
    )
    sim.run(case.warmup, phases=False)
    off = _off(case, sim, lift)
    sim.timings.clear()
    ends = []
    for _ in range(case.samples):
        sim.run(case.steps, phases=False)
        ends.append({"step": sim.step, "time": sim.time})
    total = list(sim.timings.total)
    sim.run(case.steps)
    common = {f"{name}_ms": sim.timings.median(name) for name in ("build", "force", "integrate")}
    if isinstance(sim.search, Reflexive) and sim.search.contacts == "listed":
        common["crowded_share"] = sim.search.crowded / case.n
    for (_, time), end in zip(total, ends, strict=True):
        yield {"time_ms": time / case.steps, "force_off": off} | end | common


def _off(case: Config, sim: md.Simulation, lift: md.scenes.LiftCase) -> float:
    """How far forces are off those of a grid in the same positions, of the largest.

    Raises:
        ValueError: too far.
    """
    options = lift.options | {"backend": case.backend, "precision": case.precision}
    grid = md.Simulation(sim.state, lift.law, search="linked", **options)
    theirs = grid.forces()
    off = float(np.abs(sim.forces() - theirs).max() / np.abs(theirs).max())
    if not off <= OFF[case.precision]:
        raise ValueError(
            f"forces of {case.rung!r} are off the grid's by {off:.3g} of the largest; allowed: "
            f"{OFF[case.precision]}; not recorded"
        )
    return off


@lru_cache(maxsize=1)
def _case(n: int, seed: int) -> md.scenes.LiftCase:
    return md.scenes.newtonian_lift(n, seed=seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Time per disc and step over the size for each rung, or rung by rung of one size; gains as a table."""
    table = table.assign(ns=1e6 * table["time_ms"] / table["n"])
    rungs = list(dict.fromkeys(table["rung"]))
    figure, panel = plt.subplots(figsize=(6.8, 3.8))
    spread = {"estimator": "median", "errorbar": ("pi", 50), "ax": panel}
    if table["n"].nunique() == 1:
        sns.pointplot(table, x="time_ms", y="rung", linestyle="none", markersize=5, capsize=0.2, **spread)
        panel.set(xlabel="time of a step (ms)", ylabel=None, xlim=(0, None))
        panel.grid(axis="y", color="0.9")
        title = f"{table['n'].iloc[0]:,} discs before a wing"
    else:
        look = style.lines_in_turn(rungs, "rung") | {"markersize": 5}
        sns.lineplot(table, x="n", y="ns", **spread, **look)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set(xlabel="discs", ylabel="time per disc and step (ns)")
        panel.legend(title="rung", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
        title = "discs before a wing"
    figure.suptitle(f"{title}; median and quartiles over samples", fontsize=9)
    style.save(figure, out, "ladder")
    save_table(_summary(table, rungs), out, "summary")


def _summary(table: pd.DataFrame, rungs: list[str]) -> pd.DataFrame:
    """Medians and quartiles, and gains over the first rung and over the one that each is compared with."""
    spread = table.groupby(_GROUP)["time_ms"].quantile([0.25, 0.5, 0.75]).unstack()
    spread.columns = ["time_ms_q25", "time_ms_median", "time_ms_q75"]
    if "crowded_share" in table:  # of particles with more contacts than lists have room for
        spread["crowded_share"] = table.groupby(_GROUP)["crowded_share"].median()
    spread = spread.reindex([(n, rung) for n in sorted(table["n"].unique()) for rung in rungs])
    spread = spread.dropna(subset="time_ms_median")
    median = spread["time_ms_median"]
    spread["speed_up_over_first"] = median.groupby("n", sort=False).transform("first") / median
    spread["over"] = [RUNGS[rung].over for _, rung in spread.index]
    pairs = zip(spread.index.get_level_values("n"), spread["over"], strict=True)
    spread["speed_up_over"] = [median.get(pair, np.nan) for pair in pairs] / median
    return spread.reset_index()


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
