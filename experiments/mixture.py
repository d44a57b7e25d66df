"""Where spheres differ in size, what does a grid cost, and what a tree?

A grid's cells are as wide as the widest spheres, so that small ones look through ever more others; a tree
goes by each sphere's own radius. In a gas of small spheres some have grown, and those in their way are gone.
Touching pairs are compared with those that another search finds before anything is timed.
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
from experiments.core import Settings, main, save_table, style
from md.simulation import PRECISIONS

_GROUP = ["widest", "search"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of mixtures."""

    n: int = 2**16
    """Spheres before some grow; on a GPU take 2097152."""
    filling_fraction: float = 0.2
    """Volume of the spheres over that of the box before, up to 0.5."""
    widest: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    """Diameter of those that grow, in d."""
    share: float = 0.002
    """Of the spheres that grow."""
    search: tuple[str, ...] = ("coherent", "tiles", "lbvh")
    """Any search of `md.search`."""
    precision: str = "float32"
    """float32, float64."""
    samples: int = 5
    """Timed samples of each case."""
    steps: int = 10
    """Steps in a sample; on a GPU take 100."""
    warmup: int = 10
    """Steps before; on a GPU take 100."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"search": tuple(md.search.SEARCHES), "precision": PRECISIONS})
        self.check_above_zero({"filling_fraction": 0.5, "share": 1.0})
        self.check_least({"n": 100, "widest": 1, "samples": 1, "steps": 1, "warmup": 1})


QUICK = {"n": 2**13, "widest": (1.0, 4.0), "samples": 3}


def measure(case: Config) -> Iterator[dict]:
    """A row for each sample: the mean time of its steps."""
    state = md.scenes.in_memory_order(
        _mixture(case.n, case.filling_fraction, case.widest, case.share, case.seed, case.backend),
        "shuffled",
        case.seed,
    )
    options = {"dt": md.scenes.SHARED_DT, "backend": case.backend, "precision": case.precision}
    kind = md.search.SEARCHES[case.search]
    sim = md.Simulation(state, md.scenes.SHARED_LAW, search=case.search, fused=kind.fuses, **options)
    sim.run(case.warmup, phases=False)
    found, other = sim.pairs(), "lbvh" if case.search == "linked" else "linked"
    fresh = md.Simulation(sim.state, sim.law, search=other, allow_overlap=True, **options)
    if not np.array_equal(found, fresh.pairs()):
        raise ValueError(f"{case.search} finds other pairs than {other}; not recorded")
    common = {"spheres": len(sim), "large": int((state.radius > 0.5).sum()) if case.widest > 1 else 0}
    common |= {"touching_pairs": len(found), "partners_read": len(sim.accesses().reads) / len(sim)}
    sim.timings.clear()
    for _ in range(case.samples):
        sim.run(case.steps, phases=False)
    for _, time in sim.timings.total:
        yield common | {"time_ms": time / case.steps}


@lru_cache(maxsize=1)
def _mixture(
    n: int, filling_fraction: float, widest: float, share: float, seed: int, backend: str
) -> md.State:
    gas = _gas(n, filling_fraction, seed)
    return gas if widest == 1 else md.scenes.with_large_spheres(gas, share, widest, seed, backend)


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int) -> md.State:
    return md.scenes.shared_gas(n, filling_fraction, seed=seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Time per sphere and partners read over the diameter of the large ones; medians as a table."""
    table = table.assign(ns=1e6 * table["time_ms"] / table["spheres"])
    names = list(dict.fromkeys(table["search"]))
    figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.3))
    look = style.lines_in_turn(names, "search") | {"markersize": 5}
    spread = {"estimator": "median", "errorbar": ("pi", 50)}
    labels = {"ns": "time per sphere and step (ns)", "partners_read": "partners read by a sphere"}
    for panel, (column, label) in zip(panels, labels.items(), strict=True):
        sns.lineplot(table, x="widest", y=column, ax=panel, legend=panel is panels[0], **spread, **look)
        panel.set(xlabel="diameter of the large spheres (d)", ylabel=label)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
    panels[0].legend(title="search", fontsize=7)
    share = f"{table['share'].iloc[0]:.1%} of the spheres large" if "share" in table else "few spheres large"
    figure.suptitle(f"{share}; median and quartiles over samples", fontsize=9)
    style.save(figure, out, "mixture")
    median = table.groupby(_GROUP, sort=False)[
        ["time_ms", "ns", "partners_read", "spheres", "large"]
    ].median()
    save_table(median.reset_index(), out, "summary")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
