"""Time per phase of a granular gas under each memory order, and the speed-up over no reorder.

The gas (linked cell lists, the thesis's search) starts in shuffled memory, or in the order of the lattice
it was made from. Two entries of the `ordering` axis reorder nothing: `shuffled` and `lattice` are the
baselines. Every other entry starts shuffled and is reordered before each step of the warm-up: the first of
these is the phase `first reorder`, the others, of particles already in order, the phase `reorder`. The
timed steps follow directly and reorder nothing, so they tell what a fresh order is worth; in `step with
reorder` the cost of one reorder is shared out over `reorder_every` steps. Before a case is timed, its
forces are checked against those of a search that sorts the data itself.
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
from experiments.core import Settings, main, style, values

BASELINES = ("shuffled", "lattice")
PHASES = ("force", "build", "integrate", "reorder", "first reorder")
_TOLERANCE = {"float32": 2e-3, "float64": 1e-10}  # of the root mean square force


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of the main job."""

    n: tuple[int, ...] = (2**20,)
    """Particles. Fewer than about 2**18 fit the cache of a CPU and show nothing."""
    filling_fraction: tuple[float, ...] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    ordering: tuple[str, ...] = ("shuffled", "lattice", "random", "row", "zigzag", "morton", "hilbert")
    """Memory orders: the baselines `shuffled` and `lattice`, and any 3D ordering of `sfc`."""
    precision: str = "float64"
    """float32 or float64."""
    steps: int = 6
    """Timed steps of each case, with phases timed; as many again are timed as a whole."""
    warmup: int = 2
    """Steps before the timed ones."""
    reorder_every: int = 500
    """Steps over which the cost of one reorder is shared out (the thesis reorders every 500)."""
    cache: int = 320
    """Capacity in particles of the cache whose hits are predicted (the thesis's 320)."""

    def __post_init__(self):
        known = (*BASELINES, *sfc.orderings(3))
        for order in values(self.ordering):
            if order not in known:
                raise ValueError(f"unknown ordering {order!r}; known: {', '.join(known)}")
        for name, least in (("n", 2), ("steps", 1), ("warmup", 1), ("reorder_every", 1), ("cache", 1)):
            for value in values(getattr(self, name)):
                if value < least:
                    raise ValueError(f"--{name.replace('_', '-')} {value}; allowed: at least {least}")
        for phi in values(self.filling_fraction):
            if not 0 < phi <= 0.5:
                raise ValueError(f"--filling-fraction {phi} cannot be packed; allowed: 0 < phi <= 0.5")
        if self.precision not in _TOLERANCE:
            raise ValueError(f"--precision {self.precision}; allowed: {', '.join(_TOLERANCE)}")


QUICK = {"n": (2**15,), "filling_fraction": (0.05, 0.2), "steps": 5}


def measure(case: Config) -> Iterator[dict]:
    """Rows of one case: one for each timed phase of each step and one for each whole step."""
    _compile(case.backend, case.precision)
    sim = _simulation(case)
    _check_forces(case, sim)
    sim.run(case.warmup)
    first_reorder_ms, *reorder_ms = sim.timings.milliseconds.get("reorder") or [None]
    start = md.observe.temperature(sim.state)
    sim.timings.clear()
    sim.run(case.steps)
    stream = sim.accesses()
    common = {
        "particles": len(sim),
        "temperature_start": start,
        "predicted_hit_ratio": sfc.cache.block(stream, case.cache).ratio,
        "reads_per_particle": len(stream.reads) / len(sim),
    }
    phases = {**sim.timings.milliseconds, "reorder": reorder_ms}
    if first_reorder_ms is not None:
        phases["first reorder"] = [first_reorder_ms]
    sim.timings.clear()
    for _ in range(case.steps):
        sim.run(1, phases=False)
    common["temperature_end"] = md.observe.temperature(sim.state)
    for phase in PHASES:
        for time in phases.get(phase, []):
            yield common | {"phase": phase, "time_ms": time}
    share = float(np.median(reorder_ms)) / case.reorder_every if reorder_ms else 0.0
    for _, time in sim.timings.total:
        yield common | {"phase": "step", "time_ms": time}
        yield common | {"phase": "step with reorder", "time_ms": time + share}


@lru_cache
def _compile(backend: str, precision: str) -> None:
    """Compile every kernel on a small gas, so that no time below holds compilation."""
    small = Config(n=2**10, filling_fraction=0.1, ordering="row", backend=backend, precision=precision)
    sim = _simulation(small)
    _check_forces(small, sim)
    sim.run(1)
    sim.accesses()


def _simulation(case: Config, search: str = "linked") -> md.Simulation:
    memory_order = "lattice" if case.ordering == "lattice" else "shuffled"
    reorder = None
    if case.ordering not in BASELINES and search == "linked":
        reorder = md.Reorder(case.ordering, lambda step: step <= case.warmup)
    return md.Simulation(
        md.scenes.in_memory_order(
            _gas(case.n, case.filling_fraction, case.seed, case.backend), memory_order, case.seed
        ),
        md.scenes.SHARED_LAW,
        search=search,
        dt=md.scenes.SHARED_DT,
        reorder=reorder,
        backend=case.backend,
        precision=case.precision,
    )


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    box = md.scenes.box_for(n, filling_fraction)
    return md.scenes.granular_gas(filling_fraction, box, seed=seed, backend=backend)


@lru_cache(maxsize=1)
def _reference_forces(case: Config) -> np.ndarray:
    """Forces by id after one step of the search that sorts the data itself."""
    sim = _simulation(case, search="coherent")
    sim.run(1)
    return sim.forces()


def _check_forces(case: Config, sim: md.Simulation) -> None:
    """Take one step and compare every force with the reference; nothing wrong is ever timed."""
    sim.run(1)
    wanted = _reference_forces(replace(case, ordering="lattice"))
    error = np.abs(sim.forces() - wanted).max() / max(float(np.sqrt(np.square(wanted).mean())), 1e-300)
    if not error <= _TOLERANCE[case.precision]:
        raise ValueError(
            f"forces under ordering {case.ordering!r} are off by {error:.3g} of their r.m.s.; not timed"
        )


def draw(table: pd.DataFrame, out: Path) -> None:
    """Speed-up beside the prediction; time per phase; the numbers as a table."""
    for n, rows in table.groupby("n"):
        _draw_speed_up(rows, out, f"speed_up_n{n}")
        _draw_phases(rows, out, f"phases_n{n}")
    summary(table).to_csv(out / "summary.csv", index=False)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Median and quartiles of every phase, and the speed-up of the median over each baseline."""
    keys = ["n", "filling_fraction", "ordering", "phase"]
    spread = table.groupby(keys, sort=False)["time_ms"].describe(percentiles=[0.25, 0.5, 0.75])
    spread = spread[["count", "25%", "50%", "75%"]].reset_index()
    spread.columns = [*keys, "samples", "time_ms_q25", "time_ms_median", "time_ms_q75"]
    for baseline in BASELINES:
        if baseline in set(table["ordering"]):
            own = spread[spread["ordering"] == baseline].set_index(["n", "filling_fraction", "phase"])
            wanted = pd.MultiIndex.from_frame(spread[["n", "filling_fraction", "phase"]])
            spread[f"speed_up_over_{baseline}"] = (
                own["time_ms_median"].reindex(wanted).to_numpy() / spread["time_ms_median"]
            )
    return spread


def _speed_ups(rows: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Each step's speed-up over the baseline's median step, reorder included."""
    steps = rows[rows["phase"] == "step with reorder"]
    own = steps[steps["ordering"] == baseline].groupby("filling_fraction")["time_ms"].median()
    return steps.assign(speed_up=steps["filling_fraction"].map(own) / steps["time_ms"])


def _draw_speed_up(rows: pd.DataFrame, out: Path, name: str) -> None:
    baselines = [b for b in BASELINES if b in set(rows["ordering"])]
    names = list(dict.fromkeys(rows["ordering"]))
    figure, panels = plt.subplots(1, len(baselines) + 1, figsize=(3.3 * (len(baselines) + 1), 3.2))
    panels = np.atleast_1d(panels)
    look = {
        "hue": "ordering",
        "hue_order": names,
        "palette": {order: style.colour(order) for order in names},
        "style": "ordering",
        "style_order": names,
        "markers": {order: style.marker(order) for order in names},
        "dashes": False,
    }
    for panel, baseline in zip(panels, baselines, strict=False):
        gains = _speed_ups(rows, baseline)
        sns.lineplot(
            gains,
            x="filling_fraction",
            y="speed_up",
            estimator="median",
            errorbar=("pi", 50),
            ax=panel,
            **look,
        )
        panel.axhline(1, color="0.6", linewidth=0.8, zorder=0)
        panel.set(
            xlabel="filling fraction", ylabel=f"speed-up of a step over {baseline} memory", ylim=(0, None)
        )
        panel.legend().remove()
    predicted = rows.drop_duplicates(["filling_fraction", "ordering"])
    sns.lineplot(predicted, x="filling_fraction", y="predicted_hit_ratio", ax=panels[-1], **look)
    panels[-1].set(xlabel="filling fraction", ylabel="predicted hit ratio (block model)", ylim=(0, 1))
    panels[-1].legend(title="memory order", fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(f"{rows['n'].iloc[0]:,} particles; median and quartiles over steps", fontsize=9)
    style.save(figure, out, name)


def _draw_phases(rows: pd.DataFrame, out: Path, name: str) -> None:
    fractions = sorted(rows["filling_fraction"].unique())
    names = list(dict.fromkeys(rows["ordering"]))
    figure, panels = plt.subplots(1, len(fractions), figsize=(3.1 * len(fractions) + 0.8, 3.2), squeeze=False)
    for panel, fraction in zip(panels[0], fractions, strict=True):
        part = rows[rows["filling_fraction"] == fraction]
        quartiles = part.groupby(["ordering", "phase"])["time_ms"].quantile([0.25, 0.5, 0.75]).unstack()
        bottom = np.zeros(len(names))
        for phase, shade in zip(
            ("force", "build", "integrate"), ("#0072B2", "#E69F00", "#009E73"), strict=True
        ):
            times = quartiles.xs(phase, level="phase").reindex(names)
            panel.bar(names, times[0.5], bottom=bottom, color=shade, label=phase, width=0.7)
            bottom += times[0.5].to_numpy()
        whole = quartiles.xs("step", level="phase").reindex(names)
        spread = np.abs(whole[[0.25, 0.75]].to_numpy().T - whole[0.5].to_numpy())
        panel.errorbar(
            names, whole[0.5], yerr=spread, fmt="k_", markersize=9, capsize=2, linewidth=1, label="whole step"
        )
        panel.set(title=f"filling fraction {fraction:g}", xlabel="memory order", ylabel="time per step (ms)")
        panel.tick_params(axis="x", rotation=45)
    panels[0][-1].legend(fontsize=7)
    figure.suptitle(f"{rows['n'].iloc[0]:,} particles; medians, quartiles of the whole step", fontsize=9)
    style.save(figure, out, name)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
