"""What is a memory order worth in time, phase by phase, and was it foreseen?

The gas starts in shuffled memory, or in the order of the lattice it was made from. Two entries of the
`ordering` axis reorder nothing: `shuffled` and `lattice` are the baselines. Every other entry starts shuffled
and is reordered before each step of the warm-up: the first of these is the phase `first reorder`, the others,
of particles already in order, the phase `reorder`. Then the particles are reordered every `reorder_every`
steps. A row `step` is a whole step without reorders; `step with reorder` adds a reorder's share, the median
cost over `reorder_every`. Where all samples together are shorter than that, as they are by default on a CPU,
both tell what a fresh order is worth, before motion wears it out. The phases of a device are those of its
work alone: it is given 25 steps before it begins the first. Under a search that sorts the particles itself
(`coherent`, `tiles`, `verlet`, `lbvh`) an ordering is that of its cells, and there are no baselines; one that
it cannot have gives no row. Forces after one step, and the temperature after the warm-up, are checked against
another search's before a case is timed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

import md
import sfc
from experiments.core import Settings, main, save_table, style, values
from experiments.measured.checked import TOLERANCE, check_forces
from experiments.measured.pace import BASELINES, FromStep, phases_of

PHASES = ("force", "build", "integrate", "reorder", "first reorder")
SCENES = ("granular", "shared")
_GROUP = ["n", "filling_fraction", "search", "precision", "fused"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of the main job."""

    n: tuple[int, ...] = (2**20,)
    """Particles. Fewer than about 2**18 fit the cache of a CPU and show little."""
    filling_fraction: tuple[float, ...] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: tuple[str, ...] = ("linked",)
    """Any search of `md.search` but naive; linked is the thesis's."""
    precision: tuple[str, ...] = ("float64",)
    """float32, float64."""
    fused: tuple[bool, ...] = (False,)
    """Whether the step is fused into the force kernel; its time is then part of the phase `force`.
    reflexive's cannot be."""
    ordering: tuple[str, ...] = ("shuffled", "lattice", "random", "row", "zigzag", "morton", "hilbert")
    """Memory orders: the baselines `shuffled` and `lattice`, and any 3D ordering of `sfc`."""
    scene: str = "granular"
    """granular: a randomised gas; shared: the jittered lattice on which peers are compared, quick to make."""
    samples: int = 6
    """Timed samples of each case, once with phases and once as a whole."""
    steps: int = 1
    """Steps in a sample. On a GPU take some 100, so that launches overlap."""
    warmup: int = 2
    """Steps before the timed ones."""
    reorder_every: int = 500
    """Steps between reorders (500 in the thesis); where the samples are shorter, its cost is shared out."""
    cache: int = 320
    """Capacity in particles of the cache whose hits are predicted (320 in the thesis)."""

    def __post_init__(self):
        super().__post_init__()
        for name in set(BASELINES) & set(sfc.orderings(3)):
            raise ValueError(f"a curve named {name!r}; allowed: any name but {', '.join(BASELINES)}")
        known = {
            "ordering": (*BASELINES, *sfc.orderings(3)),
            "search": tuple(name for name in md.search.SEARCHES if name != "naive"),
            "precision": tuple(TOLERANCE),
            "scene": SCENES,
        }
        self.check_known(known)
        least = {"n": 2, "samples": 1, "steps": 1, "warmup": 1, "reorder_every": 1, "cache": 1}
        self.check_least(least)
        for phi in values(self.filling_fraction):
            if not 0 < phi <= 0.5:
                raise ValueError(f"--filling-fraction {phi} cannot be packed; allowed: 0 < phi <= 0.5")


QUICK = {"n": (2**15,), "filling_fraction": (0.05, 0.2), "samples": 5}


def measure(case: Config) -> Iterator[dict]:
    """Rows of one case: phases and whole steps as means over a sample's steps, each reorder by itself."""
    kind = md.search.SEARCHES[case.search]
    if (_sorts(case) and case.ordering not in kind.cell_orders(3)) or (case.fused and not kind.fuses):
        return
    _compile(replace(case, n=2**10, filling_fraction=0.1, ordering="row"))
    sim = _simulation(case)
    sim.run(1)
    forces, temperature = _reference(replace(case, search=_other(case), ordering="lattice", fused=False))
    check_forces(sim, forces, case.precision)
    sim.run(case.warmup)
    first_reorder_ms, *reorder_ms = sim.timings.milliseconds.get("reorder") or [None]
    start = md.observe.temperature(sim.state)
    _check_temperature(case, start, temperature)
    stream = sim.accesses()
    phases = phases_of(sim, case.samples * case.steps)
    reorder_ms += phases.pop("reorder", [])
    phases = {
        phase: np.mean(np.reshape(ms, (-1, case.steps)), axis=1).tolist() for phase, ms in phases.items()
    }
    phases["reorder"] = reorder_ms
    if first_reorder_ms is not None:
        phases["first reorder"] = [first_reorder_ms]
    sim.timings.clear()
    held_reorders = []
    for _ in range(case.samples):
        held_reorders.append(_reorders(case, range(sim.step, sim.step + case.steps)))
        sim.run(case.steps, phases=False)
    common = {
        "particles": len(sim),
        "temperature_start": start,
        "temperature_end": md.observe.temperature(sim.state),
        "predicted_hit_ratio": sfc.cache.block(stream, case.cache).ratio,
        "reads_per_particle": len(stream.reads) / len(sim),
    }
    for phase in PHASES:
        for time in phases.get(phase, []):
            yield common | {"phase": phase, "time_ms": time}
    cost = float(np.median(reorder_ms)) if reorder_ms else 0.0
    for held, (steps, time) in zip(held_reorders, sim.timings.total, strict=True):
        bare = (time - held * cost) / steps
        yield common | {"phase": "step", "time_ms": bare}
        yield common | {"phase": "step with reorder", "time_ms": bare + cost / case.reorder_every}


def _sorts(case: Config) -> bool:
    """Whether the search sorts the particles itself, so that there is nothing to reorder."""
    return md.search.SEARCHES[case.search].sorts_data


@lru_cache
def _compile(small: Config) -> None:
    """Compile every kernel on a small gas, so that no time below holds compilation."""
    sim = _simulation(small)
    sim.run(2)
    sim.forces()
    sim.accesses()


def _simulation(case: Config) -> md.Simulation:
    search, reorder = case.search, None
    if _sorts(case):
        kind = md.search.SEARCHES[search]
        search = kind(case.ordering) if case.ordering in kind.cell_orders(3) else kind()
    elif case.ordering not in BASELINES:
        reorder = md.Reorder(case.ordering, FromStep(case.reorder_every, case.warmup))
    memory_order = "lattice" if case.ordering == "lattice" else "shuffled"
    gas = _gas(case.scene, case.n, case.filling_fraction, case.seed, case.backend)
    return md.Simulation(
        md.scenes.in_memory_order(gas, memory_order, case.seed),
        md.scenes.SHARED_LAW,
        search=search,
        dt=md.scenes.SHARED_DT,
        reorder=reorder,
        backend=case.backend,
        precision=case.precision,
        fused=case.fused,
    )


def _reorders(case: Config, steps: range) -> int:
    """How many of these steps begin with a reorder."""
    if case.ordering in BASELINES or _sorts(case):
        return 0
    return sum(map(FromStep(case.reorder_every, case.warmup), steps))


@lru_cache(maxsize=1)
def _gas(scene: str, n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    if scene == "shared":
        return md.scenes.shared_gas(n, filling_fraction, seed=seed)
    box = md.scenes.box_for(n, filling_fraction)
    return md.scenes.granular_gas(filling_fraction, box, seed=seed, backend=backend)


@lru_cache(maxsize=1)
def _reference(case: Config) -> tuple[np.ndarray, float]:
    """Forces by id after one step, and the temperature after the warm-up."""
    sim = _simulation(case)
    sim.run(1)
    forces = sim.forces()
    sim.run(case.warmup)
    return forces, md.observe.temperature(sim.state)


def _other(case: Config) -> str:
    """A search to compare with."""
    return "linked" if _sorts(case) else "coherent"


def _check_temperature(case: Config, found: float, right: float) -> None:
    """Compare with that of another search, so that nothing wrong is timed."""
    error = abs(found / right - 1)
    if not error <= TOLERANCE[case.precision]:
        raise ValueError(
            f"the temperature {found:g} under ordering {case.ordering!r} came out wrong by {error:.3g}; "
            f"allowed in {case.precision}: {TOLERANCE[case.precision]:g}; not recorded"
        )


def draw(table: pd.DataFrame, out: Path) -> None:
    """Speed-up beside the prediction; time per phase; time per particle over size; the numbers as a table."""
    for (n, search, precision, fused), rows in table.groupby(["n", "search", "precision", "fused"]):
        name = f"n{n}_{search}_{precision}{'_fused' if fused else ''}"
        title = f"{n:,} particles, {search}, {precision}{', fused' if fused else ''}"
        if rows["filling_fraction"].nunique() > 1:
            _draw_speed_up(rows, out, f"speed_up_{name}", title)
        _draw_phases(rows, out, f"phases_{name}", title)
    if table["n"].nunique() > 1:
        for (precision, fused), rows in table.groupby(["precision", "fused"]):
            _draw_sizes(rows, out, f"sizes_{precision}{'_fused' if fused else ''}")
    save_table(summary(table), out, "summary")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Median and quartiles of every phase, and the speed-up of the median over each baseline."""
    keys = [*_GROUP, "ordering", "phase"]
    spread = table.groupby(keys, sort=False)["time_ms"].describe(percentiles=[0.25, 0.5, 0.75])
    spread = spread[["count", "25%", "50%", "75%"]].reset_index()
    spread.columns = [*keys, "samples", "time_ms_q25", "time_ms_median", "time_ms_q75"]
    for baseline in BASELINES:
        if baseline in set(table["ordering"]):
            own = spread[spread["ordering"] == baseline].set_index([*_GROUP, "phase"])["time_ms_median"]
            wanted = own.reindex(pd.MultiIndex.from_frame(spread[[*_GROUP, "phase"]])).to_numpy()
            spread[f"speed_up_over_{baseline}"] = wanted / spread["time_ms_median"]
    return spread


def _draw_speed_up(rows: pd.DataFrame, out: Path, name: str, title: str) -> None:
    baselines = [b for b in BASELINES if b in set(rows["ordering"])]
    names = list(dict.fromkeys(rows["ordering"]))
    figure, panels = plt.subplots(1, len(baselines) + 1, figsize=(3.3 * (len(baselines) + 1) + 1, 3.5))
    panels = np.atleast_1d(panels)
    whole = rows[rows["phase"] == "step with reorder"]
    for panel, baseline in zip(panels, baselines, strict=False):
        own = whole[whole["ordering"] == baseline].groupby("filling_fraction")["time_ms"].median()
        gains = whole.assign(speed_up=whole["filling_fraction"].map(own) / whole["time_ms"])
        spread = {"estimator": "median", "errorbar": ("pi", 50)}
        sns.lineplot(
            gains, x="filling_fraction", y="speed_up", ax=panel, legend=False, **spread, **style.lines(names)
        )
        panel.axhline(1, color="0.6", linewidth=0.8, zorder=0)
        panel.set(
            xlabel="filling fraction", ylabel=f"speed-up of a step over {baseline} memory", ylim=(0, None)
        )
    predicted = rows.drop_duplicates(["filling_fraction", "ordering"])
    sns.lineplot(
        predicted, x="filling_fraction", y="predicted_hit_ratio", ax=panels[-1], **style.lines(names)
    )
    panels[-1].set(xlabel="filling fraction", ylabel="predicted hit ratio (block model)", ylim=(0, 1))
    panels[-1].legend(title="memory order", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(f"{title}\nmedian and quartiles over samples", fontsize=9)
    style.save(figure, out, name)


def _draw_phases(rows: pd.DataFrame, out: Path, name: str, title: str) -> None:
    fractions = sorted(rows["filling_fraction"].unique())
    names = list(dict.fromkeys(rows["ordering"]))
    size = (max(3.1, 0.34 * len(names)) * len(fractions) + 1.4, 3.5)
    figure, panels = plt.subplots(1, len(fractions), figsize=size, squeeze=False)
    for panel, fraction in zip(panels[0], fractions, strict=True):
        part = rows[rows["filling_fraction"] == fraction]
        quartiles = part.groupby(["ordering", "phase"])["time_ms"].quantile([0.25, 0.5, 0.75]).unstack()
        bottom = np.zeros(len(names))
        for phase, shade in zip(
            ("force", "build", "integrate"), ("#0072B2", "#E69F00", "#009E73"), strict=True
        ):
            if phase in set(part["phase"]):
                times = quartiles.xs(phase, level="phase").reindex(names)[0.5].to_numpy()
                panel.bar(names, times, bottom=bottom, color=shade, label=phase, width=0.7)
                bottom += times
        whole = quartiles.xs("step", level="phase").reindex(names)
        spread = np.abs(whole[[0.25, 0.75]].to_numpy().T - whole[0.5].to_numpy())
        marks = {"fmt": "k_", "markersize": 9, "capsize": 2, "linewidth": 1, "label": "whole step"}
        panel.errorbar(names, whole[0.5], yerr=spread, **marks)
        panel.set(title=f"filling fraction {fraction:g}", xlabel="memory order", ylabel="time per step (ms)")
        panel.tick_params(axis="x", rotation=90 if len(names) > 8 else 45)
    panels[0][-1].legend(title="phase", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(f"{title}\nmedians, quartiles of the whole step", fontsize=9)
    style.save(figure, out, name)


def _draw_sizes(rows: pd.DataFrame, out: Path, name: str) -> None:
    whole = rows[rows["phase"] == "step with reorder"]
    whole = whole.assign(ns=1e6 * whole["time_ms"] / whole["n"])
    fractions, searches = sorted(whole["filling_fraction"].unique()), list(dict.fromkeys(whole["search"]))
    size = (3.1 * len(fractions) + 1.2, 2.9 * len(searches))
    figure, panels = plt.subplots(len(searches), len(fractions), figsize=size, squeeze=False, sharey="row")
    names = list(dict.fromkeys(whole["ordering"]))
    for (a, b), panel in np.ndenumerate(panels):
        part = whole[(whole["search"] == searches[a]) & (whole["filling_fraction"] == fractions[b])]
        last = (a, b) == (0, len(fractions) - 1)
        spread = {"estimator": "median", "errorbar": ("pi", 50)}
        sns.lineplot(part, x="n", y="ns", ax=panel, legend=last, **spread, **style.lines(names))
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set(xlabel="particles", ylabel="time per particle and step (ns)")
        panel.set_title(f"{searches[a]}, filling fraction {fractions[b]:g}", fontsize=9)
    panels[0][-1].legend(title="memory order", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    style.save(figure, out, name)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
