"""What does a reorder cost: on one thread, on all, on a GPU, through the host; from memory in order or not?

A reorder ranks the cell of each particle, sorts by it, and moves position, velocity and id (`md.Reorder` in
mode "data"). `shuffled` memory is in no order before; `ordered` memory was reordered a moment ago; `worn`
memory was, and the particles have moved by a tenth of a diameter since. `one thread` and `all threads` are
the CPU's; `device` is the GPU's own, and `host and back` copies the particles to the CPU, reorders them there
on all threads, and copies them back, as the thesis's program does. Every reorder of a case is of the same
particles in the same memory, restored before each. Before they are timed, the order that comes out is checked
against a sort of the cells' ranks by numpy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib.pyplot as plt
import numba
import numpy as np
import pandas as pd
import seaborn as sns

import md
import sfc
from experiments.core import Settings, main, save_table, style
from md.grid import Grid
from md.scenes import SHARED_LAW
from md.state import Particles

THREADS = ("one thread", "all threads")
GPU = ("device", "host and back")
MEMORY = ("shuffled", "worn", "ordered")
_WORN = 0.1  # d
_SPREAD = {"estimator": "median", "errorbar": ("pi", 50)}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of reorders."""

    n: tuple[int, ...] = (2**14, 2**16, 2**18, 2**20)
    """Particles."""
    memory: tuple[str, ...] = MEMORY
    """Before the reorder: shuffled, worn, ordered."""
    place: tuple[str, ...] = (*THREADS, *GPU)
    """one thread, all threads (of the CPU); device, host and back (where there is a GPU)."""
    ordering: tuple[str, ...] = ("hilbert",)
    """Any 3D ordering of `sfc`."""
    precision: tuple[str, ...] = ("float64",)
    """float64, float32."""
    filling_fraction: float = 0.2
    """Volume of the spheres over that of the box."""
    samples: int = 7
    """Reorders timed for each case."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "place": (*THREADS, *GPU),
            "memory": MEMORY,
            "ordering": sfc.orderings(3),
            "precision": ("float64", "float32"),
        }
        self.check_known(known)
        self.check_least({"n": 64, "samples": 1})
        self.check_above_zero({"filling_fraction": 0.45})
        self.check_particles()


QUICK = {"n": (2**12, 2**14, 2**16), "samples": 5}


def measure(case: Config) -> Iterator[dict]:
    """A row for each reorder; none for a place that is not here."""
    gpu = md.backend.get(case.backend).name == "cuda"
    if case.place in GPU and not gpu:
        return
    threads = numba.get_num_threads()
    used = 1 if case.place == "one thread" else numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(used)
    try:
        state = _gas(case.n, case.filling_fraction, case.memory, case.ordering, case.seed)
        backend = md.backend.get(case.backend if case.place in GPU else "cpu")
        precision, timings = np.dtype(case.precision), md.backend.Timings()
        particles = Particles(state, precision, backend)
        before = particles.on(backend)
        grid = Grid(state.box, SHARED_LAW.cutoff, precision, backend)
        via = "host" if case.place == "host and back" else "device"
        reorder = md.Reorder(case.ordering, md.Every(1), via=via).bind(particles, grid, backend, timings)
        reorder.apply(0)  # compiles, and is checked
        _check(case, state, particles.to_state())
        for sample in range(case.samples):
            particles.take_from(before)
            with backend.phase(timings, "reorder", sample):
                reorder.apply(sample)
        for sample, ms in enumerate(timings.milliseconds["reorder"]):
            yield {
                "sample": sample,
                "threads": used,
                "time_ms": ms,
                "time_ns_per_particle": 1e6 * ms / case.n,
            }
    finally:
        numba.set_num_threads(threads)


@lru_cache(maxsize=4)
def _gas(n: int, filling_fraction: float, memory: str, ordering: str, seed: int) -> md.State:
    state = md.scenes.shared_gas(n, filling_fraction, seed=seed)
    if memory == "shuffled":
        return state
    ranks = _ranks(state, ordering)
    state = state.take(np.argsort(ranks, kind="stable"))
    if memory == "ordered":
        return state
    generator = np.random.default_rng([seed, 2])
    way = generator.normal(size=state.pos.shape)
    way *= _WORN / np.linalg.norm(way, axis=1, keepdims=True)
    return md.State(state.box.wrap(state.pos + way), state.vel, state.box, state.id)


def _ranks(state: md.State, ordering: str) -> np.ndarray:
    """Rank of each particle's cell, on the grid that a law of diameter 1 makes."""
    shape = np.maximum(1, np.floor(state.box.lengths)).astype(int)
    cells = np.minimum((state.pos * (shape / state.box.lengths)).astype(np.int64), shape - 1)
    return sfc.covering(ordering, tuple(shape.tolist())).rank(cells)


def _check(case: Config, before: md.State, after: md.State) -> None:
    """Compare the order that comes out with numpy's, so that nothing wrong is timed."""
    rounded = md.State(
        before.box.wrap(before.pos.astype(case.precision)).astype(float), before.vel, before.box, before.id
    )
    place = np.empty(case.n, np.int64)
    place[before.id] = _ranks(rounded, case.ordering)
    ranks = place[after.id]
    wrong = float((ranks[1:] < ranks[:-1]).mean())
    if wrong > (0.0 if case.precision == "float64" else 1e-4):  # a coordinate on a cell's face may round over
        raise ValueError(
            f"{wrong:.3%} of the particles came out of order under {case.ordering!r}; not recorded"
        )


def draw(table: pd.DataFrame, out: Path) -> None:
    """Figure 5.1: time of a reorder over the number of particles; medians and quartiles as a table."""
    for (ordering, precision), rows in table.groupby(["ordering", "precision"], sort=False):
        several = table.groupby(["ordering", "precision"]).ngroups > 1
        style.save(_over_n(rows), out, f"cost_{ordering}_{precision}" if several else "cost")
    keys = ["ordering", "precision", "n", "place", "memory"]
    spread = table.groupby(keys, sort=False)["time_ms"].quantile([0.25, 0.5, 0.75]).unstack()
    spread.columns = ["time_ms_q25", "time_ms_median", "time_ms_q75"]
    save_table(spread.reset_index(), out, "summary")


def _over_n(rows: pd.DataFrame) -> plt.Figure:
    names = [name for name in MEMORY if name in set(rows["memory"])]
    figure, panels = plt.subplots(
        1, len(names), figsize=(2.9 * len(names) + 1.4, 3.3), squeeze=False, sharey=True
    )
    look = style.lines_in_turn(list(dict.fromkeys(rows["place"])), "place")
    for panel, name in zip(panels[0], names, strict=True):
        last = name == names[-1]
        part = rows[rows["memory"] == name]
        sns.lineplot(part, x="n", y="time_ms", ax=panel, legend=last, **_SPREAD, **look)
        panel.set(yscale="log", xlabel="particles", ylabel="time of a reorder (ms)")
        panel.set_xscale("log", base=2)
        panel.set_title(f"memory {name} before", fontsize=9)
        if last:
            panel.legend(title=None, fontsize=7, bbox_to_anchor=(1.02, 1), loc="upper left")
    figure.suptitle(
        f"{rows['ordering'].iloc[0]}, {rows['precision'].iloc[0]}; median and quartiles", fontsize=9
    )
    return figure


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
